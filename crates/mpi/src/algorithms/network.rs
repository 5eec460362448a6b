//! The network of a communicator, as costs know it.
//!
//! Devices report the bandwidth and latency of their links, and nothing of their hosts. The costs
//! of a host's processors and memory are therefore constants of its generation, which the bandwidth
//! of its network names: machines of the catalogue, fitted by `tests/collectives/choice.py`.
//!
//! Invariant: a network has only numbers that all members of the communicator have agreed on.

/// The network between the members of a communicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Time of a short write between hosts, in nanoseconds: the longest of all members.
    pub latency_ns: u64,
    /// Bytes per second from one host, over all its rails: the least of all members.
    pub bandwidth: u64,
    /// The ranks of a host share memory; otherwise they reach each other through a device.
    pub memory: bool,
}

/// The costs of a host's processors and memory.
#[derive(Clone, Copy, Debug)]
struct Generation {
    /// Bandwidth below which a network is of this generation, in bytes per second.
    below: u64,
    /// A send or a receive, in nanoseconds.
    effort_ns: u64,
    /// A byte copied by one processor, in picoseconds.
    copy_ps: u64,
    /// A byte copied while many processors of the host copy, in picoseconds of the host's memory.
    memory_ps: u64,
}

const GENERATIONS: [Generation; 6] = [
    // SDR and DDR.
    generation(2_400_000_000, 350, 700, 700),
    // QDR.
    generation(5_000_000_000, 170, 200, 140),
    // FDR.
    generation(9_000_000_000, 100, 143, 88),
    // EDR.
    generation(16_000_000_000, 85, 100, 66),
    // HDR.
    generation(30_000_000_000, 85, 83, 22),
    // NDR and later.
    generation(u64::MAX, 85, 83, 15),
];

const fn generation(below: u64, effort_ns: u64, copy_ps: u64, memory_ps: u64) -> Generation {
    Generation {
        below,
        effort_ns,
        copy_ps,
        memory_ps,
    }
}

/// Longest message that goes in one packet, copied at both ends, in bytes.
pub(super) const LONGEST_PACKET: usize = 16 << 10;
/// Time of a message within a host beside processor time, in nanoseconds.
const INSIDE_NS: u64 = 160;

impl Network {
    /// Ranks that share the memory of one host.
    pub const MEMORY: Network = Network {
        latency_ns: 500,
        bandwidth: 10_000_000_000,
        memory: true,
    };

    fn generation(&self) -> &'static Generation {
        let fits = |generation: &&Generation| self.bandwidth < generation.below;
        let last = &GENERATIONS[GENERATIONS.len() - 1];
        GENERATIONS.iter().find(fits).unwrap_or(last)
    }

    /// Time on the link of `bytes` bytes, in nanoseconds.
    fn on_link(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.bandwidth.max(1))) as u64
    }

    /// Processor time of a send or a receive, in nanoseconds.
    pub(super) fn effort(&self) -> u64 {
        self.generation().effort_ns
    }

    /// Time of a copy within a rank's memory, in nanoseconds.
    pub(super) fn copy(&self, bytes: u64) -> u64 {
        bytes * self.generation().copy_ps / 1000
    }

    /// Time until `messages` messages of `bytes` bytes that the ranks of one host send to other
    /// hosts at the same time, while as many arrive, have all been received, in nanoseconds.
    pub(super) fn across(&self, bytes: u64, messages: u64) -> u64 {
        if messages == 0 {
            return 0;
        }
        let message = self.message(bytes, true);
        let others = self.on_link(bytes * (messages - 1));
        match message.is_short {
            true => {
                let copies = 2 * self.memory(bytes, messages);
                let own = message.sending + message.receiving;
                message.flight + (own + others).max(copies)
            }
            false => message.flight + message.moving + others,
        }
    }

    /// Time until `messages` messages of `bytes` bytes among the ranks of one host, each by another
    /// rank, have all been received, in nanoseconds.
    pub(super) fn inside(&self, bytes: u64, messages: u64) -> u64 {
        if messages == 0 {
            return 0;
        }
        let message = self.message(bytes, false);
        match message.is_short {
            true => {
                let own = message.sending + message.receiving;
                message.flight + own.max(3 * self.memory(bytes, messages))
            }
            false => message.flight + message.moving.max(self.memory(bytes, messages)),
        }
    }

    /// The steps of a message of `bytes` bytes between hosts or within one.
    pub(super) fn message(&self, bytes: u64, across: bool) -> Message {
        let effort = self.effort();
        let is_short = bytes <= LONGEST_PACKET as u64;
        match (across, is_short) {
            // Both processors copy; buses store the first packet.
            (true, true) => Message {
                is_short,
                sending: effort + self.copy(bytes),
                flight: self.latency_ns + self.fetch(bytes) + self.on_link(bytes),
                receiving: effort + self.copy(bytes),
                moving: self.on_link(bytes),
            },
            (true, false) => Message {
                is_short,
                sending: effort,
                flight: 3 * self.latency_ns + effort + self.fetch(bytes),
                receiving: effort,
                moving: self.on_link(bytes),
            },
            // The sender builds the packet, then writes it.
            (false, true) => Message {
                is_short,
                sending: effort + 2 * self.copy(bytes),
                flight: INSIDE_NS,
                receiving: effort + self.copy(bytes),
                moving: 0,
            },
            (false, false) => Message {
                is_short,
                sending: effort,
                flight: INSIDE_NS + 3 * effort,
                receiving: effort,
                moving: self.copy(bytes),
            },
        }
    }

    /// Time until the first packet of a message that is not part of its work request is on the
    /// link, and from the link in memory, in nanoseconds.
    fn fetch(&self, bytes: u64) -> u64 {
        match bytes {
            0..=200 => 0,
            _ => 400 + 2 * self.on_link(bytes.min(3000)),
        }
    }

    /// Time for which messages of `bytes` copied bytes occupy the host's memory, in nanoseconds.
    pub(super) fn memory(&self, bytes: u64, messages: u64) -> u64 {
        // Short copies stay in caches, and long ones do not all meet.
        let part = match bytes as usize {
            0..=1024 => 0,
            1025..=LONGEST_PACKET => 100,
            _ => 80,
        };
        bytes * messages * self.generation().memory_ps / 1000 * part / 100
    }
}

/// The steps of a message, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The message goes in one packet, and its sender does not wait for the receiver.
    pub is_short: bool,
    /// Processor time of the sender.
    pub sending: u64,
    /// From the end of the sending to the first byte at the receiver; of a long message also the
    /// exchange before it.
    pub flight: u64,
    /// Processor time of the receiver.
    pub receiving: u64,
    /// Time that the message occupies the link, or the receiver that copies it.
    pub moving: u64,
}
