//! The network of a communicator, as costs know it.
//!
//! Invariant: a network has only numbers that all members of the communicator have agreed on.

use channel::{MessageCosts, PathCosts};

/// The network between the members of a communicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// The path between ranks of different hosts: the worst costs of all members.
    pub across: PathCosts,
    /// The path between ranks of one host: the worst costs of all members.
    pub inside: PathCosts,
    /// The ranks of a host share memory; otherwise they reach each other through a device.
    pub memory: bool,
}

/// Bytes. Longer copies occupy the host's memory in parts, so they do not all overlap.
const SHARED_PART: usize = 16 << 10;

impl Network {
    /// Ranks that share the memory of one host.
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

    /// The longest message that leaves at once, between hosts or within one.
    pub(super) fn longest_packet(&self, across: bool) -> usize {
        self.path(across).eager as usize
    }

    /// Time on the link of `bytes` bytes, in nanoseconds.
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

    /// Time of the poll that finds arrivals, in nanoseconds.
    pub(super) fn poll(&self) -> u64 {
        self.inside.poll_ns
    }

    /// The steps of a message of `bytes` bytes between hosts or within one.
    pub(super) fn message(&self, bytes: u64, across: bool) -> MessageCosts {
        self.path(across).message(bytes)
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
            false => exchange(&message) + others,
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
            // Ranks that wait leave the memory to others.
            false => exchange(&message).max(self.memory(bytes, messages)),
        }
    }

    /// Time for which messages of `bytes` copied bytes occupy the host's memory, in nanoseconds.
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

/// Time of an exchange of long messages between two ranks, in nanoseconds, with the report to each
/// rank that the other one has received its message.
fn exchange(message: &MessageCosts) -> u64 {
    message.total() + message.report
}
