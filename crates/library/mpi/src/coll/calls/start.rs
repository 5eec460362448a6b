//! The start of a collective operation: the choice of the method that runs it.

use channel::lock::Guard;
use datatype::Op;
use std::sync::Arc;

use super::buffer_agreement::combined;
use super::call::Call;
use super::direct::Direct;
use super::lane_turn::{LaneTurn, Ticket};
use super::rounds::{self, BlockingCall, OfAll};
use super::signature::SharedFacts;
use super::{Work, network};
use crate::Result;
use crate::algorithms::contest::{Subject, Turn, WAYS, Way};
use crate::algorithms::{self, Algorithm};
use crate::coll::lanes::Lane;
use crate::comm::Comm;
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
use crate::state::State;

/// The method by which a collective call is executed.
enum RunBy {
    /// One round of the communicator's collective buffer for blocking calls.
    Round(SharedFacts),
    /// Rounds of a lane's buffer. The members publish remote keys of their memory if `direct`,
    /// otherwise their vectors.
    Lane {
        lane: Lane,
        facts: SharedFacts,
        direct: bool,
    },
    /// Messages in which the members agree on a collective buffer; then the choice is repeated.
    Agreement,
    /// Messages alone, without a collective buffer.
    Messages,
    /// Messages in which the members add up their times of each [`Way`]; then the choice is
    /// repeated.
    Comparison(Subject, [u64; WAYS]),
    /// The given [`Way`]; the time of the call is recorded for the contest.
    Timed(Subject, Way),
}

impl Rank {
    /// Runs a blocking collective operation, and returns when this rank's part is done. `operation`
    /// is the name of the procedure, for reports.
    #[inline]
    pub fn collective(&self, operation: &'static str, work: &Work, comm: u32) -> Result<()> {
        let waiting = Waiting::in_call(operation);
        let mut state = self.lock();
        let Some(entry) = state.objects.comms.with_one_group(comm) else {
            return self.collective_between(state, &waiting, work, comm);
        };
        work.check(&entry.core)?;
        let place = (entry.core.rank, entry.core.size());
        let facts = work.shared(place.0, place.1);
        // Short vectors use a round without further choice.
        if let Some(facts) = facts
            && entry.buffer.is_ready()
            && self.algorithms.takes_buffer(facts.published, place.1)
        {
            drop(state);
            return self.run_round(&waiting, work, comm, facts, place);
        }
        let engine = self.engine(entry, work, facts, true);
        self.run_by(engine, state, &waiting, work, comm)
    }

    /// Runs a collective operation by a round of the communicator's buffer. `place` is this rank's
    /// number among the members, and the number of members.
    #[inline(always)]
    fn run_round(
        &self,
        waiting: &Waiting<'_>,
        work: &Work,
        comm: u32,
        facts: SharedFacts,
        (me, size): (usize, usize),
    ) -> Result<()> {
        let call = BlockingCall {
            buffer: OfAll,
            rank: self,
            waiting,
            comm,
            me,
            size,
            noted: facts.noted(false),
        };
        call.run(work)
    }

