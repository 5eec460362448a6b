//! Lanes: collective buffers for operations with several steps. The operations of one lane take it
//! in turn, in the order in which they began.
//!
//! Invariants:
//! - all members begin the operations of a lane in one order, so that their turns agree;
//! - a lane stays as long as a communicator or an operation has its handle.

use std::sync::Arc;

use channel::collective_buffer::CollectiveBuffer;

use crate::Result;

/// The handle of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    place: Arc<usize>,
    /// Each member can read and write the memory of all.
    pub(crate) is_direct: bool,
}

/// A step on a lane's buffer. False: it must wait for another member.
pub(crate) type Step = dyn Fn(&mut CollectiveBuffer) -> Result<bool> + Send + Sync;

/// A round of a lane: one step, which is tried again until it says that the round is over.
#[derive(Clone)]
pub struct Round {
    /// The lane.
    pub(crate) lane: Lane,
    /// The step. A step that is repeated begins anew, and leaves what the last one left.
    pub(crate) step: Arc<Step>,
    /// The turn in the lane.
    pub(crate) turn: u64,
    /// The context of the communicator whose error handler receives a failure.
    pub(crate) context: u64,
}

/// The lanes of a rank.
#[derive(Default)]
pub(crate) struct Lanes {
    entries: Vec<Option<Entry>>,
}

struct Entry {
    handle: Lane,
    buffer: CollectiveBuffer,
    /// Turns that have been given out.
    issued: u64,
    /// The turn that has the lane.
    current: u64,
    /// Turns that were given up before they came.
    skipped: Vec<u64>,
    /// The operation whose turn it is waits for another member.
    waits: bool,
}

impl Lanes {
    /// A lane over this buffer.
    pub(crate) fn add(&mut self, buffer: CollectiveBuffer, is_direct: bool) -> Lane {
        let free = self.entries.iter().position(Option::is_none);
        let at = free.unwrap_or(self.entries.len());
        let handle = Lane {
            place: Arc::new(at),
            is_direct,
        };
        let entry = Some(Entry {
            handle: handle.clone(),
            buffer,
            issued: 0,
            current: 0,
            skipped: Vec::new(),
            waits: false,
        });
        match self.entries.get_mut(at) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        handle
    }

    /// Gives up the buffers of lanes without a user.
    pub(crate) fn sweep(&mut self) {
        for entry in &mut self.entries {
            entry.take_if(|entry| Arc::strong_count(&entry.handle.place) == 1);
        }
    }

    fn entry(&mut self, lane: &Lane) -> &mut Entry {
        let entry = self.entries.get_mut(*lane.place).and_then(Option::as_mut);
        entry.expect("a lane stays as long as its handle")
    }

    /// The number of the next turn.
    pub(crate) fn issue(&mut self, lane: &Lane) -> u64 {
        let entry = self.entry(lane);
        entry.issued += 1;
        entry.issued - 1
    }

    /// Takes a step of the operation with this turn. False: its turn has not come, or the step says
    /// so, because it must wait for another member.
    #[inline]
    pub(crate) fn step(
        &mut self,
        lane: &Lane,
        turn: u64,
        step: impl FnOnce(&mut CollectiveBuffer) -> Result<bool>,
    ) -> Result<bool> {
        let entry = self.entry(lane);
        if entry.current != turn || entry.waits && !entry.buffer.may_go_on() {
            return Ok(false);
        }
        let done = step(&mut entry.buffer)?;
        entry.waits = !done;
        Ok(done)
    }

    /// Ends a turn, also one that has not come. `failed`: in a round that is open, which is given
    /// up.
    pub(crate) fn end(&mut self, lane: &Lane, turn: u64, failed: bool) {
        let entry = self.entry(lane);
        if entry.current != turn {
            entry.skipped.push(turn);
            return;
        }
        if failed {
            entry.buffer.abandon();
        }
        entry.waits = false;
        entry.current += 1;
        while let Some(at) = entry.skipped.iter().position(|turn| *turn == entry.current) {
            entry.skipped.swap_remove(at);
            entry.current += 1;
        }
    }

    /// Some operation waited for another member, and can go on.
    #[inline]
    pub(crate) fn may_go_on(&self) -> bool {
        let mut entries = self.entries.iter().flatten();
        entries.any(|entry| entry.waits && entry.buffer.may_go_on())
    }
}
