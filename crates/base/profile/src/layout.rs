//! The layout of a profile's file: one part of equal length for each rank, in 64-bit words.
//!
//! A part has a head, then tables: messages by size, procedures, peers. Unused pages of the file
//! take no memory.

use std::io;
use std::os::fd::OwnedFd;

/// The most procedures of a rank that have counters of their own.
pub const MOST_PROCEDURES: usize = 1 << 10;
/// The most peers of a rank that have counters of their own. Messages to others are only summed.
pub const MOST_PEERS: usize = 1 << 12;
/// The most rails of a rank that have counters of their own.
pub const MOST_RAILS: usize = 8;

/// Positions of the fields at the head of a rank's part, in words from its beginning.
pub(crate) mod head {
    /// The word with the state of the rank: see [`State`](crate::State).
    pub(crate) const STATE: usize = 0;
    /// The word with the time of the last change, in picoseconds since the rank's start.
    pub(crate) const TIME: usize = 1;
    /// The word with the time in MPI procedures that have returned, in picoseconds.
    pub(crate) const IN_MPI: usize = 2;
    /// The idle part of [`IN_MPI`], in picoseconds, plus one; 0 if it is unknown.
    pub(crate) const WAITED: usize = 3;
    /// The word with the index of the running procedure plus one; 0 if none runs.
    pub(crate) const CURRENT: usize = 4;
    /// The word with the time of the call of the running procedure, in picoseconds.
    pub(crate) const SINCE: usize = 5;
    /// The word with the number of entries in the table of procedures.
    pub(crate) const PROCEDURES: usize = 6;
    /// The word with the number of entries in the table of peers.
    pub(crate) const PEERS: usize = 7;
    /// The number of messages to peers that are not in the table of peers; in the next word their
    /// bytes.
    pub(crate) const OTHERS: usize = 8;
    /// The number of outages of the network; in the next word their duration in picoseconds.
    pub(crate) const OUTAGES: usize = 10;
    /// Three words: the number of involuntary context switches while the rank computed, plus one,
    /// or 0 if its computing is not timed; the time of that computing in picoseconds; the greatest
    /// number of threads that computed at once.
    pub(crate) const SWITCHES: usize = 12;
    /// Bytes read from files in no virtual time; in the next word the bytes written.
    pub(crate) const FREE_FILES: usize = 15;
    /// The word that is 1 if the rank requested MPI_THREAD_MULTIPLE and did not get it.
    pub(crate) const LACKS_THREADS: usize = 17;
    /// The word with the time at which MPI_Init returned, in picoseconds.
    pub(crate) const STARTED: usize = 18;
    /// The time of work inside MPI on the rank's own memory, in picoseconds.
    pub(crate) const WORKED: usize = 19;
    /// The time by which the progress thread has made computing longer, in picoseconds.
    pub(crate) const DELAYED: usize = 20;
    /// The first of the words with the numbers of connections from strangers, one for each rail.
    pub(crate) const STRANGERS: usize = 21;
}

/// The value of [`head::STATE`] after the call of MPI_Init.
pub(crate) const RUNNING: u64 = 1;
/// The value of [`head::STATE`] after the call of MPI_Finalize.
pub(crate) const FINISHED: u64 = 2;

/// The number of size classes of messages.
pub(crate) const CLASSES: usize = 64;
/// The number of words of a size class's entry: messages, bytes.
pub(crate) const CLASS: usize = 2;
/// The number of words that hold a procedure's name.
pub(crate) const NAME: usize = 5;
/// The number of words of a procedure's entry: its name, calls, time, bytes.
pub(crate) const PROCEDURE: usize = NAME + 3;
/// The number of words of a peer's entry: its rank, messages, bytes.
pub(crate) const PEER: usize = 3;

/// The offset of the table of messages by size in a rank's part, in words.
pub(crate) const SIZES_AT: usize = head::STRANGERS + MOST_RAILS;
/// The offset of the table of procedures in a rank's part, in words.
pub(crate) const PROCEDURES_AT: usize = SIZES_AT + CLASSES * CLASS;
/// The offset of the table of peers in a rank's part, in words.
pub(crate) const PEERS_AT: usize = PROCEDURES_AT + MOST_PROCEDURES * PROCEDURE;
const END: usize = PEERS_AT + MOST_PEERS * PEER;
/// The largest page size of common systems, in bytes. Each part begins at a page boundary.
const PAGE: usize = 64 << 10;
/// The length of one rank's part of the profile, in words.
pub(crate) const PART: usize = (END * 8).next_multiple_of(PAGE) / 8;

/// Creates the anonymous file in memory for a job of `ranks` ranks, all zero.
pub fn create(ranks: usize) -> io::Result<OwnedFd> {
    memory_file::of_length("fishplate-profile", ranks as u64 * PART as u64 * 8)
}

/// The size class of a message: class 0 is for empty messages, class k for those of up to 2^(k-1)
/// bytes.
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

/// The size of the largest message of a size class, in bytes.
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
