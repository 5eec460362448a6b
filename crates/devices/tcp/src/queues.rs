//! Completion queues and queues of receives, and the access that a connection's protocol machine
//! has to them.

use std::collections::VecDeque;

use device::{Completion, Qp, Status};

use super::frame::{Change, Done, Host, Receive, Right};
use super::regions::Regions;

/// The most keys of written regions that are kept until the owner takes them. With more, the owner
/// learns that any memory may have changed.
const MOST_WRITTEN: usize = 1024;

/// A completion queue of a device.
#[derive(Debug, Default)]
pub(crate) struct CompletionQueue {
    all: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    completion: Completion,
    /// The number of entries of the send queue that are free once the completion has been taken.
    retires: u32,
    /// True for a receive of a shared queue: its completion outlives its queue pair.
    is_shared: bool,
}

impl CompletionQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes the next completion, with the number of entries of the send queue that it frees.
    pub(crate) fn take(&mut self) -> Option<(Completion, u32)> {
        let entry = self.all.pop_front()?;
        Some((entry.completion, entry.retires))
    }

    pub(crate) fn add(&mut self, qp: Qp, done: Done, is_shared: bool) {
        let completion = Completion {
            id: done.id,
            qp,
            status: done.status,
            of: done.of,
            bytes: done.bytes,
            immediate: done.immediate,
        };
        self.all.push_back(Entry {
            completion,
            retires: done.retires,
            is_shared,
        });
    }

    /// Drops the completions of a queue pair, except those of shared receives.
    pub(crate) fn forget(&mut self, qp: Qp) {
        self.all
            .retain(|entry| entry.is_shared || entry.completion.qp != qp);
    }
}

/// A receive queue of a device.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    depth: usize,
    all: VecDeque<Receive>,
}

impl ReceiveQueue {
    pub(crate) fn new(depth: usize) -> ReceiveQueue {
        ReceiveQueue {
            depth,
            all: VecDeque::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a receive. False: the queue is full.
    pub(crate) fn add(&mut self, receive: Receive) -> bool {
        let has_room = self.all.len() < self.depth;
        if has_room {
            self.all.push_back(receive);
        }
        has_room
    }

    pub(crate) fn take(&mut self) -> Option<Receive> {
        self.all.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }
}

/// The keys of the regions that peers have written to.
#[derive(Debug, Default)]
pub(crate) struct Written {
    keys: Vec<u32>,
    /// True if there were more keys than could be kept.
    has_lost: bool,
}

impl Written {
    fn add(&mut self, key: u32) {
        if self.keys.last() == Some(&key) {
            return;
        }
        match self.keys.len() < MOST_WRITTEN {
            true => self.keys.push(key),
            false => self.has_lost = true,
        }
    }

    /// Moves the keys to `into`. False: some are missing.
    pub(crate) fn take(&mut self, into: &mut Vec<u32>) -> bool {
        into.append(&mut self.keys);
        !std::mem::take(&mut self.has_lost)
    }
}

/// The memory and the queues of one queue pair.
pub(crate) struct Place<'a> {
    pub qp: Qp,
    pub regions: &'a Regions,
    pub cqs: &'a mut [CompletionQueue],
    pub send_cq: usize,
    pub receive_cq: usize,
    /// The queue that the queue pair takes receives from: its own, or a shared one.
    pub receives: &'a mut ReceiveQueue,
    pub written: &'a mut Written,
}

impl Place<'_> {
    /// Flushes the receives of the queue pair's own queue.
    pub(crate) fn flush_receives(&mut self) {
        while let Some(receive) = self.receives.take() {
            let done = Done {
                id: receive.id,
                of: device::Completed::Receive,
                status: Status::Flushed,
                bytes: 0,
                immediate: None,
                retires: 0,
            };
            self.complete(done, false);
        }
    }
}

impl Host for Place<'_> {
    #[inline]
    fn allows(&self, key: u32, address: u64, len: u64, right: Right) -> bool {
        self.regions.allows(key, address, len, right)
    }

    #[inline]
    fn place(&mut self, address: u64, bytes: &[u8]) {
        // SAFETY: the machine places only what `allows` has allowed since the regions last changed.
        unsafe { self.regions.place(address, bytes) }
    }

    fn copy(&self, address: u64, len: usize, into: &mut Vec<u8>) {
        // SAFETY: memory of a request that is being posted, whose owner keeps it for this time.
        unsafe { self.regions.copy(address, len, into) }
    }

    fn change(&mut self, address: u64, change: Change) -> u64 {
        // SAFETY: as in `place`; the machine has checked the alignment.
        unsafe { self.regions.change(address, change) }
    }

    fn receive(&mut self) -> Option<Receive> {
        self.receives.take()
    }

    fn wrote(&mut self, key: u32) {
        self.written.add(key);
    }

    fn complete(&mut self, done: Done, is_shared: bool) {
        let cq = match done.retires {
            0 => self.receive_cq,
            _ => self.send_cq,
        };
        self.cqs[cq].add(self.qp, done, is_shared);
    }
}
