//! A rank's inbox: arrived data that waits until the rank continues, in the order in which it
//! becomes visible; and the rank's out-of-band messages.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

/// Data that will become visible to a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrival {
    /// Bytes of a message, for registered memory.
    Bytes {
        message: u32,
        from: u32,
        len: u32,
        key: u32,
        to: u64,
    },
    Completion {
        cq: u32,
    },
    Datagram,
}

#[derive(Clone, Copy)]
pub(crate) struct Entry {
    at: Time,
    pub what: Arrival,
    /// True if the arrival wakes a waiting rank.
    pub wakes: bool,
}

/// The arrivals for a rank that are visible and not delivered, or will become visible.
pub(crate) struct Inbox {
    entries: Vec<Entry>,
    /// The index of the oldest entry that is not taken.
    first: usize,
}

/// The number of taken entries from which on they are removed from the inbox.
const MOST_TAKEN: usize = 1024;

impl Inbox {
    pub(crate) fn new(memory: WorldMemory) -> Inbox {
        Inbox {
            entries: Vec::new_in(memory),
            first: 0,
        }
    }

    /// Adds an arrival that becomes visible at the time `at`.
    #[inline]
    pub(crate) fn add(&mut self, at: Time, what: Arrival, wakes: bool) {
        let mut place = self.entries.len();
        while place > self.first && self.entries[place - 1].at > at {
            place -= 1;
        }
        self.entries.insert(place, Entry { at, what, wakes });
    }

    /// The time of the next arrival that wakes a waiting rank.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let mut left = self.entries[self.first..].iter();
        left.find(|entry| entry.wakes).map(|entry| entry.at)
    }

    /// Takes the oldest arrival, if it is visible at `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Time) -> Option<Entry> {
        match self.entries.get(self.first) {
            Some(entry) if entry.at <= now => {
                self.first += 1;
                return Some(*entry);
            }
            Some(_) if self.first < MOST_TAKEN => {}
            Some(_) => {
                self.entries.drain(..self.first);
                self.first = 0;
            }
            None => {
                self.entries.clear();
                self.first = 0;
            }
        }
        None
    }
}

/// An out-of-band message that is in flight or has arrived.
struct Datagram {
    at: Time,
    from: u32,
    bytes: Vec<u8>,
}

/// The out-of-band messages for a rank, in the order of their arrival.
pub(crate) struct Datagrams {
    memory: WorldMemory,
    all: Vec<Datagram>,
    /// The number of listed messages that have arrived; the others are in flight.
    arrived: usize,
}

impl Datagrams {
    pub(crate) fn new(memory: WorldMemory) -> Datagrams {
        Datagrams {
            memory,
            all: Vec::new_in(memory),
            arrived: 0,
        }
    }

    /// Adds a message that arrives at the time `at`. If ranks run ahead, messages of one time are
    /// in the order of their senders, because a rank that runs ahead sends before others that are
    /// earlier.
    pub(crate) fn add(&mut self, at: Time, from: u32, bytes: &[u8], runs_ahead: bool) {
        let order = |at: Time, from: u32| (at, if runs_ahead { from } else { 0 });
        let mut place = self.all.len();
        while place > self.arrived
            && order(self.all[place - 1].at, self.all[place - 1].from) > order(at, from)
        {
            place -= 1;
        }
        let mut copy = Vec::new_in(self.memory);
        copy.extend_from_slice(bytes);
        let bytes = copy;
        self.all.insert(place, Datagram { at, from, bytes });
    }

    /// Records that one more message has arrived.
    pub(crate) fn arrive(&mut self) {
        self.arrived += 1;
    }

    /// Takes the oldest message that has arrived; returns its sender and its contents.
    pub(crate) fn take(&mut self) -> Option<(usize, std::vec::Vec<u8>)> {
        self.arrived = self.arrived.checked_sub(1)?;
        let first = self.all.remove(0);
        Some((first.from as usize, first.bytes.to_vec()))
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use sim::memory::Memory;

    use super::*;

    #[test]
    fn entries_are_taken_in_the_order_of_their_times() {
        let memory = Memory::private().unwrap();
        let mut inbox = Inbox::new(memory.shared());
        let what = |cq| Arrival::Completion { cq };
        inbox.add(20, what(1), true);
        inbox.add(10, what(2), false);
        inbox.add(20, what(3), false);
        assert_eq!(inbox.next_wake(), Some(20));
        assert!(inbox.take(9).is_none());
        let mut taken = std::vec::Vec::new();
        while let Some(entry) = inbox.take(20) {
            taken.push(entry.what);
        }
        assert_eq!(taken, [2, 1, 3].map(what));
        assert_eq!((inbox.next_wake(), inbox.entries.len()), (None, 0));
    }

    #[test]
    fn datagrams_of_one_time_come_in_the_order_of_senders_that_run_ahead() {
        let memory = Memory::private().unwrap();
        for (runs_ahead, wanted) in [(true, [1, 2, 0]), (false, [2, 1, 0])] {
            let mut datagrams = Datagrams::new(memory.shared());
            datagrams.add(7, 0, b"late", runs_ahead);
            datagrams.add(5, 2, b"", runs_ahead);
            datagrams.add(5, 1, b"", runs_ahead);
            assert_eq!(datagrams.take(), None, "none has arrived");
            let taken = [(); 3].map(|()| {
                datagrams.arrive();
                datagrams.take().unwrap().0
            });
            assert_eq!(taken, wanted);
        }
    }
}
