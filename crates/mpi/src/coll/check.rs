//! Checks of arguments against each other and against the communicator.

use super::signature::{Data, Root, Signature};
use crate::comm::Core;
use crate::{Class, Error, Result};

impl Signature<'_> {
    /// Finds what is wrong with the arguments together; each alone has been checked before.
    #[inline(always)]
    pub(super) fn check(&self, core: &Core) -> Result<()> {
        let (is_root, needed) = match self.root {
            Root::None => (true, self.gets),
            Root::Gives(root) => match check_root(core, root)? {
                true => (true, self.gives),
                false => (false, self.gets),
            },
            Root::Gets(root) => match check_root(core, root)? {
                true => (true, self.gets),
                false => (false, self.gives),
            },
        };
        if !needed.is_present() {
            return Err(misplaced());
        }
        if self.is_aliased(is_root, core.rank) {
            return Err(aliased());
        }
        match (self.combines, self.ours()) {
            (Some((op, _)), Some(ours)) => op.check(ours.ty()),
            _ => Ok(()),
        }
    }

    /// This rank gives and gets the same memory. `is_root`: it has all blocks, if one rank has.
    #[inline(always)]
    fn is_aliased(&self, is_root: bool, me: usize) -> bool {
        match (self.gives, self.gets) {
            (Data::One(Some(one)), Data::Each(Some(all)))
            | (Data::Each(Some(all)), Data::One(Some(one))) => {
                is_root && all.part(me).begins_with(one)
            }
            (Data::Each(Some(give)), Data::Each(Some(take))) => {
                give.part(me).begins_with(&take.part(me))
            }
            (Data::Vector(Some(give)), Data::Vector(Some(take))) => {
                give.bytes() > 0 && give.is(take)
            }
            _ => false,
        }
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

#[cold]
fn misplaced() -> Error {
    Error::new(
        Class::BUFFER,
        "MPI_IN_PLACE is not allowed for this buffer on this rank (MPI 5.0 §6.2.1)",
    )
}

#[cold]
fn aliased() -> Error {
    let detail = "the send buffer and the receive buffer are the same memory: use MPI_IN_PLACE, or separate buffers";
    Error::new(Class::BUFFER, detail)
}
