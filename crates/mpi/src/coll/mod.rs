//! Collective operations on intracommunicators (MPI 5.0 §6).
//!
//! [`Work`] is an operation with its arguments. Its *signature* says what each rank gives and gets;
//! from it follow the checks, the facts by which the table of `crate::algorithms` chooses, and what
//! members that share memory publish. Three engines run an operation (`start` chooses):
//! - *messages*: an algorithm is an `async fn` over a `Call`, written once; a blocking call drives
//!   it on its own stack, a nonblocking one leaves it to progress. Algorithms of two levels
//!   (`two_level_*`) are composed of flat ones, which know nothing of levels;
//! - *rounds*: members that share memory publish vectors in a collective buffer (`steps`; `pieces`
//!   of long ones). Blocking calls of one communicator use one buffer, nonblocking ones take turns
//!   in another (`crate::lanes`), and each persistent operation has its own;
//! - *direct copies*: members publish names of their memory in such a round (`direct`).
//!
//! A new collective takes:
//! - here a variant of [`Work`], with its arms in `signature` and `run`;
//! - a file with its flat algorithms;
//! - in `crate::algorithms` a variant of `Collective`, with its rows and its cost;
//! - in the crate `abi` its procedures.
//!
//! An operation of a new shape, such as another way to combine, takes a step in `steps` as well,
//! and one whose levels are of use its composition in `two_level_*`.
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
mod reduction;
mod rounds;
mod scan;
mod signature;

mod start;
mod steps;
mod two_level;
mod two_level_data;
mod two_level_reduce;
mod two_level_v;

use std::sync::Arc;

use datatype::Buffer;

pub use blocks::Blocks;
use call::Call;
pub use reduction::{Counts, Reduction};
use signature::{Data, Part, SharedFacts, Signature};

use crate::Result;
use crate::algorithms::{Algorithm, Collective};
use crate::comm::Core;
use crate::topology::Topology;

