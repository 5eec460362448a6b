//! Collective operations on intracommunicators (MPI 5.0 §6).
//!
//! [`Work`] says what is to be done; an algorithm is an `async fn` over a [`Call`]. A blocking call drives it on its own
//! stack, a nonblocking one leaves it to progress, so each algorithm is written once. [`table`] says which is taken.
//!
//! What must always hold: no lock is held while a user's operation runs; two members' messages within one operation are
//! started in the same order on both sides; nothing is left posted by an operation that failed.

mod allgather;
mod alltoall;
mod barrier;
mod bcast;
mod blocks;
mod call;
mod gather;
mod reduce;
mod reduce_scatter;
mod scan;
mod shared;
pub mod table;

use std::sync::Arc;

use datatype::Buffer;

use crate::comm::Core;
use crate::op::Operation;
use crate::rank::Rank;
use crate::request::RequestId;
use crate::wait::Waiting;
use crate::{Class, Error, Result};
pub use blocks::Blocks;
use call::Call;
pub use reduce::Reduction;
pub use reduce_scatter::Counts;
pub use shared::Lanes;
pub(crate) use shared::Sharing;
use shared::Taking;
use table::{Algorithm, Case, Collective};

/// A collective operation and its arguments. `None` for a buffer that may be `MPI_IN_PLACE` means that; a buffer that
/// counts at the root only is `None` elsewhere.
#[derive(Clone, Debug)]
pub enum Work {
    Barrier,
    Bcast {
        buffer: Buffer,
        root: i32,
    },
    Gather {
        send: Option<Buffer>,
        receive: Option<Blocks>,
        root: i32,
    },
    /// Only the root knows the sizes of all parts.
    Gatherv {
        send: Option<Buffer>,
        receive: Option<Blocks>,
        root: i32,
    },
    Scatter {
        send: Option<Blocks>,
        receive: Option<Buffer>,
        root: i32,
    },
    Scatterv {
        send: Option<Blocks>,
        receive: Option<Buffer>,
        root: i32,
    },
    Allgather {
        send: Option<Buffer>,
        receive: Blocks,
    },
    Alltoall {
        send: Option<Blocks>,
        receive: Blocks,
    },
    Reduce {
        reduction: Reduction,
        root: i32,
    },
    Allreduce(Reduction),
    ReduceScatter {
        reduction: Reduction,
        counts: Counts,
    },
    Scan {
        reduction: Reduction,
        exclusive: bool,
    },
}

impl Rank {
    /// Does it, and returns when this rank's part is done. `operation` is the procedure's name, for reports.
    #[inline]
    pub fn collective(&self, operation: &'static str, work: &Work, comm: u32) -> Result<()> {
        let waiting = Waiting::in_call(operation);
        let mut state = self.lock();
        let entry = state.comms.get_mut(comm)?;
        work.check(&entry.core)?;
        if let Some((collective, len)) = work.for_a_lane() {
            let size = entry.core.size();
            let case = Case {
                bytes: len,
                ranks: size,
                commutative: true,
                even: true,
                shared: true,
            };
            if self.collectives.algorithm(collective, case) == Algorithm::Shared {
                if entry.sharing.is_ready() {
                    drop(state);
                    return Taking {
                        rank: self,
                        waiting: &waiting,
                        comm,
                        size,
                        collective,
                        len,
                    }
                    .run(work);
                }
                if entry.sharing.is_due() {
                    let (core, tag) = (entry.core.clone(), entry.collective_tag());
                    drop(state);
                    self.agree_on_lane(
                        &waiting,
                        &Call {
                            rank: self,
                            core: &core,
                            tag,
                        },
                        comm,
                    )?;
                    return self.collective(operation, work, comm);
                }
            }
        }
        let (core, tag) = (entry.core.clone(), entry.collective_tag());
        drop(state);
        self.with_messages(
            &waiting,
            &Call {
                rank: self,
                core: &core,
                tag,
            },
            work,
        )
    }

    fn with_messages(&self, waiting: &Waiting, call: &Call<'_>, work: &Work) -> Result<()> {
        // Small operations have a future of their own, so that they do not pay for the largest one's size.
        match work {
            Work::Barrier => self.block_on(waiting, call.barrier()),
            Work::Bcast { buffer, root } => self.block_on(waiting, call.bcast(buffer, *root)),
            Work::Reduce { reduction, root } => {
                self.block_on(waiting, call.reduce(reduction, *root))
            }
            Work::Allreduce(reduction) => self.block_on(waiting, call.allreduce(reduction)),
            _ => self.block_on(waiting, call.run(work)),
        }
    }