    /// Runs a collective operation by the given method.
    #[inline(never)]
    fn run_by(
        &self,
        by: RunBy,
        mut state: Guard<'_, State>,
        waiting: &Waiting<'_>,
        work: &Work,
        comm: u32,
    ) -> Result<()> {
        let entry = state.objects.comms.get_mut(comm)?;
        match by {
            RunBy::Round(facts) => {
                let place = (entry.core.rank, entry.core.size());
                drop(state);
                return self.run_round(waiting, work, comm, facts, place);
            }
            RunBy::Lane {
                lane,
                facts,
                direct,
            } => {
                let core = entry.core.clone();
                let ticket = Ticket::take(&mut state.engine.lanes, &lane);
                drop(state);
                let call = Call::new(self, &core, 0);
                let among = Some(core.context);
                let turn = by_lane(self, &call, ticket, &facts, direct, work);
                return self.block_on(waiting, among, turn);
            }
            RunBy::Agreement => {
                let (core, tag) = (entry.core.clone(), entry.collective_tag());
                drop(state);
                let call = Call::new(self, &core, tag);
                self.agree_on_buffer(waiting, &call, comm)?;
                return self.collective(waiting.operation, work, comm);
            }
            RunBy::Comparison(subject, times) => {
                let (core, tag) = (entry.core.clone(), entry.collective_tag());
                drop(state);
                let call = Call::new(self, &core, tag);
                self.compare_ways(waiting, &call, comm, (subject, times))?;
                return self.collective(waiting.operation, work, comm);
            }
            RunBy::Timed(subject, way) => {
                drop(state);
                return self.run_timed(waiting, work, comm, (subject, way));
            }
            RunBy::Messages => {}
        }
        let (core, tag) = (entry.core.clone(), entry.collective_tag());
        let begins = core.network.begin();
        drop(state);
        let call = Call::new(self, &core, tag);
        if call.core.network.agreed.get().is_none() {
            let among = Some(core.context);
            self.block_on(waiting, among, network::settle(&call, begins))?;
        }
        match work.algorithm(&call) {
            Some(algorithm) => work.run_blocking(self, waiting, &call, algorithm),
            None => Ok(()),
        }
    }

    /// Chooses the method for a call on an intracommunicator.
    #[inline(always)]
    fn engine(
        &self,
        comm: &mut Comm,
        work: &Work,
        facts: Option<SharedFacts>,
        blocking: bool,
    ) -> RunBy {
        let Some(facts) = facts else {
            return RunBy::Messages;
        };
        if !blocking && comm.lane.is_none() {
            return RunBy::Messages;
        }
        if self
            .algorithms
            .takes_buffer(facts.published, comm.core.size())
        {
            return engine_of(Way::Buffer, comm, facts, blocking);
        }
        let first = Way::of(self.shared_algorithm(comm, &facts, work));
        match turn(comm, &facts, first, blocking) {
            Some((subject, Turn::Compare(times))) => RunBy::Comparison(subject, times),
            Some((subject, Turn::Take { way, timed: true })) => RunBy::Timed(subject, way),
            Some((_, Turn::Take { way, .. })) => engine_of(way, comm, facts, blocking),
            None => engine_of(first, comm, facts, blocking),
        }
    }

    /// Adds up the members' times of each [`Way`], by messages.
    #[cold]
    fn compare_ways(
        &self,
        waiting: &Waiting<'_>,
        call: &Call<'_>,
        comm: u32,
        (subject, times): (Subject, [u64; WAYS]),
    ) -> Result<()> {
        let among = Some(call.core.context);
        let sums = self.block_on(waiting, among, combined(call, times, Op::Sum))?;
        let mut state = self.lock();
        let messages = &state.engine.messages;
        messages.store_ways(subject, call.core.size(), sums);
        if let Some(contests) = &mut state.objects.comms.get_mut(comm)?.contests {
            contests.compared(subject, sums);
        }
        Ok(())
    }

    /// Runs an operation by a given [`Way`], and records the time.
    #[cold]
    fn run_timed(
        &self,
        waiting: &Waiting<'_>,
        work: &Work,
        comm: u32,
        (subject, way): (Subject, Way),
    ) -> Result<()> {
        let begun = channel::now();
        let mut state = self.lock();
        let entry = state.objects.comms.get_mut(comm)?;
        let facts = work.shared(entry.core.rank, entry.core.size());
        let engine = match facts {
            Some(facts) => engine_of(way, entry, facts, true),
            None => RunBy::Messages,
        };
        self.run_by(engine, state, waiting, work, comm)?;
        let time = channel::now().saturating_sub(begun);
        let mut state = self.lock();
        if let Some(contests) = &mut state.objects.comms.get_mut(comm)?.contests {
            contests.record(subject, way, time);
        }
        Ok(())
    }

