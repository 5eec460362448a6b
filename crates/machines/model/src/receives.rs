//! The posted receives of a modelled machine, in queues that belong to one queue pair or are
//! shared.

use sim::memory::{Vec, WorldMemory};

use super::message::NONE;
use super::queue_pair::DEPTH;
use device::{Error, Result, Slice, Srq};

pub(crate) struct Receives {
    memory: WorldMemory,
    queues: Vec<Entry>,
    posted: Vec<Receive>,
    free: u32,
}

/// The owner of a receive queue, and the queue's capacity.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    pub rank: u32,
    pub rail: u32,
    pub depth: u32,
    pub shared: bool,
}

struct Entry {
    queue: Queue,
    alive: bool,
    first: u32,
    last: u32,
    len: u32,
}

pub(crate) struct Receive {
    next: u32,
    pub id: u64,
    pub slices: Vec<Slice>,
}

impl Receives {
    pub(crate) fn new(memory: WorldMemory) -> Receives {
        Receives {
            memory,
            queues: Vec::new_in(memory),
            posted: Vec::new_in(memory),
            free: NONE,
        }
    }

    pub(crate) fn create(&mut self, queue: Queue) -> u32 {
        self.queues.push(Entry {
            queue,
            alive: true,
            first: NONE,
            last: NONE,
            len: 0,
        });
        self.queues.len() as u32 - 1
    }

    pub(crate) fn destroy(&mut self, queue: u32) {
        self.clear(queue);
        self.queues[queue as usize].alive = false;
    }

    pub(crate) fn clear(&mut self, queue: u32) {
        while let Some(receive) = self.take(queue) {
            self.free(receive);
        }
    }

    pub(crate) fn post(&mut self, queue: u32, id: u64, slices: &[Slice]) -> Result<()> {
        let memory = self.memory;
        if self.queues[queue as usize].len >= self.queues[queue as usize].queue.depth {
            return Err(Error::Full);
        }
        let number = match self.free {
            NONE => {
                self.posted.push(Receive {
                    next: NONE,
                    id,
                    slices: Vec::new_in(memory),
                });
                self.posted.len() as u32 - 1
            }
            number => {
                self.free = self.posted[number as usize].next;
                number
            }
        };
        let receive = &mut self.posted[number as usize];
        receive.next = NONE;
        receive.id = id;
        receive.slices.extend_from_slice(slices);
        let entry = &mut self.queues[queue as usize];
        entry.len += 1;
        match entry.last {
            NONE => entry.first = number,
            last => self.posted[last as usize].next = number,
        }
        entry.last = number;
        Ok(())
    }

    /// Takes the oldest receive of a queue. The caller must release it with `free`.
    pub(crate) fn take(&mut self, queue: u32) -> Option<u32> {
        let entry = &mut self.queues[queue as usize];
        let first = entry.first;
        if first == NONE {
            return None;
        }
        entry.len -= 1;
        entry.first = self.posted[first as usize].next;
        if entry.first == NONE {
            entry.last = NONE;
        }
        Some(first)
    }

    pub(crate) fn free(&mut self, number: u32) {
        let receive = &mut self.posted[number as usize];
        receive.slices.clear();
        receive.next = self.free;
        self.free = number;
    }

    pub(crate) fn get(&self, number: u32) -> &Receive {
        &self.posted[number as usize]
    }
    /// Makes a shared receive queue of `depth` entries.
    pub(crate) fn create_shared(&mut self, (rank, rail): (u32, u32), depth: usize) -> Result<Srq> {
        if !(1..=DEPTH).contains(&depth) {
            return Err(Error::Invalid(format!(
                "a shared receive queue of {depth}; valid are 1 to {DEPTH}"
            )));
        }
        Ok(Srq(self.create(Queue {
            rank,
            rail,
            depth: depth as u32,
            shared: true,
        })))
    }

    /// The number of a shared receive queue. An error if the queue does not belong to this device.
    pub(crate) fn own_shared(&self, (rank, rail): (u32, u32), srq: Srq) -> Result<u32> {
        match self.queues.get(srq.0 as usize) {
            Some(own)
                if own.alive
                    && own.queue.shared
                    && (own.queue.rank, own.queue.rail) == (rank, rail) =>
            {
                Ok(srq.0)
            }
            _ => Err(Error::Invalid(format!(
                "shared receive queue {} is not of this device",
                srq.0
            ))),
        }
    }
}