    /// Starts it; the request completes when this rank's part is done.
    pub fn start_collective(self: &Arc<Rank>, work: Work, comm: u32) -> Result<RequestId> {
        let (core, tag) = {
            let mut state = self.lock();
            let entry = state.comms.get_mut(comm)?;
            work.check(&entry.core)?;
            (entry.core.clone(), entry.collective_tag())
        };
        let rank = self.clone();
        self.spawn(Some(core.context), async move {
            Call {
                rank: &rank,
                core: &core,
                tag,
            }
            .run(&work)
            .await
        })
    }
}

impl Call<'_> {
    async fn run(&self, work: &Work) -> Result<()> {
        match work {
            Work::Barrier => self.barrier().await,
            Work::Bcast { buffer, root } => self.bcast(buffer, *root).await,
            Work::Gather {
                send,
                receive,
                root,
            } => {
                let (root, part) = (
                    *root as usize,
                    receive.as_ref().map_or(0, |parts| parts.len(0)),
                );
                let bytes = if self.me() == root {
                    part
                } else {
                    send.as_ref().map_or(0, Buffer::len)
                };
                let algorithm = self.choose(Collective::Gather, bytes, true, true);
                if bytes == 0 {
                    Ok(())
                } else {
                    gather::gather(self, send.as_ref(), receive.as_ref(), root, algorithm).await
                }
            }
            Work::Gatherv {
                send,
                receive,
                root,
            } => gather::gather_linear(self, send.as_ref(), receive.as_ref(), *root as usize).await,
            Work::Scatter {
                send,
                receive,
                root,
            } => {
                let (root, part) = (
                    *root as usize,
                    send.as_ref().map_or(0, |parts| parts.len(0)),
                );
                let bytes = if self.me() == root {
                    part
                } else {
                    receive.as_ref().map_or(0, Buffer::len)
                };
                let algorithm = self.choose(Collective::Scatter, bytes, true, true);
                if bytes == 0 {
                    Ok(())
                } else {
                    gather::scatter(self, send.as_ref(), receive.as_ref(), root, algorithm).await
                }
            }
            Work::Scatterv {
                send,
                receive,
                root,
            } => {
                gather::scatter_linear(self, send.as_ref(), receive.as_ref(), *root as usize).await
            }
            Work::Allgather { send, receive } => {
                let bytes = receive.total();
                let algorithm = self.choose(Collective::Allgather, bytes, true, receive.is_even());
                if bytes == 0 {
                    Ok(())
                } else {
                    allgather::allgather(self, send.as_ref(), receive, algorithm).await
                }
            }
            Work::Alltoall { send, receive } => {
                // Sizes that differ are known only in pairs: such an operation never rests its choice on them.
                let even = receive.is_even();
                let bytes = if even { receive.len(0) } else { 0 };
                let algorithm = self.choose(Collective::Alltoall, bytes, true, even);
                alltoall::alltoall(self, send.as_ref(), receive, algorithm).await
            }
            Work::Reduce { reduction, root } => self.reduce(reduction, *root).await,
            Work::Allreduce(reduction) => self.allreduce(reduction).await,
            Work::ReduceScatter { reduction, counts } => {
                let algorithm = self.choose_reduction(Collective::ReduceScatter, reduction);
                reduce_scatter::reduce_scatter(self, reduction, counts, algorithm).await
            }
            Work::Scan {
                reduction,
                exclusive,
            } => {
                let algorithm = self.choose_reduction(Collective::Scan, reduction);
                scan::scan(self, reduction, *exclusive, algorithm).await
            }
        }
    }

    #[inline(always)]
    async fn barrier(&self) -> Result<()> {
        barrier::barrier(self, self.choose(Collective::Barrier, 0, true, true)).await
    }

    #[inline(always)]
    async fn bcast(&self, buffer: &Buffer, root: i32) -> Result<()> {
        let algorithm = self.choose(Collective::Bcast, buffer.len(), true, true);
        bcast::bcast(self, buffer, root as usize, algorithm).await
    }

    #[inline(always)]
    async fn reduce(&self, reduction: &Reduction, root: i32) -> Result<()> {
        let algorithm = self.choose_reduction(Collective::Reduce, reduction);
        reduce::reduce(self, reduction, root as usize, algorithm).await
    }

    #[inline(always)]
    async fn allreduce(&self, reduction: &Reduction) -> Result<()> {
        let algorithm = self.choose_reduction(Collective::Allreduce, reduction);
        reduce::allreduce(self, reduction, algorithm).await
    }

    fn choose(
        &self,
        collective: Collective,
        bytes: usize,
        commutative: bool,
        even: bool,
    ) -> Algorithm {
        let ranks = self.size();
        self.rank.collectives.algorithm(
            collective,
            Case {
                bytes,
                ranks,
                commutative,
                even,
                shared: false,
            },
        )
    }

    fn choose_reduction(&self, collective: Collective, reduction: &Reduction) -> Algorithm {
        let bytes = reduction.ours().map_or(0, |ours| ours.bytes());
        self.choose(collective, bytes, reduction.op.is_commutative(), true)
    }
}

