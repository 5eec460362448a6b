//! Collective operations on intracommunicators (MPI 5.0 §6).
//!
//! [`Work`] is an operation with its arguments. An algorithm is an `async fn` over a `Call`,
//! written once: a blocking call drives it on its own stack, a nonblocking one leaves it to
//! progress. The table of `crate::algorithms` says which algorithm a call takes.
//!
//! A new collective takes a file with its algorithms, a variant of [`Work`] with its arms in
//! `work.rs` and `check.rs`, and its rows in the table.
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
mod gather;
mod halves;
mod neighbourhood;
mod network;
mod persistent;
mod records;
mod reduce;
mod reduce_scatter;
mod scan;
mod small;
mod two_level;
mod two_level_data;
mod two_level_reduce;
mod work;

use std::sync::Arc;

use crate::Result;
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
pub use blocks::Blocks;
use call::Call;
pub use reduce::Reduction;
pub use reduce_scatter::Counts;
use small::SmallCall;
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
        if let Some((collective, len)) = work.as_small() {
            let size = entry.core.size();
            if self.algorithms.takes_buffer(collective, len, size) {
                if entry.buffer.is_ready() {
                    drop(state);
                    return SmallCall {
                        rank: self,
                        waiting: &waiting,
                        comm,
                        size,
                        collective,
                        len,
                    }
                    .run(work);
                }
                if entry.buffer.is_due() {
                    let (core, tag) = (entry.core.clone(), entry.collective_tag());
                    drop(state);
                    let call = Call::new(self, &core, tag);
                    self.agree_on_buffer(&waiting, &call, comm)?;
                    return self.collective(operation, work, comm);
                }
            }
        }
        let (core, tag) = (entry.core.clone(), entry.collective_tag());
        let begins = core.network.begin();
        drop(state);
        let call = Call::new(self, &core, tag);
        if call.core.network.agreed.get().is_none() {
            self.block_on(&waiting, network::settle(&call, begins))?;
        }
        self.run_collective(&waiting, &call, work)
    }

    /// Drives the algorithm by messages. Frequent operations have futures of their own, so that
    /// they do not pay for the size of the largest one.
    fn run_collective(&self, waiting: &Waiting, call: &Call<'_>, work: &Work) -> Result<()> {
        match work {
            Work::Barrier => self.block_on(waiting, barrier::barrier(call)),
            Work::Bcast { buffer, root } => {
                self.block_on(waiting, bcast::bcast(call, buffer, *root as usize))
            }
            Work::Reduce { reduction, root } => {
                self.block_on(waiting, reduce::reduce(call, reduction, *root as usize))
            }
            Work::Allreduce(reduction) => {
                self.block_on(waiting, reduce::allreduce(call, reduction))
            }
            _ => self.block_on(waiting, work.run(call)),
        }
    }

    /// Starts a collective operation; the request completes when this rank's part is done.
    pub fn start_collective(self: &Arc<Rank>, work: Work, comm: u32) -> Result<RequestId> {
        let (core, tag, begins) = {
            let mut state = self.lock();
            let entry = state.comms.get_mut(comm)?;
            work.check(&entry.core)?;
            let begins = entry.core.network.begin();
            (entry.core.clone(), entry.collective_tag(), begins)
        };
        let rank = self.clone();
        self.spawn(Some(core.context), async move {
            let call = Call::new(&rank, &core, tag);
            network::settle(&call, begins).await?;
            work.run(&call).await
        })
    }
}
