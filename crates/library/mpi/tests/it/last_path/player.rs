//! A rank of a case, and the judge of its operations: each ends in time, with the right result or
//! with a true error.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use mpi::request::{Finished, RequestId};
use mpi::{Class, Rank, Result, State, Status};
use sim::Random;

use super::case::{Case, How, MILLI, PATIENCE, SECOND};
use crate::common::random_reductions::Results;

/// The time after the return of the network in which every operation ends, in nanoseconds: a link is
/// tried again every 0.4 s, and an attempt may fail for 0.54 s.
const RETURN: u64 = 2 * SECOND;
/// The time after the end of the patience in which every operation ends, in nanoseconds.
const LOSS: u64 = SECOND;
/// The time in which a request over a dead rail fails, in nanoseconds.
const DETECTION: u64 = 600 * MILLI;
/// The longest computing between two polls of a program, in nanoseconds.
const POLLING: u64 = 4 * MILLI;

/// A byte that no rank sends.
const UNTOUCHED: u8 = 0x5a;

/// A rank of a case.
pub(super) struct Player<'a> {
    pub(super) rank: &'a Arc<Rank>,
    pub(super) case: &'a Case,
    pub(super) results: &'a Results,
    /// The end of the last path, in nanoseconds.
    begin: u64,
    /// Decisions of this rank alone.
    own: RefCell<Random>,
    /// The intercommunicator of collective operations between two groups, if all have it.
    pub(super) between: Cell<Option<u32>>,
    /// An operation has failed.
    has_lost: Cell<bool>,
    /// Memory of receives that have failed, which nobody may touch any more.
    buried: RefCell<Vec<Vec<u8>>>,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        rank: &'a Arc<Rank>,
        case: &'a Case,
        results: &'a Results,
        begin: u64,
    ) -> Player<'a> {
        let seed = case.seed ^ (rank.rank() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Player {
            rank,
            case,
            results,
            begin,
            own: RefCell::new(Random::new(seed)),
            between: Cell::new(None),
            has_lost: Cell::new(false),
            buried: RefCell::default(),
        }
    }

    pub(super) fn me(&self) -> usize {
        self.rank.rank()
    }

    /// A number below `bound` that this rank alone draws.
    pub(super) fn draw(&self, bound: u64) -> u64 {
        self.own.borrow_mut().below(bound)
    }

    /// Partners of a round: each is the partner of its partner.
    pub(super) fn partners(&self, round: u64) -> Vec<usize> {
        let others = self.case.ranks - 1;
        let at = |turn: u64| self.me() ^ (1 + (round + turn) as usize % others);
        (0..others.min(2) as u64).map(at).collect()
    }

    /// An operation with this peer may fail; with `None`, one of all ranks.
    pub(super) fn may_fail(&self, peer: Option<usize>) -> bool {
        let separated = peer.is_none_or(|peer| self.case.separates(self.me(), peer));
        self.case.is_for_ever() && separated
    }

    /// An operation of this rank has failed.
    pub(super) fn has_lost(&self) -> bool {
        self.has_lost.get()
    }

    /// The fault has begun by this time.
    pub(super) fn is_hit(&self, time: u64) -> bool {
        time >= self.begin
    }

    /// Computes, without calls of MPI.
    pub(super) fn compute(&self, nanos: u64) {
        self.rank.enter(mpi::ProgramCall::after(nanos, "MPI_Wtime"));
        self.rank.leave();
    }

    /// The time at which an operation that began at `since` has ended. Each waits at most for the
    /// end of the fault, or of the patience, and for ranks that compute.
    fn limit(&self, since: u64, has_failed: bool) -> u64 {
        let until = |waits: u64| since.max(self.begin.saturating_add(waits));
        let limit = match self.case.span {
            Some(span) => until(span) + RETURN,
            // The peer answers. Only the time of attempts counts, and only from the first message.
            None if self.case.how == How::Unacknowledged => until(0) + 3 * PATIENCE + LOSS,
            None if has_failed => until(PATIENCE) + LOSS,
            // Other ranks may have rails that nobody has used since they failed.
            None => until(PATIENCE) + LOSS + DETECTION * self.case.ranks as u64,
        };
        limit + self.case.rounds * self.case.computing
    }

    fn is_in_time(&self, what: &str, since: u64, has_failed: bool) {
        let (now, limit) = (self.rank.now(), self.limit(since, has_failed));
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        assert!(
            now <= limit,
            "rank {}: {what} began at {:.6} s and ends at {:.6} s, later than {:.6} s; the fault \
             began at {:.6} s",
            self.me(),
            seconds(since),
            seconds(now),
            seconds(limit),
            seconds(self.begin),
        );
    }

    /// Judges the end of an operation with a peer. The status, if it has succeeded.
    pub(super) fn ended(
        &self,
        what: &str,
        peer: Option<usize>,
        since: u64,
        result: Result<Status>,
    ) -> Option<Status> {
        let has_failed = !matches!(&result, Ok(status) if status.error == Class::SUCCESS);
        self.is_in_time(what, since, has_failed);
        let (class, text) = match result {
            Ok(status) if status.error == Class::SUCCESS => return Some(status),
            Ok(status) => {
                let is_loss = self.rank.lock().is_loss(status.error);
                assert!(is_loss, "{what}: {status:?}");
                (status.error, format!("{status:?}"))
            }
            Err(error) => {
                assert!(
                    error.is_loss(),
                    "rank {}: {what} with {peer:?}: {error}",
                    self.me()
                );
                (error.class, error.to_string())
            }
        };
        assert!(
            self.may_fail(peer),
            "rank {}: {what} with {peer:?}, which is reached: {text}",
            self.me()
        );
        assert_eq!(class, Class::OTHER, "{what}: {text}");
        self.has_lost.set(true);
        None
    }

    /// [`ended`](Player::ended) for an operation without a status. True if it has succeeded.
    pub(super) fn done(
        &self,
        what: &str,
        peer: Option<usize>,
        since: u64,
        result: Result<()>,
    ) -> bool {
        let result = result.map(|()| Status::EMPTY);
        self.ended(what, peer, since, result).is_some()
    }

    /// Polls as a program does that computes between its calls.
    pub(super) fn poll<T>(
        &self,
        what: &'static str,
        since: u64,
        mut done: impl FnMut(&mut State) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut pause = 100;
        loop {
            if let Some(found) = self.rank.poll_for(what, &mut done)? {
                return Ok(found);
            }
            self.is_in_time(what, since, false);
            self.rank.enter(mpi::ProgramCall::after(pause, what));
            self.rank.leave();
            pause = POLLING.min(pause * 2);
        }
    }

    /// Waits for a request in one call.
    pub(super) fn wait(&self, id: RequestId) -> Result<Finished> {
        self.rank.wait_request("MPI_Wait", id)
    }

    /// Keeps the memory of a receive that has failed.
    pub(super) fn bury(&self, mut memory: Vec<u8>) {
        memory.fill(UNTOUCHED);
        self.buried.borrow_mut().push(memory);
    }

    /// Checks that nobody has touched the memory of failed receives.
    pub(super) fn check_buried(&self) {
        for memory in self.buried.borrow().iter() {
            let is_whole = memory.iter().all(|byte| *byte == UNTOUCHED);
            assert!(
                is_whole,
                "rank {}: memory was written after its receive had failed",
                self.me()
            );
        }
    }
}
