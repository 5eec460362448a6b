//! Collective operations on intracommunicators (MPI 5.0 §6).
//!
//! [`Work`] is an operation with its arguments. An algorithm is an `async fn` over a `Call`,
//! written once: a blocking call drives it on its own stack, a nonblocking one leaves it to
//! progress. The table of `crate::algorithms` says which algorithm a call takes.
//!
//! Members that share memory need no messages: in a round of a collective buffer each publishes a
//! vector (`steps`; `pieces` of long ones), or names of its memory (`direct`). Blocking calls of
//! one communicator use one buffer, nonblocking ones take turns in another (`crate::lanes`), and
//! each persistent operation has its own.
//!
//! A new collective takes:
//! - a variant of [`Work`], with its arms in `work`, `check`, `small` and `pieces`;
//! - a file with its algorithms by messages; for members that share memory a step in `steps`, and
//!   in `direct` its copies, if vectors or blocks of it can be named;
//! - a variant of `crate::algorithms::Collective`, with its rows there and its cost in
//!   `crate::algorithms::cost`;
//! - its procedures in the crate `abi`.
//!
//! Invariants:
//! - no lock is held while a user's operation runs;
//! - two members start the messages between them in one operation in the same order;
//! - an operation that failed leaves nothing posted.

mod allgather;
mod alltoall;
mod barrier;
mod bcast;
mod blocks;
mod buffer_agreement;
mod buffer_round;
mod call;
mod check;
mod direct;
mod direct_reduce;
mod gather;
mod halves;
mod lane_turn;
mod neighbourhood;
mod network;
mod persistent;
mod pieces;
mod records;
mod reduce;
mod reduce_scatter;
mod reduce_tree;
mod scan;
mod small;
mod steps;
mod two_level;
mod two_level_data;
mod two_level_reduce;
mod two_level_v;
mod work;

use std::sync::Arc;

use crate::Result;
use crate::algorithms::Algorithm;
use crate::comm::Comm;
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
pub use blocks::Blocks;
use call::Call;
use direct::Direct;
use lane_turn::{LaneTurn, Ticket};
pub use reduce::Reduction;
pub use reduce_scatter::Counts;
use small::SmallCall;
use work::SharedCall;
pub use work::Work;

impl Rank {
    /// Runs a collective operation, and returns when this rank's part is done. `operation`: the
    /// name of the procedure, for reports.
    #[inline]
    pub fn collective(&self, operation: &'static str, work: &Work, comm: u32) -> Result<()> {
        let waiting = Waiting::in_call(operation);
        let mut state = self.lock();
        let entry = state.comms.get_mut(comm)?;
        work.check(&entry.core)?;
        let size = entry.core.size();
        if let Some(shared) = work.as_shared(entry.core.rank, size) {
            match self.shared_algorithm(entry, &shared, work) {
                Algorithm::Shared if entry.buffer.is_ready() => {
                    let me = entry.core.rank;
                    drop(state);
                    return SmallCall {
                        rank: self,
                        waiting: &waiting,
                        comm,
                        me,
                        size,
                        kind: shared.kind,
                        len: shared.published,
                    }
                    .run(work);
                }
                Algorithm::Direct if let Some(lane) = entry.lane.clone() => {
                    let core = entry.core.clone();
                    let ticket = Ticket::take(&mut state, &lane);
                    drop(state);
                    let call = Call::new(self, &core, 0);
                    let among = Some(core.context);
                    let turn = by_lane(&call, ticket, &shared, true, work);
                    return self.block_on(&waiting, among, turn);
                }
                Algorithm::Shared | Algorithm::Direct if entry.buffer.is_due() => {
                    let (core, tag) = (entry.core.clone(), entry.collective_tag());
                    drop(state);
                    let call = Call::new(self, &core, tag);
                    self.agree_on_buffer(&waiting, &call, comm)?;
                    return self.collective(operation, work, comm);
                }
                _ => {}
            }
        }
        let (core, tag) = (entry.core.clone(), entry.collective_tag());
        let begins = core.network.begin();
        drop(state);
        let call = Call::new(self, &core, tag);
        if call.core.network.agreed.get().is_none() {
            let among = Some(core.context);
            self.block_on(&waiting, among, network::settle(&call, begins))?;
        }
        self.run_collective(&waiting, &call, work)
    }