    /// The algorithm of a call whose members share memory, or are assumed to until they have tried
    /// to agree on a buffer.
    #[inline(always)]
    fn shared_algorithm(&self, comm: &Comm, facts: &SharedFacts, work: &Work) -> Algorithm {
        let size = comm.core.size();
        // Before the members have agreed on buffers, they count the calls that could use them.
        let direct = match &comm.lane {
            Some(lane) => lane.is_direct,
            None => !comm.buffer.is_ready(),
        };
        let case = facts.case(size, direct);
        let algorithm = self.algorithms.algorithm(facts.collective, case);
        if algorithm == Algorithm::Direct && !work.can_be_direct() {
            let case = facts.case(size, false);
            return self.algorithms.algorithm(facts.collective, case);
        }
        algorithm
    }

    /// Starts a nonblocking collective operation; the request completes when this rank's part is
    /// done.
    pub fn start_collective(self: &Arc<Rank>, work: Work, comm: u32) -> Result<RequestId> {
        let mut state = self.lock();
        let Some(entry) = state.objects.comms.with_one_group(comm) else {
            drop(state);
            return self.start_collective_between(work, comm);
        };
        work.check(&entry.core)?;
        let core = entry.core.clone();
        let facts = work.shared(core.rank, core.size());
        let rank = self.clone();
        if let RunBy::Lane {
            lane,
            facts,
            direct,
        } = self.engine(entry, &work, facts, false)
        {
            let work = Arc::new(work);
            let round = match direct {
                true => None,
                false => rounds::as_round(lane.clone(), &core, &facts, &work),
            };
            if let Some(round) = round {
                return state.engine.start_round(round);
            }
            let ticket = Ticket::take(&mut state.engine.lanes, &lane);
            drop(state);
            return self.spawn(Some(core.context), async move {
                let call = Call::new(&rank, &core, 0);
                by_lane(&rank, &call, ticket, &facts, direct, &work).await
            });
        }
        let (tag, begins) = (entry.collective_tag(), core.network.begin());
        drop(state);
        self.spawn(Some(core.context), async move {
            let call = Call::new(&rank, &core, tag);
            network::settle(&call, begins).await?;
            work.by_messages(&call).await
        })
    }
}

/// The method that corresponds to a data path.
#[inline(always)]
fn engine_of(way: Way, comm: &mut Comm, facts: SharedFacts, blocking: bool) -> RunBy {
    let direct = match way {
        Way::Buffer if blocking && comm.buffer.is_ready() => return RunBy::Round(facts),
        Way::Buffer => false,
        Way::Direct => true,
        Way::Messages => return RunBy::Messages,
    };
    match &comm.lane {
        Some(lane) => RunBy::Lane {
            lane: lane.clone(),
            facts,
            direct,
        },
        None if comm.buffer.is_due() => RunBy::Agreement,
        None => RunBy::Messages,
    }
}

/// The next step of the contest for a call; `None` if the communicator has no contest for such
/// calls. Only blocking calls advance a contest: a nonblocking call uses the last winner. `first`
/// is the choice of the table.
#[inline(never)]
fn turn(
    comm: &mut Comm,
    facts: &SharedFacts,
    first: Way,
    blocking: bool,
) -> Option<(Subject, Turn)> {
    let contests = comm.contests.as_mut()?;
    let subject = Subject::of(facts.collective, facts.published)?;
    if !blocking {
        let way = contests.chosen(subject)?;
        return Some((subject, Turn::Take { way, timed: false }));
    }
    let direct = comm.lane.as_ref().is_some_and(|lane| lane.is_direct);
    let possible = || {
        let case = facts.case(comm.core.size(), direct);
        algorithms::ways(facts.collective, &case)
    };
    Some((subject, contests.next(subject, first, possible)))
}

/// Runs an operation when its turn in a lane comes. The members publish remote keys of their memory
/// if `direct`, otherwise their vectors.
pub(super) async fn by_lane(
    rank: &Rank,
    call: &Call<'_>,
    ticket: Ticket,
    facts: &SharedFacts,
    direct: bool,
    work: &Work,
) -> Result<()> {
    let turn = LaneTurn::new(rank, ticket, facts.noted(direct));
    let Some(signature) = work.signature() else {
        return Ok(());
    };
    if direct {
        return Direct::new(call, turn, facts.bytes).run(&signature).await;
    }
    rounds::by_lane(&turn, &signature, (call.me(), call.size())).await
}
