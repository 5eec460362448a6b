//! Lanes: collective buffers for operations with several steps. The operations of one lane use its
//! buffer one after another, in the order in which they began.
//!
//! Invariants:
//! - all members begin the operations of a lane in one order, so that their turns agree;
//! - a lane stays as long as a communicator or an operation has its handle.

use std::sync::Arc;

use channel::collective_buffer::CollectiveBuffer;

use crate::Result;

/// The handle of a lane. The lane exists as long as one of its handles.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    place: Arc<usize>,
    /// True if each member can read and write the memory of all members.
    pub(crate) is_direct: bool,
    /// True if each member has a core of its own.
    pub(crate) core_each: bool,
}

/// A step on a lane's buffer. Returns false if it must wait for another member.
pub(crate) type Step = dyn Fn(&mut CollectiveBuffer) -> Result<bool> + Send + Sync;

/// One use of a lane's buffer by one operation. The step is repeated until it reports the end of
/// the round.
#[derive(Clone)]
pub struct Round {
    /// The lane in which the operation takes its turn.
    pub(crate) lane: Lane,
    /// The step. A repeated step begins from the start, on the state that the previous attempt has
    /// left.
    pub(crate) step: Arc<Step>,
    /// The number of the operation's turn in the lane.
    pub(crate) turn: u64,
    /// The context of the communicator whose error handler receives a failure.
    pub(crate) context: u64,
}

/// The lanes (collective buffers whose operations take turns) of a rank.
#[derive(Default)]
pub(crate) struct Lanes {
    entries: Vec<Option<Entry>>,
}

struct Entry {
    handle: Lane,
    buffer: CollectiveBuffer,
    /// The number of turns that operations of the lane have got.
    issued: u64,
    /// The number of the turn that may use the lane now.
    current: u64,
    /// Turns whose operations ended before the lane reached them.
    skipped: Vec<u64>,
    /// True if the operation of the current turn waits for other members.
    waits: bool,
}

impl Lanes {
    /// Adds a lane that uses this buffer.
    pub(crate) fn add(&mut self, buffer: CollectiveBuffer, is_direct: bool) -> Lane {
        let free = self.entries.iter().position(Option::is_none);
        let at = free.unwrap_or(self.entries.len());
        let handle = Lane {
            place: Arc::new(at),
            is_direct,
            core_each: buffer.core_each,
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

    /// Drops the lanes, and their buffers, that have no handle outside this table.
    pub(crate) fn sweep(&mut self) {
        for entry in &mut self.entries {
            entry.take_if(|entry| Arc::strong_count(&entry.handle.place) == 1);
        }
    }

    fn entry(&mut self, lane: &Lane) -> &mut Entry {
        let entry = self.entries.get_mut(*lane.place).and_then(Option::as_mut);
        entry.expect("a lane stays as long as its handle")
    }

    /// Assigns the next turn of a lane, and returns its number.
    pub(crate) fn issue(&mut self, lane: &Lane) -> u64 {
        let entry = self.entry(lane);
        entry.issued += 1;
        entry.issued - 1
    }

    /// Executes a step of the operation with this turn. Returns false if an earlier turn has the
    /// lane, or if the step must wait for another member.
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

    /// Ends a turn, whether or not it is the current one. `failed`: the operation failed within a
    /// round, which is abandoned.
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

    /// True if an operation that waited for other members can continue.
    #[inline]
    pub(crate) fn may_go_on(&self) -> bool {
        let mut entries = self.entries.iter().flatten();
        entries.any(|entry| entry.waits && entry.buffer.may_go_on())
    }
}
