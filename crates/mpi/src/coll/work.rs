//! Collective operations and their arguments.

use std::sync::Arc;

use datatype::Buffer;

use super::blocks::Blocks;
use super::buffer_round::Kind;
use super::call::Call;
use super::reduce::Reduction;
use super::reduce_scatter::Counts;
use super::{
    allgather, alltoall, barrier, bcast, gather, neighbourhood, pieces, reduce, reduce_scatter,
    scan,
};
use crate::Result;
use crate::algorithms::{Case, Collective};
use crate::op::Operation;
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
    /// Parts of the operation's vectors can be copied directly between members.
    pub(super) fn can_be_direct(&self) -> bool {
        match self {
            Work::Reduce { reduction, .. }
            | Work::Allreduce(reduction)
            | Work::ReduceScatter { reduction, .. } => reduction
                .ours()
                .is_some_and(|ours| ours.buffer().as_dense().is_some()),
            _ => true,
        }
    }

    /// Runs the operation by messages.
    pub(super) async fn run(&self, call: &Call<'_>) -> Result<()> {
        match self {
            Work::Barrier => barrier::barrier(call).await,
            Work::Bcast { buffer, root } => bcast::bcast(call, buffer, *root as usize).await,
            Work::Gather {
                send,
                receive,
                root,
            } => gather::gather(call, send.as_ref(), receive.as_ref(), *root as usize).await,
            Work::Gatherv {
                send,
                receive,
                root,
            } => gather::gatherv(call, send.as_ref(), receive.as_ref(), *root as usize).await,
            Work::Scatter {
                send,
                receive,
                root,
            } => gather::scatter(call, send.as_ref(), receive.as_ref(), *root as usize).await,
            Work::Scatterv {
                send,
                receive,
                root,
            } => gather::scatterv(call, send.as_ref(), receive.as_ref(), *root as usize).await,
            Work::Allgather { send, receive } => {
                allgather::allgather(call, send.as_ref(), receive).await
            }
            Work::Alltoall { send, receive } => {
                alltoall::alltoall(call, send.as_ref(), receive).await
            }
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
                reduce::reduce(call, reduction, *root as usize).await
            }
            Work::Allreduce(reduction) => reduce::allreduce(call, reduction).await,
            Work::ReduceScatter { reduction, counts } => {
                reduce_scatter::reduce_scatter(call, reduction, counts).await
            }
            Work::Scan {
                reduction,
                exclusive,
            } => scan::scan(call, reduction, *exclusive).await,
        }
    }

    /// The facts of the operation, if members that share memory could use it. All members see the
    /// same.
    #[inline(always)]
    pub(super) fn as_shared(&self, me: usize, size: usize) -> Option<SharedCall> {
        let vector = |collective, bytes| {
            Some(SharedCall {
                collective,
                kind: Kind::of(collective),
                bytes,
                published: bytes,
            })
        };
        match self {
            Work::Barrier => vector(Collective::Barrier, 0),
            Work::Bcast { buffer, .. } => vector(Collective::Bcast, buffer.len()),
            Work::Reduce { reduction, root } => Some(SharedCall {
                kind: Kind::to_root(Collective::Reduce, *root),
                ..SharedCall::reduction(Collective::Reduce, reduction)?
            }),
            Work::Allreduce(reduction) => SharedCall::reduction(Collective::Allreduce, reduction),
            Work::ReduceScatter { reduction, .. } => {
                SharedCall::reduction(Collective::ReduceScatter, reduction)
            }
            Work::Scan { reduction, .. } => SharedCall::reduction(Collective::Scan, reduction),
            Work::Gather {
                send,
                receive,
                root,
            } => {
                let at_root = *root as usize == me;
                let bytes = block_bytes(at_root, send.as_ref(), receive.as_ref())?;
                Some(SharedCall {
                    kind: Kind::to_root(Collective::Gather, *root),
                    ..vector(Collective::Gather, bytes)?
                })
            }
            Work::Scatter {
                send,
                receive,
                root,
            } => {
                let at_root = *root as usize == me;
                let bytes = block_bytes(at_root, receive.as_ref(), send.as_ref())?;
                Some(SharedCall {
                    published: bytes.checked_mul(size - 1)?,
                    ..vector(Collective::Scatter, bytes)?
                })
            }
            Work::Allgather { receive, .. } => {
                let (total, longest) = (receive.total(), receive.longest(size));
                // Where few blocks are long, rounds of the longest ones would wait for empty ones.
                let is_skewed = longest > pieces::WHOLE && longest * size > 2 * total;
                Some(SharedCall {
                    published: if is_skewed { usize::MAX } else { longest },
                    ..vector(Collective::Allgather, total)?
                })
            }
            Work::Alltoall { receive, .. } if receive.is_even() => {
                let total = receive.total();
                Some(SharedCall {
                    published: total - total / size,
                    ..vector(Collective::Alltoall, total / size)?
                })
            }
            _ => None,
        }
    }
}

/// Bytes of one block, all of which have one size: the root knows them from all blocks.
fn block_bytes(at_root: bool, ours: Option<&Buffer>, all: Option<&Blocks>) -> Option<usize> {
    match at_root {
        true => all.map(|all| all.len(0)),
        false => ours.map(Buffer::len),
    }
}

/// The facts of an operation that members who share memory need.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCall {
    pub(super) collective: Collective,
    /// The call in notes.
    pub(super) kind: Kind,
    /// Bytes as the table of algorithms counts them.
    pub(super) bytes: usize,
    /// Bytes of the longest vector that a member would publish; `usize::MAX` if it cannot.
    pub(super) published: usize,
}

impl SharedCall {
    /// The facts that decide on the algorithm, of a call with `size` members. `direct`: they can
    /// copy directly.
    #[inline(always)]
    pub(super) fn case(&self, size: usize, direct: bool) -> Case {
        Case {
            shared: true,
            published: self.published,
            direct,
            ..Case::usual(self.bytes, size)
        }
    }

    #[inline(always)]
    fn reduction(collective: Collective, reduction: &Reduction) -> Option<SharedCall> {
        let ours = reduction.ours()?;
        let bytes = ours.bytes();
        let published = match reduction.op {
            Operation::Predefined(_) => bytes,
            Operation::User { .. } => usize::MAX,
        };
        Some(SharedCall {
            collective,
            kind: Kind::of(collective),
            bytes,
            published,
        })
    }
}
