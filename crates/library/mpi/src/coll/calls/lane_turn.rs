//! The use of a lane by one collective operation: it waits for its turn, then runs its rounds.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;

use channel::collective_buffer::CollectiveBuffer;

use super::buffer_round::{CallRound, NotedCall};
use crate::Result;
use crate::coll::lanes::{Lane, Lanes};
use crate::rank::Rank;

/// The turn (the time of exclusive use) of one operation in a lane, a collective buffer for one
/// operation after another. Dropping it ends the turn.
pub(super) struct LaneTurn<'a> {
    pub(super) rank: &'a Rank,
    lane: Lane,
    number: u64,
    pub(super) noted: NotedCall,
    /// True while the lane's round has begun and not ended.
    is_open: AtomicBool,
}

/// The position of an operation in the order of a lane, assigned when the operation begins.
pub(super) struct Ticket {
    lane: Lane,
    number: u64,
}

impl Ticket {
    pub(super) fn take(lanes: &mut Lanes, lane: &Lane) -> Ticket {
        Ticket {
            lane: lane.clone(),
            number: lanes.issue(lane),
        }
    }
}

impl<'a> LaneTurn<'a> {
    pub(super) fn new(
        rank: &'a Rank,
        Ticket { lane, number }: Ticket,
        noted: NotedCall,
    ) -> LaneTurn<'a> {
        LaneTurn {
            rank,
            lane,
            number,
            noted,
            is_open: AtomicBool::new(false),
        }
    }

    /// True if each member of the lane has a core.
    pub(super) fn core_each(&self) -> bool {
        self.lane.core_each
    }

    /// Repeats a step on the lane's buffer until the step returns true.
    async fn repeat(
        &self,
        mut step: impl FnMut(&mut CollectiveBuffer) -> Result<bool>,
    ) -> Result<()> {
        poll_fn(|_| {
            let mut state = self.rank.lock();
            match state.engine.lanes.step(&self.lane, self.number, &mut step) {
                Ok(true) => Poll::Ready(Ok(())),
                Ok(false) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// Repeats a step of the current round, in which members publish vectors of `len` bytes, until
    /// the step returns true.
    pub(super) async fn round(
        &self,
        len: usize,
        mut step: impl FnMut(CallRound<'_>) -> Result<bool>,
    ) -> Result<()> {
        self.is_open.store(true, Relaxed);
        let noted = self.noted.with_len(len);
        self.repeat(|buffer| noted.step(buffer, &mut step)).await
    }

    /// Records that the last step of the operation has ended the round.
    pub(super) fn has_ended(&self) {
        self.is_open.store(false, Relaxed);
    }

    /// Waits until every member has ended the last round.
    pub(super) async fn all_ended(&self) -> Result<()> {
        self.repeat(|buffer| Ok(buffer.is_over())).await
    }
}

impl Drop for LaneTurn<'_> {
    fn drop(&mut self) {
        self.rank
            .lock()
            .engine
            .lanes
            .end(&self.lane, self.number, self.is_open.load(Relaxed));
    }
}
