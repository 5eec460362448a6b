//! Checks of arguments against each other and against the communicator.

use datatype::Buffer;

use super::blocks::Blocks;
use super::reduce::Reduction;
use super::work::Work;
use crate::comm::Core;
use crate::{Class, Error, Result};

impl Work {
    /// Finds what is wrong with the arguments together; each alone has been checked before.
    #[inline]
    pub(super) fn check(&self, core: &Core) -> Result<()> {
        match self {
            Work::Barrier => Ok(()),
            Work::Bcast { root, .. } => check_root(core, *root).map(drop),
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
                let at_root = check_root(core, *root)?;
                check_present(at_root, receive.is_some(), send.is_some())?;
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
                let at_root = check_root(core, *root)?;
                check_present(at_root, send.is_some(), receive.is_some())?;
                check_own_part(core, receive.as_ref(), send.as_ref().filter(|_| at_root))
            }
            Work::Allgather { send, receive } => check_own_part(core, send.as_ref(), Some(receive)),
            Work::Alltoall { send, receive } => match send {
                Some(send) if send.part(core.rank).begins_with(&receive.part(core.rank)) => {
                    Err(aliased())
                }
                _ => Ok(()),
            },
            Work::NeighbourAllgather { .. } | Work::NeighbourAlltoall { .. } => Ok(()),
            Work::Reduce { reduction, root } => {
                let at_root = check_root(core, *root)?;
                let (receive, send) = (reduction.receive.is_some(), reduction.send.is_some());
                check_present(at_root, receive, send)?;
                reduction.check()
            }
            Work::Allreduce(reduction)
            | Work::ReduceScatter { reduction, .. }
            | Work::Scan { reduction, .. } => {
                check_present(true, reduction.receive.is_some(), true)?;
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

/// Is this rank the root? An error if the root does not exist.
#[inline(always)]
fn check_root(core: &Core, root: i32) -> Result<bool> {
    if root < 0 || root as usize >= core.size() {
        Err(bad_root(core, root))
    } else {
        Ok(core.rank == root as usize)
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

/// `root`, `other`: is the buffer there that the root, or any other rank, cannot do without?
fn check_present(at_root: bool, root: bool, other: bool) -> Result<()> {
    let present = if at_root { root } else { other };
    if present { Ok(()) } else { Err(misplaced()) }
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
    let detail = "the send buffer and the receive buffer are the same memory: use MPI_IN_PLACE, or separate buffers";
    Error::new(Class::BUFFER, detail)
}
