//! The properties of the network between the members of a communicator, from which the costs of
//! algorithms are computed.
//!
//! Invariant: a network has only numbers that all members of the communicator have agreed on.

use channel::{MessageCosts, PathCosts};

/// The properties of the network between the members of a communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Network {
    /// The path between ranks of different hosts: the worst costs of all members.
    pub across: PathCosts,
    /// The path between ranks of one host: the worst costs of all members.
    pub inside: PathCosts,
    /// True if the ranks of a host share memory; otherwise they reach each other through a device.
    pub memory: bool,
}

/// The bytes of the longest copies of which any number overlap; longer ones compete for the host's
/// memory.
const SHARED_PART: usize = 16 << 10;

impl Network {
    /// The network of ranks that share the memory of one host.
    pub const MEMORY: Network = Network {
        across: PathCosts::MEMORY,
        inside: PathCosts::MEMORY,
        memory: true,
    };

    fn path(&self, across: bool) -> &PathCosts {
        match across {
            true => &self.across,
            false => &self.inside,
        }
    }

    /// Bytes of the longest message that leaves in one packet, between hosts (`across`) or within
    /// one.
    pub(super) fn longest_packet(&self, across: bool) -> usize {
        self.path(across).eager as usize
    }

    /// The time for which `bytes` bytes occupy a link, in nanoseconds.
    fn on_link(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.across.bandwidth.max(1))) as u64
    }

    /// Time of a copy within a rank's memory, in nanoseconds.
    pub(super) fn copy(&self, bytes: u64) -> u64 {
        self.inside.copy(bytes)
    }

    /// Time of combining operands of `bytes` bytes, in nanoseconds: that of a copy.
    pub(super) fn combining(&self, bytes: usize) -> u64 {
        self.copy(bytes as u64)
    }

    /// Time of the poll that finds arrived packets, in nanoseconds.
    pub(super) fn poll(&self) -> u64 {
        self.inside.poll_ns
    }

    /// The costs of the steps of a message of `bytes` bytes, between hosts (`across`) or within
    /// one.
    pub(super) fn message(&self, bytes: u64, across: bool) -> MessageCosts {
        self.path(across).message(bytes)
    }

    /// The ranks of one host send `messages` messages of `bytes` bytes to other hosts at the same
    /// time, while as many arrive. Returns the time until all have been received, in nanoseconds.
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
            false => exchange(&message) + others,
        }
    }

    /// As many ranks of one host each send a message of `bytes` bytes within the host. Returns the
    /// time until all `messages` have been received, in nanoseconds.
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
            // Ranks that wait do not use the memory, so others have more of it.
            false => exchange(&message).max(self.memory(bytes, messages)),
        }
    }

    /// Time for which `messages` messages of `bytes` bytes, which are copied, occupy the host's
    /// memory, in nanoseconds.
    pub(super) fn memory(&self, bytes: u64, messages: u64) -> u64 {
        // Short copies stay in caches, and long ones do not all overlap.
        let part = match bytes as usize {
            0..=1024 => 0,
            1025..=SHARED_PART => 100,
            _ => 80,
        };
        bytes * messages * self.inside.memory_ps / 1000 * part / 100
    }
}

/// Time of an exchange of long messages between two ranks, in nanoseconds. It includes the report
/// to each rank that the other has received its message.
fn exchange(message: &MessageCosts) -> u64 {
    message.total() + message.report
}
