//! The parts that systems are made of. One table for each kind gives its values, their types and what they mean; files
//! are read, checked, shown and compiled from it.

use crate::quantity::Quantity;
use crate::units::{Bytes, GbPerSec, Metres, Nanos, PerSec, Ratio};

/// A kind of part.
pub trait Part: Sized {
    /// The kind's name in files.
    const KIND: &'static str;
    const KEYS: &'static [Key];
    /// From values and parts that `source` knows by key.
    fn build<S: Source>(source: &mut S) -> Result<Self, S::Error>;
    /// One word for each value, in the order of the table.
    fn to_words(&self, words: &mut Vec<u64>);
    /// What cannot be together, or not at all: the key and what is wrong with its value.
    fn check(&self) -> Result<(), Wrong>;
}

/// One row of a kind's table.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    pub holds: Holds,
}

#[derive(Debug)]
pub enum Holds {
    /// A value, and what is valid.
    Value { valid: &'static str },
    /// A part of a kind.
    Part {
        kind: &'static str,
        keys: &'static [Key],
    },
}

/// Where a part's values come from.
pub trait Source: Sized {
    type Error;
    fn value<Q: Quantity>(&mut self, key: &'static str) -> Result<Q, Self::Error>;
    fn part<P: Part>(&mut self, key: &'static str) -> Result<P, Self::Error>;
}

#[derive(Debug, PartialEq)]
pub struct Wrong {
    pub key: &'static str,
    pub why: String,
}

impl Wrong {
    pub fn unless(
        good: bool,
        key: &'static str,
        why: impl FnOnce() -> String,
    ) -> Result<(), Wrong> {
        if good {
            Ok(())
        } else {
            Err(Wrong { key, why: why() })
        }
    }
}

macro_rules! part {
    (
        $(#[$attribute:meta])*
        $name:ident $kind:literal { $( $holds:ident $key:ident: $type:ty, $doc:literal; )* }
        check $check:expr
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $( #[doc = $doc] pub $key: $type, )* }

        impl $crate::components::Part for $name {
            const KIND: &'static str = $kind;
            const KEYS: &'static [$crate::components::Key] = &[ $( $crate::components::Key {
                name: stringify!($key),
                doc: $doc,
                holds: $crate::components::part!(@holds $holds $type),
            } ),* ];
            fn build<S: $crate::components::Source>(source: &mut S) -> Result<Self, S::Error> {
                Ok($name { $( $key: source.$holds(stringify!($key))?, )* })
            }
            fn to_words(&self, words: &mut Vec<u64>) {
                $( $crate::components::part!(@word $holds self.$key, words); )*
            }
            fn check(&self) -> Result<(), $crate::components::Wrong> {
                let check: fn(&$name) -> Result<(), $crate::components::Wrong> = $check;
                check(self)
            }
        }
    };
    (@holds value $type:ty) => { $crate::components::Holds::Value { valid: <$type as $crate::quantity::Quantity>::VALID } };
    (@holds part $type:ty) => { $crate::components::Holds::Part {
        kind: <$type as $crate::components::Part>::KIND,
        keys: <$type as $crate::components::Part>::KEYS,
    } };
    (@word value $value:expr, $words:ident) => { $words.push($crate::quantity::Quantity::to_word(&$value)) };
    (@word part $part:expr, $words:ident) => { $crate::components::Part::to_words(&$part, $words) };
}
pub(crate) use part;

part! {
    /// A generation of links: how one lane of it signals.
    Link "link" {
        value lane: GbPerSec, "Signalling rate of one lane.";
        value encoding: Ratio, "What line coding and error correction leave for packets.";
        value correction: Nanos, "What error correction adds to the way through one cable.";
    }
    check |_| Ok(())
}

impl Link {
    /// What one lane carries of packets, headers included.
    pub fn data(&self) -> GbPerSec {
        self.lane.part(self.encoding)
    }
}

part! {
    /// A generation of I/O buses. PCI-X is one whose lanes are its data lines, with bursts for packets and both
    /// directions on the same lines.
    Bus "bus" {
        value lane: GbPerSec, "Signalling rate of one lane, each way.";
        value encoding: Ratio, "What line coding leaves for packets.";
        value upkeep: Ratio, "What acknowledgements and flow control of the bus's own leave for packets.";
        value half_duplex: bool, "Whether reads and writes share the lines.";
        value write_overhead: Bytes, "Framing and header of a packet that writes host memory.";
        value completion_overhead: Bytes, "Framing and header of a packet that answers a read of host memory.";
        value request_overhead: Bytes, "A whole packet that asks for a read of host memory; it goes the way of writes.";
    }
    check |_| Ok(())
}

impl Bus {
    /// What one lane carries of packets, headers included.
    pub fn data(&self) -> GbPerSec {
        self.lane.part(self.encoding).part(self.upkeep)
    }
}

part! {
    /// A host: chipset, memory, and what its processor takes to drive an HCA.
    Host "host" {
        part bus: Bus, "The fastest bus of its slots.";
        value lanes: u32, "Lanes of the slot.";
        value read_completion: Bytes, "Payload of one packet that answers a read; the chipset cuts longer answers.";
        value max_payload: Bytes, "Largest payload of one packet that writes host memory.";
        value post: Nanos, "Processor: build a work request and post it.";
        value mmio: Nanos, "From the store to the doorbell or BlueFlame page until the HCA has it.";
        value mmio_line: Nanos, "Each further 64-byte line pushed into the BlueFlame page.";
        value dma_read: Nanos, "The HCA reads one cache line: from request to data.";
        value dma_write: Nanos, "The HCA writes one cache line: until the processor can see it.";
        value poll: Nanos, "Processor: notice what has arrived.";
        value handover: Nanos, "From one core's store until another core can see it.";
        value copy: GbPerSec, "Rate of a processor's copy.";
        value memory: GbPerSec, "Bandwidth of the memory, all users together.";
        value copy_traffic: u32, "Bytes that memory moves for each byte that a processor copies.";
        value register: Nanos, "Processor: register memory and in the end deregister it, beside its pages.";
        value register_page: Nanos, "Processor: the same for each page of 4 KiB.";
        value crossing: Nanos, "One way between sockets, for a rail whose HCA hangs on the other.";
        value rail_switch: Nanos, "Processor: turn to another rail's queue pair than the last.";
    }
    check |host| {
        lanes(host.lanes)?;
        Wrong::unless(host.copy_traffic >= 1, "copy_traffic", || "a copy moves each byte at least once".into())?;
        power(host.read_completion, "read_completion", 64, 4096)?;
        power(host.max_payload, "max_payload", 64, 4096)
    }
}

part! {
    /// A host channel adapter.
    Hca "hca" {
        part link: Link, "The fastest generation of its ports.";
        value width: u32, "Lanes of a port.";
        part bus: Bus, "The fastest bus it speaks.";
        value lanes: u32, "Lanes of its bus.";
        value read_request: Bytes, "Largest read of host memory that it asks for at once.";
        value mtu: Bytes, "Payload of one packet on the link.";
        value send: Nanos, "Way of a message through the chip, out.";
        value receive: Nanos, "Way of a packet through the chip, in.";
        value receive_match: Nanos, "Taking a posted receive for a send, on top.";
        value message_rate: PerSec, "Work requests that one engine takes from one queue pair.";
        value one_by_one: bool, "Whether a queue pair's next request waits in memory until the one before has left.";
        value blueflame: bool, "Whether the processor can push a work request instead of the HCA fetching it.";
        value inline: Bytes, "Largest payload that can stand in the work request itself.";
        value work_request: Bytes, "A work request without inline payload.";
        value completion: Bytes, "A completion entry.";
        value reads: u32, "RDMA reads that one queue pair may have outstanding.";
        value read_engine: Option<GbPerSec>, "What the engine that reads host memory can carry.";
        value internal: Option<GbPerSec>, "What the internal buffer can carry, both directions together.";
    }
    check |hca| {
        lanes(hca.lanes)?;
        let widths = [1, 2, 4, 8, 12];
        Wrong::unless(widths.contains(&hca.width), "width", || {
            format!("{} is no width of a link; valid are 1, 2, 4, 8 and 12", hca.width)
        })?;
        Wrong::unless(hca.reads >= 1, "reads", || "at least 1 read must be allowed".into())?;
        Wrong::unless(hca.inline.0 <= 4096, "inline", || {
            format!("{} do not fit into a work request; valid are 0 B to 4096 B", hca.inline)
        })?;
        power(hca.mtu, "mtu", 256, 4096)?;
        power(hca.read_request, "read_request", 128, 4096)
    }
}

part! {
    /// A cable with its connectors.
    Cable "cable" {
        value length: Metres, "Its length.";
        value metre: Nanos, "What a signal takes for a metre.";
        value conversion: Nanos, "Electric to optic and back, in an active cable.";
        value reach: Metres, "The longest that works.";
    }
    check |cable| Wrong::unless(cable.length <= cable.reach, "length", || {
        format!("{} is longer than the {} that such a cable reaches", cable.length, cable.reach)
    })
}

part! {
    /// A switch. One without ports is no switch: two hosts, back to back.
    Switch "switch" {
        value ports: u32, "Its ports, each as wide as an HCA's; 0 for two hosts back to back.";
        part link: Link, "The fastest generation of its ports.";
        value latency: Nanos, "From port to port, cut-through.";
    }
    check |switch| Wrong::unless(switch.ports.is_multiple_of(2) && switch.ports <= 1024, "ports", || {
        format!("{} ports make no tree; valid are even numbers up to 1024, 0 for no switch", switch.ports)
    })
}

part! {
    /// What a library's own work costs on a host's processor, above the verbs.
    Software "software" {
        value send: Nanos, "Processor: a send, from the call to the post.";
        value receive: Nanos, "Processor: an arrival, from noticing it to the program's return.";
        value control: Nanos, "Processor: a step of the protocol that no packet carries, such as writing a ring's pointer to the peer.";
    }
    check |_| Ok(())
}

fn lanes(lanes: u32) -> Result<(), Wrong> {
    Wrong::unless(lanes.is_power_of_two() && lanes <= 64, "lanes", || {
        format!(
            "{lanes} is no width of a slot; valid are 1, 2, 4, 8, 16 and 32, and the 64 lines of PCI-X"
        )
    })
}

fn power(size: Bytes, key: &'static str, least: u64, most: u64) -> Result<(), Wrong> {
    let good = size.0.is_power_of_two() && (least..=most).contains(&size.0);
    Wrong::unless(good, key, || {
        format!("{size} is not possible; valid are powers of two from {least} B to {most} B")
    })
}