    /// Drives the algorithm by messages. Frequent operations have futures of their own, so that
    /// they do not pay for the size of the largest one.
    fn run_collective(&self, waiting: &Waiting, call: &Call<'_>, work: &Work) -> Result<()> {
        let among = Some(call.core.context);
        match work {
            Work::Barrier => self.block_on(waiting, among, barrier::barrier(call)),
            Work::Bcast { buffer, root } => {
                self.block_on(waiting, among, bcast::bcast(call, buffer, *root as usize))
            }
            Work::Reduce { reduction, root } => {
                let root = *root as usize;
                self.block_on(waiting, among, reduce::reduce(call, reduction, root))
            }
            Work::Allreduce(reduction) => {
                self.block_on(waiting, among, reduce::allreduce(call, reduction))
            }
            _ => self.block_on(waiting, among, work.run(call)),
        }
    }

    /// The algorithm of a call whose members share memory, if they are known to.
    #[inline(always)]
    fn shared_algorithm(&self, comm: &Comm, shared: &SharedCall, work: &Work) -> Algorithm {
        let size = comm.core.size();
        if self.algorithms.takes_buffer(shared.published, size) {
            return Algorithm::Shared;
        }
        // Before the members have agreed on buffers, they count the calls that could use them.
        let direct = match &comm.lane {
            Some(lane) => lane.is_direct,
            None => !comm.buffer.is_ready(),
        };
        let case = shared.case(size, direct);
        let algorithm = self.algorithms.algorithm(shared.collective, case);
        if algorithm == Algorithm::Direct && !work.can_be_direct() {
            let case = shared.case(size, false);
            return self.algorithms.algorithm(shared.collective, case);
        }
        algorithm
    }

    /// Starts a collective operation; the request completes when this rank's part is done.
    pub fn start_collective(self: &Arc<Rank>, work: Work, comm: u32) -> Result<RequestId> {
        let mut state = self.lock();
        let entry = state.comms.get_mut(comm)?;
        work.check(&entry.core)?;
        let core = entry.core.clone();
        let rank = self.clone();
        if let Some(lane) = entry.lane.clone()
            && let Some(shared) = work.as_shared(core.rank, core.size())
        {
            let algorithm = self.shared_algorithm(entry, &shared, &work);
            if matches!(algorithm, Algorithm::Shared | Algorithm::Direct) {
                let work = Arc::new(work);
                let round = match algorithm {
                    Algorithm::Shared => small::as_round(lane.clone(), &core, &shared, &work),
                    _ => None,
                };
                if let Some(round) = round {
                    return state.start_round(round);
                }
                let ticket = Ticket::take(&mut state, &lane);
                drop(state);
                return self.spawn(Some(core.context), async move {
                    let call = Call::new(&rank, &core, 0);
                    let direct = algorithm == Algorithm::Direct;
                    by_lane(&call, ticket, &shared, direct, &work).await
                });
            }
        }
        let (tag, begins) = (entry.collective_tag(), core.network.begin());
        drop(state);
        self.spawn(Some(core.context), async move {
            let call = Call::new(&rank, &core, tag);
            network::settle(&call, begins).await?;
            work.run(&call).await
        })
    }
}

/// Runs an operation in its turn in a lane: by names of memory if `direct`, otherwise by vectors.
async fn by_lane(
    call: &Call<'_>,
    ticket: Ticket,
    shared: &SharedCall,
    direct: bool,
    work: &Work,
) -> Result<()> {
    let turn = LaneTurn::new(call.rank, ticket, shared.kind, direct);
    if direct {
        return Direct::new(call, turn, shared.bytes).run(work).await;
    }
    small::by_lane(&turn, work, (call.me(), call.size()), shared.published).await
}