impl Work {
    /// What kind of operation it is and how long its vector, if a lane could serve it.
    #[inline(always)]
    fn for_a_lane(&self) -> Option<(Collective, usize)> {
        let (collective, reduction) = match self {
            Work::Barrier => return Some((Collective::Barrier, 0)),
            Work::Bcast { buffer, .. } => return Some((Collective::Bcast, buffer.len())),
            Work::Reduce { reduction, .. } => (Collective::Reduce, reduction),
            Work::Allreduce(reduction) => (Collective::Allreduce, reduction),
            _ => return None,
        };
        let bytes = reduction.ours()?.bytes();
        matches!(reduction.op, Operation::Predefined(_)).then_some((collective, bytes))
    }

    /// What can be wrong with the arguments beyond what each says of itself.
    #[inline]
    fn check(&self, core: &Core) -> Result<()> {
        match self {
            Work::Barrier => Ok(()),
            Work::Bcast { root, .. } => check_root(core, *root),
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
                check_root(core, *root)?;
                let at_root = core.rank == *root as usize;
                check_present(if at_root {
                    receive.is_some()
                } else {
                    send.is_some()
                })?;
                check_own_part(core, send.as_ref(), receive.as_ref().filter(|_| at_root))
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
                check_root(core, *root)?;
                let at_root = core.rank == *root as usize;
                check_present(if at_root {
                    send.is_some()
                } else {
                    receive.is_some()
                })?;
                check_own_part(core, receive.as_ref(), send.as_ref().filter(|_| at_root))
            }
            Work::Allgather { send, receive } => check_own_part(core, send.as_ref(), Some(receive)),
            Work::Alltoall { send, receive } => match send {
                Some(send) if send.part(core.rank).begins_with(&receive.part(core.rank)) => {
                    Err(aliased())
                }
                _ => Ok(()),
            },
            Work::Reduce { reduction, root } => {
                check_root(core, *root)?;
                let at_root = core.rank == *root as usize;
                check_present(if at_root {
                    reduction.receive.is_some()
                } else {
                    reduction.send.is_some()
                })?;
                reduction.check()
            }
            Work::Allreduce(reduction)
            | Work::ReduceScatter { reduction, .. }
            | Work::Scan { reduction, .. } => {
                check_present(reduction.receive.is_some())?;
                reduction.check()
            }
        }
    }
}

impl Reduction {
    #[inline]
    fn check(&self) -> Result<()> {
        if let (Some(send), Some(receive)) = (&self.send, &self.receive)
            && send.bytes() > 0
            && send.is(receive)
        {
            return Err(aliased());
        }
        self.ours().map_or(Ok(()), |ours| self.op.check(ours.ty()))
    }
}

#[inline(always)]
fn check_root(core: &Core, root: i32) -> Result<()> {
    if root < 0 || root as usize >= core.size() {
        Err(bad_root(core, root))
    } else {
        Ok(())
    }
}

#[cold]
fn bad_root(core: &Core, root: i32) -> Error {
    let (size, last) = (core.size(), core.size() - 1);
    Error::new(
        Class::ROOT,
        format!("root {root} does not exist: the communicator has {size} ranks, 0 to {last}"),
    )
}

fn check_present(is: bool) -> Result<()> {
    if is { Ok(()) } else { Err(misplaced()) }
}

#[cold]
fn misplaced() -> Error {
    Error::new(
        Class::BUFFER,
        "MPI_IN_PLACE is not allowed for this buffer on this rank (MPI 5.0 §6.2.1)",
    )
}

fn check_own_part(core: &Core, one: Option<&Buffer>, all: Option<&Blocks>) -> Result<()> {
    match (one, all) {
        (Some(one), Some(all)) if all.part(core.rank).begins_with(one) => Err(aliased()),
        _ => Ok(()),
    }
}

#[cold]
fn aliased() -> Error {
    let detail = "the buffers to send and to receive are the same memory: use MPI_IN_PLACE, or memory of its own for each";
    Error::new(Class::BUFFER, detail)
}
