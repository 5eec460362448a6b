//! The components of a system. One table for each kind of component defines its values, their types
//! and their meaning. Reading, checking, showing and compiling all use that table.

use crate::curve::Curve;
use crate::price::Price;
use crate::quantity::Quantity;
use crate::units::{Bytes, GbPerSec, Metres, Nanos, PerSec, Ratio};

/// A kind of component. The macro `part!` implements it from a table.
pub trait Part: Sized {
    /// The name of the kind in files.
    const KIND: &'static str;
    /// The table of the keys of this kind.
    const KEYS: &'static [Key];
    /// Builds a component from the values and components that `source` has for each key.
    fn build<S: PartSource>(source: &mut S) -> Result<Self, S::Error>;
    /// Appends the component's values as 64-bit words, in the order of the table.
    fn to_words(&self, words: &mut Vec<u64>);
    /// Checks the component: an error for values, or combinations of values, that no hardware has.
    fn check(&self) -> Result<(), InvalidValue>;
}

/// One key of a kind of component: a row of the kind's table.
#[derive(Debug)]
pub struct Key {
    /// The name of the key in files.
    pub name: &'static str,
    /// The meaning of the key, as a sentence.
    pub doc: &'static str,
    /// The type of the key's value.
    pub holds: KeyType,
    /// True if a file may leave the key out.
    pub optional: bool,
}

/// The type of a key's value.
#[derive(Debug)]
pub enum KeyType {
    /// The value is a number, a flag or a fraction.
    Value {
        /// The valid values of the key, in words ([`Quantity::VALID`]).
        valid: &'static str,
    },
    /// The value is a component within the component.
    Part {
        /// The kind of the component within the component.
        kind: &'static str,
        /// The table of the keys of the inner component's kind.
        keys: &'static [Key],
    },
    /// The value is a list of components of one kind within the component.
    List {
        /// The kind of the components in the list.
        kind: &'static str,
        /// The table of the keys of the listed components' kind.
        keys: &'static [Key],
        /// The valid numbers, in words, if a number of equal components may stand for the list.
        /// `None`: no number may.
        number: Option<&'static str>,
    },
}

