//! Collective operations (MPI 5.0 §6).
//!
//! [`Work`] is an operation with its arguments. Its *signature* describes the data that each rank
//! gives and gets; from it follow the checks, the facts by which the table of `crate::algorithms`
//! chooses, and the data that members publish in shared memory. An operation runs by one of three
//! methods (`start` chooses):
//! - *messages*: an algorithm is an `async fn` over a `Call`, written once; a blocking call drives
//!   it on its own stack, a nonblocking one leaves it to progress. Algorithms of two levels
//!   (`two_level_*`: within each host, and among one leader of each) are composed of flat ones,
//!   which ignore hosts;
//! - *rounds*: members that share memory publish vectors in a collective buffer (`steps`; `pieces`
//!   of long ones). Blocking calls of one communicator use one buffer, nonblocking ones take turns
//!   in another (`crate::coll::lanes`), and each persistent operation has its own;
//! - *direct copies*: members publish remote keys of their memory in such a round (`direct`).
//!
//! Between the two groups of an intercommunicator, `between` composes each operation of flat ones;
//! in shared memory `between_memory` runs some by rounds (`between_rounds`) or direct copies.
//!
//! To add a collective operation:
//! - add a variant of [`Work`] here, with its row in the table `operations`;
//! - a file with its flat algorithms;
//! - its composition in `between`;
//! - a variant of `Collective` in `crate::algorithms`, with its rows and its cost;
//! - its procedures in the crate `abi`.
//!
//! An operation of a new shape, such as another order of combining, also needs a step in `steps` or
//! `combining_steps`; one that gains from two levels also its composition in `two_level_*`.
//!
//! Invariants:
//! - no lock is held while a user's operation runs;
//! - two members start the messages between them in one operation in the same order;
//! - an operation that failed leaves no receive posted.

mod allgather;
mod alltoall;
mod barrier;
mod bcast;
mod between;
mod between_memory;
mod between_rounds;
mod blocks;
mod both;
mod buffer_agreement;
mod buffer_round;
mod call;
#[cfg(feature = "carriers")]
pub mod carried;
mod carrier;
mod check;
mod combining_steps;
mod direct;
mod direct_reduce;
mod gather;
mod halves;
mod lane_turn;
mod linear_reduce;
mod neighbourhood;
mod network;
pub(crate) mod parcels;
mod pending;
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
use signature::Data::{Each, Nothing, One};
use signature::{Part, SharedFacts, Signature};

use crate::Result;
use crate::algorithms::{Algorithm, Collective};
use crate::comm::Core;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::topology::Topology;

