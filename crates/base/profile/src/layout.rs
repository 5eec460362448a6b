//! The layout of a profile's file: one part of equal length for each rank, in words of 64 bits.
//!
//! A part is a head, the messages by size, the procedures, and the peers. Unused pages of the file
//! take no memory.

use std::io;
use std::os::fd::OwnedFd;

/// The most procedures of a rank that have counters of their own.
pub const MOST_PROCEDURES: usize = 1 << 10;
/// The most peers of a rank that have counters of their own. Messages to others are only summed.
pub const MOST_PEERS: usize = 1 << 12;
/// The most rails of a rank that have counters of their own.
pub const MOST_RAILS: usize = 8;

/// The words of the head.
pub(crate) mod head {
    /// The state of the rank: see [`State`](crate::State).
    pub(crate) const STATE: usize = 0;
    /// The time of the last change, in picoseconds since the rank's start.
    pub(crate) const TIME: usize = 1;
    /// The time in MPI procedures that have returned, in picoseconds.
    pub(crate) const IN_MPI: usize = 2;
    /// The idle part of it, in picoseconds, plus one; 0 if that is unknown.
    pub(crate) const WAITED: usize = 3;
    /// The number of the running procedure plus one, or 0; and the time of its call.
    pub(crate) const CURRENT: usize = 4;
    pub(crate) const SINCE: usize = 5;
    /// The number of procedures, and of peers.
    pub(crate) const PROCEDURES: usize = 6;
    pub(crate) const PEERS: usize = 7;
    /// Messages and bytes to peers without a place of their own.
    pub(crate) const OTHERS: usize = 8;
    /// The number of outages of the network, and their time in picoseconds.
    pub(crate) const OUTAGES: usize = 10;
    /// The number of involuntary switches in the computing of a rank, plus one, or 0 if nobody
    /// times it; its time in picoseconds; and the most threads side by side.
    pub(crate) const SWITCHES: usize = 12;
    /// Bytes that were read from files and written to them in no virtual time.
    pub(crate) const FREE_FILES: usize = 15;
    /// 1 if the rank asked for MPI_THREAD_MULTIPLE and did not get it.
    pub(crate) const LACKS_THREADS: usize = 17;
    /// The time at which MPI_Init returned, in picoseconds.
    pub(crate) const STARTED: usize = 18;
    /// The time of work inside MPI on the rank's own memory, in picoseconds.
    pub(crate) const WORKED: usize = 19;
    /// The time by which the progress thread has made computing longer, in picoseconds.
    pub(crate) const DELAYED: usize = 20;
    /// Of a replay: the computing that was invented, plus one, or 0 if nothing differs from the
    /// recording; the computing that was left out, both in picoseconds; the first call that
    /// differs, in words.
    pub(crate) const DIFFERENCES: usize = 21;
    /// Connections of strangers to each rail.
    pub(crate) const STRANGERS: usize = DIFFERENCES + 2 + super::SENTENCE;
}

/// The values of [`head::STATE`].
pub(crate) const RUNNING: u64 = 1;
pub(crate) const FINISHED: u64 = 2;

/// The number of size classes.
pub(crate) const CLASSES: usize = 64;
/// The words of a size class: messages, bytes.
pub(crate) const CLASS: usize = 2;
/// The words of a name.
pub(crate) const NAME: usize = 5;
/// The words of a short text.
pub(crate) const SENTENCE: usize = 20;
/// The words of a procedure: its name, calls, time, bytes.
pub(crate) const PROCEDURE: usize = NAME + 3;
/// The words of a peer: its rank, messages, bytes.
pub(crate) const PEER: usize = 3;

/// The places of the tables in a part.
pub(crate) const SIZES_AT: usize = head::STRANGERS + MOST_RAILS;
pub(crate) const PROCEDURES_AT: usize = SIZES_AT + CLASSES * CLASS;
pub(crate) const PEERS_AT: usize = PROCEDURES_AT + MOST_PROCEDURES * PROCEDURE;
const END: usize = PEERS_AT + MOST_PEERS * PEER;
/// The largest page of a common system, in bytes. Each part begins with a page.
const PAGE: usize = 64 << 10;
/// The length of a part, in words.
pub(crate) const PART: usize = (END * 8).next_multiple_of(PAGE) / 8;

/// Creates the file for a job of `ranks` ranks: empty, anonymous, in memory.
pub fn create(ranks: usize) -> io::Result<OwnedFd> {
    memory_file::of_length("fishplate-profile", ranks as u64 * PART as u64 * 8)
}

/// The size class of a message: class 0 is empty messages, class k those of up to 2^(k-1) bytes.
pub(crate) fn class_of(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ => ((bytes - 1)
            .checked_ilog2()
            .map_or(0, |log| log as usize + 1)
            + 1)
        .min(CLASSES - 1),
    }
}

/// The largest message of a size class, in bytes.
pub(crate) fn largest_of(class: usize) -> u64 {
    match class {
        0 => 0,
        _ => 1 << (class - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_class_ends_with_a_power_of_two() {
        let largest = |bytes| largest_of(class_of(bytes));
        let seen = [0, 1, 2, 3, 4, 5, 64, 65, 1 << 20, (1 << 20) + 1].map(largest);
        assert_eq!(seen, [0, 1, 2, 4, 4, 8, 64, 128, 1 << 20, 2 << 20]);
        assert_eq!(class_of(usize::MAX), CLASSES - 1);
    }
}