/// A source of a component's values: a part of the catalogue, or a compiled system.
pub trait PartSource: Sized {
    /// The error of a value that is missing or not valid.
    type Error;
    /// The value of `key`. An error if it is missing or not valid.
    fn value<Q: Quantity>(&mut self, key: &'static str) -> Result<Q, Self::Error>;
    /// The value under `key`, which a file may leave out.
    fn optional<T>(&mut self, key: &'static str) -> Result<Option<T>, Self::Error>
    where
        Option<T>: Quantity;
    /// The component of `key`. An error if it is missing or not valid.
    fn part<P: Part>(&mut self, key: &'static str) -> Result<P, Self::Error>;
    /// The component under `key`, which a file may leave out.
    fn extra<P: Part>(&mut self, key: &'static str) -> Result<Option<P>, Self::Error>;
    /// The components under `key`, or those that a number or a missing key represents.
    fn list<L: PartList>(&mut self, key: &'static str) -> Result<L, Self::Error>;
}

/// A component that may be missing from the part that contains it.
pub trait ExtraPart {
    /// The kind of the component that may be missing.
    type Item: Part;
    /// The component; `None` if it is missing.
    fn item(&self) -> Option<&Self::Item>;
}

impl<P: Part> ExtraPart for Option<P> {
    type Item = P;
    fn item(&self) -> Option<&P> {
        self.as_ref()
    }
}

/// Appends the words of a component that may be missing: 1 and its words, or 0.
pub(crate) fn extra_to_words<E: ExtraPart>(extra: &E, words: &mut Vec<u64>) {
    words.push(extra.item().is_some().into());
    if let Some(part) = extra.item() {
        part.to_words(words);
    }
}

/// Several components of one kind under one key.
pub trait PartList: Sized {
    /// The kind of the listed components.
    type Item: Part;
    /// The greatest number of components of a list.
    const MOST: usize;
    /// The valid numbers that may stand for a list, in words, for an error message; `None`: no
    /// number may.
    const NUMBER: Option<&'static str>;
    /// The list that is used where the key is missing; `None`: the key is required.
    fn absent() -> Option<Self>;
    /// The list that a number represents; `None`: the number is not valid.
    fn of_number(number: u32) -> Option<Self>;
    /// A list of these components; `None` if there are more than [`MOST`](PartList::MOST).
    fn of_parts(parts: &[Self::Item]) -> Option<Self>;
    /// The components of this list, or as the error the number that represents the list.
    fn parts(&self) -> Result<&[Self::Item], u32>;
}

/// Appends the words of a list: 1, the number of components, and their words; or 0 and the number
/// that represents the list.
pub(crate) fn list_to_words<L: PartList>(list: &L, words: &mut Vec<u64>) {
    match list.parts() {
        Err(number) => words.extend([0, u64::from(number)]),
        Ok(parts) => {
            words.extend([1, parts.len() as u64]);
            parts.iter().for_each(|part| part.to_words(words));
        }
    }
}

/// The error of a value that no hardware has, alone or together with other values.
#[derive(Debug, PartialEq)]
pub struct InvalidValue {
    /// The key under which the wrong value stands.
    pub key: &'static str,
    /// The reason why the value is wrong.
    pub why: String,
}

impl InvalidValue {
    /// An error about the key `key`, unless `good` is true.
    pub fn unless(
        good: bool,
        key: &'static str,
        why: impl FnOnce() -> String,
    ) -> Result<(), InvalidValue> {
        if good {
            Ok(())
        } else {
            Err(InvalidValue { key, why: why() })
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
                optional: $crate::components::part!(@optional $holds),
            } ),* ];
            fn build<S: $crate::components::PartSource>(source: &mut S) -> Result<Self, S::Error> {
                Ok($name { $( $key: source.$holds(stringify!($key))?, )* })
            }
            fn to_words(&self, words: &mut Vec<u64>) {
                $( $crate::components::part!(@word $holds self.$key, words); )*
            }
            fn check(&self) -> Result<(), $crate::components::InvalidValue> {
                let check: fn(&$name) -> Result<(), $crate::components::InvalidValue> = $check;
                check(self)
            }
        }
    };
    (@holds value $type:ty) => { $crate::components::KeyType::Value { valid: <$type as $crate::quantity::Quantity>::VALID } };
    (@holds optional $type:ty) => { $crate::components::part!(@holds value $type) };
    (@holds part $type:ty) => { $crate::components::KeyType::Part {
        kind: <$type as $crate::components::Part>::KIND,
        keys: <$type as $crate::components::Part>::KEYS,
    } };
    (@holds extra $type:ty) => { $crate::components::KeyType::Part {
        kind: <<$type as $crate::components::ExtraPart>::Item as $crate::components::Part>::KIND,
        keys: <<$type as $crate::components::ExtraPart>::Item as $crate::components::Part>::KEYS,
    } };
    (@holds list $type:ty) => { $crate::components::KeyType::List {
        kind: <<$type as $crate::components::PartList>::Item as $crate::components::Part>::KIND,
        keys: <<$type as $crate::components::PartList>::Item as $crate::components::Part>::KEYS,
        number: <$type as $crate::components::PartList>::NUMBER,
    } };
    (@optional optional) => { true };
    (@optional extra) => { true };
    (@optional $holds:ident) => { false };
    (@word extra $part:expr, $words:ident) => { $crate::components::extra_to_words(&$part, $words) };
    (@word list $list:expr, $words:ident) => { $crate::components::list_to_words(&$list, $words) };
    (@word optional $value:expr, $words:ident) => { $crate::components::part!(@word value $value, $words) };
    (@word value $value:expr, $words:ident) => { $words.push($crate::quantity::Quantity::to_word(&$value)) };
    (@word part $part:expr, $words:ident) => { $crate::components::Part::to_words(&$part, $words) };
}
pub(crate) use part;

part! {
    /// A generation of links, of InfiniBand or Ethernet: the signalling of one lane.
    Link "link" {
        value lane: GbPerSec, "Signalling rate of one lane.";
        value encoding: Ratio, "Share of the signalling rate that line coding and error correction leave for packets.";
        value correction: Nanos, "Latency that error correction adds to each cable.";
        optional framing: Option<Bytes>, "Bytes of a packet beyond those of an InfiniBand packet, the gap between packets included; may be left out: none.";
    }
    check |link| InvalidValue::unless(link.framing.is_none_or(|bytes| bytes.0 <= 512), "framing", || {
        "more than 512 B for each packet are not possible".into()
    })
}

impl Link {
    /// The rate of packets on one lane, headers included.
    pub fn data(&self) -> GbPerSec {
        self.lane.part(self.encoding)
    }
}

part! {
    /// A generation of I/O buses. In PCI-X, lanes are the data lines and packets are bursts; both
    /// directions share the lines.
    Bus "bus" {
        value lane: GbPerSec, "Signalling rate of one lane, each way.";
        value encoding: Ratio, "Share of the signalling rate that line coding leaves for packets.";
        value upkeep: Ratio, "Share of the data rate that the bus protocol's acknowledgements and flow control leave for packets.";
        value half_duplex: bool, "True if reads and writes share the lines.";
        value write_overhead: Bytes, "Framing and header of a packet that writes to host memory.";
        value completion_overhead: Bytes, "Framing and header of a packet of read data (completion with data).";
        value request_overhead: Bytes, "Size of a read request, which travels in the direction of writes.";
    }
    check |_| Ok(())
}

impl Bus {
    /// The rate of packets on one lane, headers included.
    pub fn data(&self) -> GbPerSec {
        self.lane.part(self.encoding).part(self.upkeep)
    }
}

part! {
    /// A host: chipset, memory, and the times of its processor for driving an HCA.
    Host "host" {
        part bus: Bus, "The fastest bus of its slots.";
        value lanes: u32, "Lanes of the slot.";
        value read_completion: Bytes, "Largest payload of one packet of read data; the chipset splits longer reads.";
        value max_payload: Bytes, "Largest payload of one packet that writes to host memory.";
        value post: Nanos, "Processor: building a work request and posting it.";
        value mmio: Nanos, "Time from the processor's store to the doorbell or BlueFlame page until it reaches the HCA.";
        value mmio_line: Nanos, "Time of each further 64-byte line written to the BlueFlame page.";
        value dma_read: Nanos, "Time of an HCA's read of one cache line, from request to data.";
        value dma_write: Nanos, "Time of an HCA's write of one cache line, until the processor can see it.";
        value poll: Nanos, "Processor: noticing an arrival by polling.";
        value handover: Nanos, "Time from one core's store until another core can see it.";
        value copy: GbPerSec, "Rate of a copy by a processor.";
        value memory: GbPerSec, "Bandwidth of the memory, shared by all its users.";
        value copy_traffic: u32, "Bytes of memory traffic for each byte that a processor copies.";
        optional local: Option<GbPerSec>, "Rate of a processor's work within MPI on its rank's memory: operations of reductions, packing, copies to the rank itself; may be left out: that of a copy.";
        value register: Nanos, "Processor: fixed cost of registering and later deregistering a memory region.";
        value register_page: Nanos, "Processor: additional cost of registration for each page of 4 KiB.";
        value crossing: Nanos, "One-way latency between sockets, for a rail whose HCA is attached to the other socket.";
        value rail_switch: Nanos, "Processor: switching from one rail's queue pair to another rail's.";
        optional cores: Option<u32>, "Cores of a host, of all its sockets; may be left out.";
        optional price: Option<Price>, "Price of one; may be left out.";
    }
    check |host| {
        lanes(host.lanes)?;
        InvalidValue::unless(host.cores.is_none_or(|cores| (1..=4096).contains(&cores)), "cores", || {
            "that is not a number of cores; valid are 1 to 4096".into()
        })?;
        InvalidValue::unless(host.copy_traffic >= 1, "copy_traffic", || "a copy moves each byte at least once".into())?;
        power(host.read_completion, "read_completion", 64, 4096)?;
        power(host.max_payload, "max_payload", 64, 4096)
    }
}

part! {
    /// A host channel adapter.
    Hca "hca" {
        value year: u32, "Year of its introduction.";
        part link: Link, "The fastest generation of its ports.";
        value width: u32, "Lanes of a port.";
        part bus: Bus, "The fastest bus that it supports.";
        value lanes: u32, "Lanes of its bus.";
        part timed_bus: Bus, "Bus of the slot for which the host's times of a cache line hold, dma_read and dma_write: the machines from which they were inferred had it.";
        value timed_lanes: u32, "Lanes of that slot.";
        value read_request: Bytes, "Largest read of host memory in one request.";
        value mtu: Bytes, "Largest payload of one packet on the link (MTU).";
        value send: Nanos, "Latency of an outgoing message in the chip.";
        value receive: Nanos, "Latency of an incoming packet in the chip.";
        value receive_match: Nanos, "Additional latency of an incoming send, which consumes a posted receive.";
        value message_rate: PerSec, "Rate of work requests of one queue pair, of writes above all.";
        value send_rate: Option<PerSec>, "Rate of sends of one queue pair; \"none\": that of all requests.";
        value read_rate: Option<PerSec>, "Rate of RDMA reads and atomics of one queue pair; \"none\": that of all requests.";
        value chip_rate: Option<PerSec>, "Rate of work requests of all queue pairs together.";
        value answer_rate: Option<PerSec>, "Rate of RDMA reads and atomics that the chip answers.";
        value atomic_rate: Option<PerSec>, "Rate of atomics that the chip executes.";
        value prefetch: Option<u32>, "Requests of one queue pair whose payloads the chip fetches at once; \"none\": any number.";
        value one_by_one: bool, "True if a queue pair's next request is fetched only after the previous one has left.";
        value polled: bool, "True for sockets that stand for an HCA: they work only while their ranks poll, so protocols prefer writes to reads.";
        value blueflame: bool, "True if the processor can write a work request into the HCA (BlueFlame), so that the HCA need not fetch it.";
        value direct: bool, "True if MPI libraries write work requests into the HCA themselves, false if they go through libibverbs, as to the HCAs before ConnectX-4.";
        value inline: Bytes, "Largest inline payload of a work request.";
        value work_request: Bytes, "Size of a work request without inline payload.";
        value completion: Bytes, "Size of a completion queue entry.";
        value reads: u32, "Outstanding RDMA reads of one queue pair.";
        optional queue_rate: Option<GbPerSec>, "Throughput of one queue pair, in one direction: for sockets, of the core that serves a connection; may be left out: no limit.";
        value read_engine: Option<GbPerSec>, "Throughput of the engine that reads host memory.";
        value internal: Option<GbPerSec>, "Throughput of the internal buffer, the sum of both directions.";
        list delay: Curve, "Additional time until the bytes of a work request are visible, by its length, of a calibration; it occupies nothing, and a library's own delay stands for it. May be left out: none.";
        list interval: Curve, "Least time from one work request of a queue pair to the next, by its length, of a calibration; a library's own interval stands for it. May be left out: that of the rates.";
        optional price: Option<Price>, "Price of one; may be left out.";
    }
    check |hca| {
        lanes(hca.lanes)?;
        lanes(hca.timed_lanes)?;
        width(hca.width)?;
        InvalidValue::unless((1999..=2100).contains(&hca.year), "year", || {
            format!("{} is not a year of InfiniBand; valid are 1999 to 2100", hca.year)
        })?;
        hca.delay.check("delay")?;
        hca.interval.check("interval")?;
        InvalidValue::unless(hca.reads >= 1, "reads", || "at least 1 read must be allowed".into())?;
        InvalidValue::unless(hca.prefetch != Some(0), "prefetch", || "at least 1 request must be allowed".into())?;
        InvalidValue::unless(hca.inline.0 <= 4096, "inline", || {
            format!("{} do not fit into a work request; valid are 0 B to 4096 B", hca.inline)
        })?;
        power(hca.mtu, "mtu", 256, 4096)?;
        power(hca.read_request, "read_request", 128, 4096)
    }
}

part! {
    /// A cable with its connectors.
    Cable "cable" {
        value length: Metres, "Length.";
        value metre: Nanos, "Signal time for each metre.";
        value conversion: Nanos, "Latency of the conversion to light and back, in an active cable.";
        value reach: Metres, "Greatest length at which the link works.";
        optional price: Option<Price>, "Price of one; may be left out.";
    }
    check |cable| InvalidValue::unless(cable.length <= cable.reach, "length", || {
        format!("{} is longer than the reach of this cable, {}", cable.length, cable.reach)
    })
}

part! {
    /// A switch. One without ports stands for two hosts back to back.
    Switch "switch" {
        value ports: u32, "Number of ports; 0 for two hosts back to back.";
        value width: u32, "Lanes of a port.";
        part link: Link, "The fastest generation of its ports.";
        value latency: Nanos, "Cut-through latency from port to port.";
        optional price: Option<Price>, "Price of one; may be left out.";
    }
    check |switch| {
        width(switch.width)?;
        InvalidValue::unless(switch.ports.is_multiple_of(2) && switch.ports <= 1024, "ports", || {
            format!("{} ports cannot form a fat tree; valid are even numbers up to 1024, and 0 for no switch", switch.ports)
        })
    }
}

/// Checks the number of lanes of a port.
fn width(width: u32) -> Result<(), InvalidValue> {
    InvalidValue::unless([1, 2, 4, 8, 12].contains(&width), "width", || {
        format!("{width} is not a link width; valid are 1, 2, 4, 8 and 12")
    })
}

/// Checks the number of lanes of a slot.
pub(crate) fn lanes(lanes: u32) -> Result<(), InvalidValue> {
    InvalidValue::unless(lanes.is_power_of_two() && lanes <= 64, "lanes", || {
        format!(
            "{lanes} is not a slot width; valid are 1, 2, 4, 8, 16 and 32, and the 64 lines of PCI-X"
        )
    })
}

fn power(size: Bytes, key: &'static str, least: u64, most: u64) -> Result<(), InvalidValue> {
    let good = size.0.is_power_of_two() && (least..=most).contains(&size.0);
    InvalidValue::unless(good, key, || {
        format!("{size} is not possible; valid are powers of two from {least} B to {most} B")
    })
}
