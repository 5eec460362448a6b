//! The completion queues of a modelled machine. An entry can be polled once the HCA's write of it
//! is visible.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use device::{Completion, Cq, Error, Result};

/// The greatest number of entries of a completion queue.
const DEPTH: usize = 1 << 20;

struct CompletionQueue {
    rank: u32,
    rail: u32,
    depth: u32,
    /// The ring of completion entries.
    entries: Vec<Entry>,
    /// The position of the oldest entry in the ring of completions.
    first: u32,
    /// The number of entries that the rank has not polled.
    len: u32,
    /// The number of entries that are visible and have not been polled.
    visible: u32,
    /// The time at which the last entry becomes visible.
    last: Time,
    /// True if the queue has overflowed and can no longer be used (IBA 11.6.3.1).
    overrun: bool,
}

/// An entry of a completion queue, with its effect on the send queue.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub completion: Completion,
    /// The number of send queue slots that the completion frees. `None` for the completion of a
    /// receive.
    pub frees: Option<u32>,
    /// The epoch of the queue pair to which the completion belongs.
    pub life: u32,
}

/// The result of the HCA's attempt to write an entry.
#[derive(Debug, PartialEq)]
pub(crate) enum Written {
    /// The completion becomes visible to the rank at the time `at`.
    Visible { rank: u32, at: Time },
    /// The completion queue has overflowed with this entry.
    Overrun,
    /// The queue had overflowed before, so the completion is lost.
    Dropped,
}

/// The completion queues of all ranks.
pub(crate) struct CompletionQueues {
    memory: WorldMemory,
    all: Vec<CompletionQueue>,
}

impl CompletionQueues {
    pub(crate) fn new(memory: WorldMemory) -> CompletionQueues {
        CompletionQueues {
            memory,
            all: Vec::new_in(memory),
        }
    }

    /// Makes a completion queue of `depth` entries, or of `most` if that is less: a faulty HCA.
    pub(crate) fn create(
        &mut self,
        (rank, rail): (u32, u32),
        depth: usize,
        most: u32,
    ) -> Result<Cq> {
        if !(1..=DEPTH).contains(&depth) {
            return Err(Error::Invalid(format!(
                "a completion queue of {depth}; valid are 1 to {DEPTH}"
            )));
        }
        self.all.push(CompletionQueue {
            rank,
            rail,
            depth: (depth as u32).min(most),
            entries: Vec::new_in(self.memory),
            first: 0,
            len: 0,
            visible: 0,
            last: 0,
            overrun: false,
        });
        Ok(Cq(self.all.len() as u32 - 1))
    }

    /// The number of a completion queue. An error if the queue does not belong to this device.
    pub(crate) fn own(&self, (rank, rail): (u32, u32), cq: Cq) -> Result<u32> {
        match self.all.get(cq.0 as usize) {
            Some(own) if (own.rank, own.rail) == (rank, rail) => Ok(cq.0),
            _ => Err(Error::Invalid(format!(
                "completion queue {} is not of this device",
                cq.0
            ))),
        }
    }

    /// Writes an entry that becomes visible at `at`, but not before earlier entries of its queue.
    pub(crate) fn write(&mut self, cq: u32, at: Time, entry: Entry) -> Written {
        let own = &mut self.all[cq as usize];
        if own.overrun {
            return Written::Dropped;
        }
        own.last = own.last.max(at);
        if own.len == own.depth {
            own.overrun = true;
            return Written::Overrun;
        }
        if own.len as usize == own.entries.len() {
            // Entries that were never used take no memory.
            own.entries.rotate_left(own.first as usize);
            own.first = 0;
            own.entries.push(entry);
        } else {
            let at = (own.first + own.len) as usize % own.entries.len();
            own.entries[at] = entry;
        }
        own.len += 1;
        Written::Visible {
            rank: own.rank,
            at: own.last,
        }
    }

    /// Makes one more entry of a completion queue visible.
    pub(crate) fn show(&mut self, cq: u32) {
        self.all[cq as usize].visible += 1;
    }

    /// Moves visible entries to `into` and calls `taken` with each. Returns their number.
    pub(crate) fn poll(
        &mut self,
        cq: u32,
        into: &mut [Completion],
        mut taken: impl FnMut(&Entry),
    ) -> Result<usize> {
        let own = &mut self.all[cq as usize];
        if own.overrun {
            return Err(Error::System(format!(
                "completion queue {cq} was overrun: more than {} completions came before one was taken",
                own.depth
            )));
        }
        let count = (own.visible as usize).min(into.len());
        for place in &mut into[..count] {
            let entry = &own.entries[own.first as usize];
            own.first = (own.first + 1) % own.entries.len() as u32;
            *place = entry.completion;
            taken(entry);
        }
        own.len -= count as u32;
        own.visible -= count as u32;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use device::{Completed, Qp, Status};
    use sim::memory::Memory;

    use super::*;

    fn entry(id: u64) -> Entry {
        Entry {
            completion: Completion {
                id,
                qp: Qp(0),
                status: Status::Success,
                of: Completed::Write,
                bytes: 0,
                immediate: None,
            },
            frees: None,
            life: 0,
        }
    }

    #[test]
    fn entries_come_in_order_until_one_too_many() {
        let memory = Memory::private().unwrap();
        let mut queues = CompletionQueues::new(memory.shared());
        assert!(queues.create((0, 0), 0, 9).is_err());
        let cq = queues.create((7, 1), 8, 2).unwrap();
        assert!(queues.own((7, 0), cq).is_err());
        let cq = queues.own((7, 1), cq).unwrap();
        let visible = |at| Written::Visible { rank: 7, at };
        let mut into = [entry(0).completion; 4];
        for round in 0..3 {
            assert_eq!(queues.write(cq, 20, entry(round)), visible(20));
            assert_eq!(queues.poll(cq, &mut into, |_| ()).unwrap(), 0);
            queues.show(cq);
            assert_eq!(queues.poll(cq, &mut into, |_| ()).unwrap(), 1);
            assert_eq!(into[0].id, round);
        }
        assert_eq!(queues.write(cq, 30, entry(1)), visible(30));
        assert_eq!(queues.write(cq, 25, entry(2)), visible(30), "not before");
        assert_eq!(queues.write(cq, 40, entry(3)), Written::Overrun);
        assert_eq!(queues.write(cq, 40, entry(4)), Written::Dropped);
        assert!(queues.poll(cq, &mut into, |_| ()).is_err());
    }
}