/// A collective operation and its arguments.
///
/// An absent buffer (`None`) stands for `MPI_IN_PLACE` where the standard allows that, and for a
/// buffer that is significant at the root only on the other ranks.
#[derive(Clone, Debug)]
pub enum Work {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`.
    Bcast {
        /// The message: sent by the root, received by the others.
        buffer: Buffer,
        /// The root's rank in the communicator.
        root: i32,
    },
    /// `MPI_Gather`: every member sends an equal number of bytes.
    Gather {
        /// This rank's block.
        send: Option<Buffer>,
        /// All blocks, at the root.
        receive: Option<Blocks>,
        /// The root's rank in the communicator.
        root: i32,
    },
    /// `MPI_Gatherv`: only the root knows the sizes of all blocks.
    Gatherv {
        /// This rank's block.
        send: Option<Buffer>,
        /// All blocks, at the root.
        receive: Option<Blocks>,
        /// The root's rank in the communicator.
        root: i32,
    },
    /// `MPI_Scatter`: every member gets an equal number of bytes.
    Scatter {
        /// All blocks, at the root.
        send: Option<Blocks>,
        /// This rank's block.
        receive: Option<Buffer>,
        /// The root's rank in the communicator.
        root: i32,
    },
    /// `MPI_Scatterv`: only the root knows the sizes of all blocks.
    Scatterv {
        /// All blocks, at the root.
        send: Option<Blocks>,
        /// This rank's block.
        receive: Option<Buffer>,
        /// The root's rank in the communicator.
        root: i32,
    },
    /// `MPI_Allgather` and `MPI_Allgatherv`.
    Allgather {
        /// This rank's block.
        send: Option<Buffer>,
        /// All blocks.
        receive: Blocks,
    },
    /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
    Alltoall {
        /// A block for each member.
        send: Option<Blocks>,
        /// A block from each member.
        receive: Blocks,
    },
    /// `MPI_Neighbor_allgather` and `MPI_Neighbor_allgatherv`.
    NeighbourAllgather {
        /// The block for all destinations.
        send: Buffer,
        /// A block from each source.
        receive: Blocks,
        /// The neighbours.
        topology: Arc<Topology>,
    },
    /// `MPI_Neighbor_alltoall`, `MPI_Neighbor_alltoallv` and `MPI_Neighbor_alltoallw`.
    NeighbourAlltoall {
        /// A block for each destination.
        send: Blocks,
        /// A block from each source.
        receive: Blocks,
        /// The neighbours.
        topology: Arc<Topology>,
    },
    /// `MPI_Reduce`.
    Reduce {
        /// The vectors and the operation.
        reduction: Reduction,
        /// The root's rank in the communicator.
        root: i32,
    },
    /// `MPI_Allreduce`.
    Allreduce(Reduction),
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
    ReduceScatter {
        /// The vectors and the operation.
        reduction: Reduction,
        /// The elements of the result that each member gets.
        counts: Counts,
    },
    /// `MPI_Scan` and `MPI_Exscan`.
    Scan {
        /// The vectors and the operation.
        reduction: Reduction,
        /// `MPI_Exscan`: the result leaves out this rank's own contribution.
        exclusive: bool,
    },
}

impl Work {
    /// The data that this rank gives and gets. Returns `None` if only its neighbours take part.
    #[inline(always)]
    fn signature(&self) -> Option<Signature<'_>> {
        self.with_signature(
            #[inline(always)]
            |signature| signature,
        )
    }

    /// Calls `then` with the [`signature`](Self::signature). The call stands in each arm, so that
    /// whatever follows from the shape of a signature is known when `then` is compiled.
    #[inline(always)]
    fn with_signature<'a, T>(&'a self, then: impl FnOnce(Signature<'a>) -> T) -> Option<T> {
        use Data::{Each, Nothing, One};
        Some(match self {
            Work::Barrier => then(Signature::moved(Collective::Barrier, Nothing, Nothing)),
            Work::Bcast { buffer, root } => {
                let message = One(Some(buffer));
                then(Signature::moved(Collective::Bcast, message, message).from(*root))
            }
            Work::Gather {
                send,
                receive,
                root,
            }
            | Work::Gatherv {
                send,
                receive,
                root,
            } => {
                let (one, all) = (One(send.as_ref()), Each(receive.as_ref()));
                let gather = Signature::moved(Collective::Gather, one, all).to(*root);
                then(gather.with_private_sizes(matches!(self, Work::Gatherv { .. })))
            }
            Work::Scatter {
                send,
                receive,
                root,
            }
            | Work::Scatterv {
                send,
                receive,
                root,
            } => {
                let (all, one) = (Each(send.as_ref()), One(receive.as_ref()));
                let scatter = Signature::moved(Collective::Scatter, all, one).from(*root);
                then(scatter.with_private_sizes(matches!(self, Work::Scatterv { .. })))
            }
            Work::Allgather { send, receive } => {
                let (one, all) = (One(send.as_ref()), Each(Some(receive)));
                then(Signature::moved(Collective::Allgather, one, all))
            }
            Work::Alltoall { send, receive } => {
                let (give, take) = (Each(send.as_ref()), Each(Some(receive)));
                then(Signature::moved(Collective::Alltoall, give, take))
            }
            Work::NeighbourAllgather { .. } | Work::NeighbourAlltoall { .. } => return None,
            Work::Reduce { reduction, root } => {
                let reduce = Signature::combined(Collective::Reduce, reduction, Part::Whole);
                then(reduce.to(*root))
            }
            Work::Allreduce(reduction) => {
                let (collective, part) = (Collective::Allreduce, Part::Whole);
                then(Signature::combined(collective, reduction, part))
            }
            Work::ReduceScatter { reduction, counts } => {
                let (collective, part) = (Collective::ReduceScatter, Part::OfCounts(counts));
                then(Signature::combined(collective, reduction, part))
            }
            Work::Scan {
                reduction,
                exclusive,
            } => {
                let exclusive = *exclusive;
                let part = Part::Before { exclusive };
                then(Signature::combined(Collective::Scan, reduction, part))
            }
        })
    }

    /// Finds what is wrong with the arguments together; each alone has been checked before.
    #[inline(always)]
    fn check(&self, core: &Core) -> Result<()> {
        let check = self.with_signature(
            #[inline(always)]
            |signature| signature.check(core),
        );
        check.unwrap_or(Ok(()))
    }

    /// The facts of the operation, if members that share memory could use it.
    #[inline(always)]
    fn shared(&self, me: usize, size: usize) -> Option<SharedFacts> {
        let facts = self.with_signature(
            #[inline(always)]
            |signature| signature.shared(me, size),
        );
        facts.flatten()
    }

    /// Parts of the operation's vectors can be copied directly between members.
    fn can_be_direct(&self) -> bool {
        self.signature().is_some_and(|it| it.can_be_direct())
    }

    /// Runs the operation by messages.
    async fn by_messages(&self, call: &Call<'_>) -> Result<()> {
        let algorithm = match self.signature() {
            Some(signature) => signature.choose(call),
            None => Some(Algorithm::Linear),
        };
        match algorithm {
            Some(algorithm) => self.run(call, algorithm).await,
            None => Ok(()),
        }
    }

    /// Runs an algorithm by messages: one of two levels, or a flat one.
    // Over 80 lines: an arm for each collective.
    async fn run(&self, call: &Call<'_>, algorithm: Algorithm) -> Result<()> {
        use Algorithm::{TwoLevel, TwoLevelParts};
        match self {
            Work::Barrier => run_barrier(call, algorithm).await,
            Work::Bcast { buffer, root } => {
                run_bcast(call, algorithm, buffer, *root as usize).await
            }
            Work::Gather {
                send,
                receive,
                root,
            }
            | Work::Gatherv {
                send,
                receive,
                root,
            } => {
                let (ours, all, root) = (send.as_ref(), receive.as_ref(), *root as usize);
                match (algorithm, self) {
                    (TwoLevel, Work::Gatherv { .. }) => {
                        Box::pin(two_level_v::gather(call, ours, all, root)).await
                    }
                    (TwoLevel, _) => Box::pin(two_level_data::gather(call, ours, all, root)).await,
                    _ => gather::run_gather(call, algorithm, ours, all, root).await,
                }
            }
            Work::Scatter {
                send,
                receive,
                root,
            }
            | Work::Scatterv {
                send,
                receive,
                root,
            } => {
                let (all, ours, root) = (send.as_ref(), receive.as_ref(), *root as usize);
                match (algorithm, self) {
                    (TwoLevel, Work::Scatterv { .. }) => {
                        Box::pin(two_level_v::scatter(call, all, ours, root)).await
                    }
                    (TwoLevel, _) => Box::pin(two_level_data::scatter(call, all, ours, root)).await,
                    _ => gather::run_scatter(call, algorithm, all, ours, root).await,
                }
            }
            Work::Allgather { send, receive } => {
                if let Some(ours) = send {
                    ours.copy_to(&receive.part(call.me()));
                }
                match algorithm {
                    TwoLevel => Box::pin(two_level_data::allgather(call, receive)).await,
                    TwoLevelParts => Box::pin(two_level_data::allgather_parts(call, receive)).await,
                    _ => allgather::run(call, algorithm, receive).await,
                }
            }
            Work::Alltoall { send, receive } => match (send, algorithm) {
                (None, _) => alltoall::in_place(call, receive).await,
                (Some(send), TwoLevel) => {
                    Box::pin(two_level_data::alltoall(call, send, receive)).await
                }
                (Some(send), _) => alltoall::run(call, algorithm, send, receive).await,
            },
            Work::NeighbourAllgather {
                send,
                receive,
                topology,
            } => {
                let give = |_| send.clone();
                neighbourhood::exchange(call, &topology.neighbours, give, receive).await
            }
            Work::NeighbourAlltoall {
                send,
                receive,
                topology,
            } => {
                let give = |block| send.part(block);
                neighbourhood::exchange(call, &topology.neighbours, give, receive).await
            }
            Work::Reduce { reduction, root } => {
                run_reduce(call, algorithm, reduction, *root as usize).await
            }
            Work::Allreduce(reduction) => run_allreduce(call, algorithm, reduction).await,
            Work::ReduceScatter { reduction, counts } => match algorithm {
                TwoLevel => {
                    Box::pin(two_level_reduce::reduce_scatter(call, reduction, counts)).await
                }
                _ => reduce_scatter::run(call, algorithm, reduction, counts).await,
            },
            Work::Scan {
                reduction,
                exclusive,
            } => match algorithm {
                TwoLevel => Box::pin(two_level_reduce::scan(call, reduction, *exclusive)).await,
                _ => scan::run(call, algorithm, reduction, *exclusive).await,
            },
        }
    }
}

#[inline(always)]
async fn run_barrier(call: &Call<'_>, algorithm: Algorithm) -> Result<()> {
    match algorithm {
        Algorithm::TwoLevel => Box::pin(two_level_data::barrier(call)).await,
        _ => barrier::dissemination(call).await,
    }
}

#[inline(always)]
async fn run_bcast(
    call: &Call<'_>,
    algorithm: Algorithm,
    buffer: &Buffer,
    root: usize,
) -> Result<()> {
    match algorithm {
        Algorithm::TwoLevel => Box::pin(two_level_data::bcast(call, buffer, root)).await,
        Algorithm::TwoLevelParts => Box::pin(two_level_data::bcast_parts(call, buffer, root)).await,
        _ => bcast::run(call, algorithm, buffer, root).await,
    }
}

#[inline(always)]
async fn run_reduce(
    call: &Call<'_>,
    algorithm: Algorithm,
    reduction: &Reduction,
    root: usize,
) -> Result<()> {
    match algorithm {
        Algorithm::TwoLevel => Box::pin(two_level_reduce::reduce(call, reduction, root)).await,
        _ => reduce::run_reduce(call, algorithm, reduction, root).await,
    }
}

#[inline(always)]
async fn run_allreduce(call: &Call<'_>, algorithm: Algorithm, reduction: &Reduction) -> Result<()> {
    match algorithm {
        Algorithm::TwoLevel => Box::pin(two_level_reduce::allreduce(call, reduction)).await,
        Algorithm::TwoLevelParts => {
            Box::pin(two_level_reduce::allreduce_parts(call, reduction)).await
        }
        _ => reduce::run_allreduce(call, algorithm, reduction).await,
    }
}