/// A collective operation and its arguments.
///
/// An absent buffer (`None`) stands for `MPI_IN_PLACE` where the standard allows that, and for a
/// buffer that is significant at the root only on the other ranks.
///
/// A root is named by its rank in the communicator. On an intercommunicator the ranks of the other
/// group pass that rank, the root itself passes [`ROOT`](crate::ROOT), and the other ranks of its
/// group pass [`PROC_NULL`](crate::PROC_NULL): they do not take part, and their buffers are
/// ignored.
#[derive(Clone, Debug)]
// An explicit tag: one hidden in a field costs some instructions wherever the variant is tested.
#[repr(u8)]
pub enum Work {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`.
    Bcast {
        /// The message: sent by the root, received by the others.
        buffer: Buffer,
        /// The rank of the root, as [`Work`] describes it.
        root: i32,
    },
    /// `MPI_Gather`: every member sends an equal number of bytes.
    Gather {
        /// The block that this rank sends.
        send: Option<Buffer>,
        /// The memory for the blocks of all members; present only at the root.
        receive: Option<Blocks>,
        /// The rank of the root, as [`Work`] describes it.
        root: i32,
    },
    /// `MPI_Gatherv`: only the root knows the sizes of all blocks.
    Gatherv {
        /// The block that this rank sends.
        send: Option<Buffer>,
        /// The memory for the blocks of all members; present only at the root.
        receive: Option<Blocks>,
        /// The rank of the root, as [`Work`] describes it.
        root: i32,
    },
    /// `MPI_Scatter`: every member gets an equal number of bytes.
    Scatter {
        /// The blocks for all members; present only at the root.
        send: Option<Blocks>,
        /// The memory for the block that this rank receives.
        receive: Option<Buffer>,
        /// The rank of the root, as [`Work`] describes it.
        root: i32,
    },
    /// `MPI_Scatterv`: only the root knows the sizes of all blocks.
    Scatterv {
        /// The blocks for all members; present only at the root.
        send: Option<Blocks>,
        /// The memory for the block that this rank receives.
        receive: Option<Buffer>,
        /// The rank of the root, as [`Work`] describes it.
        root: i32,
    },
    /// `MPI_Allgather` and `MPI_Allgatherv`.
    Allgather {
        /// The block that this rank sends.
        send: Option<Buffer>,
        /// The memory for the blocks of all members.
        receive: Blocks,
    },
    /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
    Alltoall {
        /// The block that this rank sends to each member.
        send: Option<Blocks>,
        /// The memory for a block from each member.
        receive: Blocks,
    },
    /// `MPI_Neighbor_allgather` and `MPI_Neighbor_allgatherv`.
    NeighbourAllgather {
        /// The block for all destinations.
        send: Buffer,
        /// The memory for a block from each source.
        receive: Blocks,
        /// The topology, which names the neighbours.
        topology: Arc<Topology>,
    },
    /// `MPI_Neighbor_alltoall`, `MPI_Neighbor_alltoallv` and `MPI_Neighbor_alltoallw`.
    NeighbourAlltoall {
        /// The block that this rank sends to each destination.
        send: Blocks,
        /// The memory for a block from each source.
        receive: Blocks,
        /// The topology, which names the neighbours.
        topology: Arc<Topology>,
    },
    /// `MPI_Reduce`.
    Reduce {
        /// The vectors and the operation of the reduction.
        reduction: Reduction,
        /// The rank of the root, as [`Work`] describes it.
        root: i32,
    },
    /// `MPI_Allreduce`.
    Allreduce(Reduction),
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
    ReduceScatter {
        /// The vectors and the operation of the reduction.
        reduction: Reduction,
        /// The elements of the result that each member gets.
        counts: Counts,
    },
    /// `MPI_Scan` and `MPI_Exscan`.
    Scan {
        /// The vectors and the operation of the scan.
        reduction: Reduction,
        /// `MPI_Exscan`: the result leaves out this rank's own contribution.
        exclusive: bool,
    },
}

impl Work {
    /// The data that this rank gives and gets. `None`: the operation is among neighbours.
    #[inline(always)]
    fn signature(&self) -> Option<Signature<'_>> {
        self.with_signature(
            #[inline(always)]
            |signature| signature,
        )
    }

    /// Checks the arguments against each other and the communicator; each alone has been checked
    /// before.
    #[inline(always)]
    fn check(&self, core: &Core) -> Result<()> {
        let check = self.with_signature(
            #[inline(always)]
            |signature| signature.check(core),
        );
        check.unwrap_or(Ok(()))
    }

    /// The facts by which members that share memory run the operation. `None`: only messages can
    /// carry it.
    #[inline(always)]
    fn shared(&self, me: usize, size: usize) -> Option<SharedFacts> {
        let facts = self.with_signature(
            #[inline(always)]
            |signature| signature.shared(me, size),
        );
        facts.flatten()
    }

    /// True if parts of the operation's vectors can be copied directly between members.
    fn can_be_direct(&self) -> bool {
        self.signature().is_some_and(|it| it.can_be_direct())
    }

    /// The algorithm that the table chooses for messages. `None`: there is nothing to do.
    fn algorithm(&self, call: &Call<'_>) -> Option<Algorithm> {
        match self.signature() {
            Some(signature) => signature.choose(call),
            None => Some(Algorithm::Linear),
        }
    }

    /// Runs the operation by messages between the members.
    async fn by_messages(&self, call: &Call<'_>) -> Result<()> {
        match self.algorithm(call) {
            Some(algorithm) => self.run(call, algorithm).await,
            None => Ok(()),
        }
    }
}

/// The table of operations by messages. A row has a variant of [`Work`]; its signature, unless the
/// operation is among neighbours; its flat algorithms; and those of two levels, whose futures are
/// boxed.
macro_rules! operations {
    (($call:ident, $algorithm:ident) $(
        $kind:pat => {
            $(signature: $signature:expr,)?
            flat: $flat:expr,
            $($levels:ident: $composed:expr,)*
        }
    )+) => {
        impl Work {
            /// Calls `then` with the [`signature`](Self::signature). The call is repeated in each
            /// arm, so that the compiler knows the shape of the signature when it compiles `then`.
            #[inline(always)]
            #[allow(unused_variables, reason = "some fields are for algorithms only")]
            fn with_signature<'a, T>(&'a self, then: impl FnOnce(Signature<'a>) -> T) -> Option<T> {
                match self {
                    $($kind => None $(.or(Some(then($signature))))?,)+
                }
            }

            /// Runs the operation by messages, with the given algorithm.
            async fn run(&self, $call: &Call<'_>, $algorithm: Algorithm) -> Result<()> {
                match self {
                    $($kind => match $algorithm {
                        $(Algorithm::$levels => Box::pin($composed).await,)*
                        _ => $flat.await,
                    },)+
                }
            }

            /// Runs the operation by messages with this algorithm, and returns when this rank's
            /// part is done. Each operation has a future of its own, so none has the size of the
            /// largest.
            fn run_blocking(
                &self,
                rank: &Rank,
                waiting: &Waiting,
                $call: &Call<'_>,
                $algorithm: Algorithm,
            ) -> Result<()> {
                let among = Some($call.core.context);
                match self {
                    $($kind => rank.block_on(waiting, among, async {
                        match $algorithm {
                            $(Algorithm::$levels => Box::pin($composed).await,)*
                            _ => $flat.await,
                        }
                    }),)+
                }
            }
        }
    };
}

operations! {
    (call, algorithm)

    Work::Barrier => {
        signature: Signature::moved(Collective::Barrier, Nothing, Nothing),
        flat: barrier::dissemination(call),
        TwoLevel: two_level_data::barrier(call),
    }
    Work::Bcast { buffer, root } => {
        signature: Signature::moved(Collective::Bcast, One(Some(buffer)), One(Some(buffer)))
            .from(*root),
        flat: bcast::run(call, algorithm, buffer, *root as usize),
        TwoLevel: two_level_data::bcast(call, buffer, *root as usize),
        TwoLevelParts: two_level_data::bcast_parts(call, buffer, *root as usize),
    }
    Work::Gather { send, receive, root } => {
        signature: Signature::gather(send, receive, *root),
        flat: gather::run_gather(call, algorithm, send.as_ref(), receive.as_ref(), *root as usize),
        TwoLevel: two_level_data::gather(call, send.as_ref(), receive.as_ref(), *root as usize),
    }
    Work::Gatherv { send, receive, root } => {
        signature: Signature::gather(send, receive, *root).with_private_sizes(),
        flat: gather::run_gather(call, algorithm, send.as_ref(), receive.as_ref(), *root as usize),
        TwoLevel: two_level_v::gather(call, send.as_ref(), receive.as_ref(), *root as usize),
    }
    Work::Scatter { send, receive, root } => {
        signature: Signature::scatter(send, receive, *root),
        flat: gather::run_scatter(call, algorithm, send.as_ref(), receive.as_ref(), *root as usize),
        TwoLevel: two_level_data::scatter(call, send.as_ref(), receive.as_ref(), *root as usize),
    }
    Work::Scatterv { send, receive, root } => {
        signature: Signature::scatter(send, receive, *root).with_private_sizes(),
        flat: gather::run_scatter(call, algorithm, send.as_ref(), receive.as_ref(), *root as usize),
        TwoLevel: two_level_v::scatter(call, send.as_ref(), receive.as_ref(), *root as usize),
    }
    Work::Allgather { send, receive } => {
        signature: Signature::moved(
            Collective::Allgather,
            One(send.as_ref()),
            Each(Some(receive)),
        ),
        flat: allgather::run(call, algorithm, receive.with_own(call, send.as_ref())),
        TwoLevel: two_level_data::allgather(call, receive.with_own(call, send.as_ref())),
        TwoLevelParts: two_level_data::allgather_parts(
            call,
            receive.with_own(call, send.as_ref()),
        ),
    }
    Work::Alltoall { send, receive } => {
        signature: Signature::moved(
            Collective::Alltoall,
            Each(send.as_ref()),
            Each(Some(receive)),
        ),
        flat: alltoall::run(call, algorithm, send.as_ref(), receive),
        TwoLevel: two_level_data::alltoall(call, send.as_ref(), receive),
    }
    Work::NeighbourAllgather { send, receive, topology } => {
        flat: neighbourhood::exchange(call, &topology.neighbours, |_| send.clone(), receive),
    }
    Work::NeighbourAlltoall { send, receive, topology } => {
        flat: neighbourhood::exchange(call, &topology.neighbours, |at| send.part(at), receive),
    }
    Work::Reduce { reduction, root } => {
        signature: Signature::combined(Collective::Reduce, reduction, Part::Whole).to(*root),
        flat: reduce::run_reduce(call, algorithm, reduction, *root as usize),
        TwoLevel: two_level_reduce::reduce(call, reduction, *root as usize),
    }
    Work::Allreduce(reduction) => {
        signature: Signature::combined(Collective::Allreduce, reduction, Part::Whole),
        flat: reduce::run_allreduce(call, algorithm, reduction),
        TwoLevel: two_level_reduce::allreduce(call, reduction),
        TwoLevelParts: two_level_reduce::allreduce_parts(call, reduction),
    }
    Work::ReduceScatter { reduction, counts } => {
        signature: Signature::combined(
            Collective::ReduceScatter,
            reduction,
            Part::OfCounts(counts),
        ),
        flat: reduce_scatter::run(call, algorithm, reduction, counts),
        TwoLevel: two_level_reduce::reduce_scatter(call, reduction, counts),
    }
    Work::Scan { reduction, exclusive } => {
        signature: Signature::combined(
            Collective::Scan,
            reduction,
            Part::Before { exclusive: *exclusive },
        ),
        flat: scan::run(call, algorithm, reduction, *exclusive),
        TwoLevel: two_level_reduce::scan(call, reduction, *exclusive),
    }
}
