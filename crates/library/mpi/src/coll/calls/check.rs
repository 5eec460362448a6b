//! Checks of the arguments of a collective operation, against each other and against the
//! communicator.

use datatype::Buffer;

use super::blocks::Blocks;
use super::signature::{Data, Root, Signature};
use crate::algorithms::Collective;
use crate::comm::Core;
use crate::{Class, Error, PROC_NULL, ROOT, Result};

impl Signature<'_> {
    /// Checks the arguments against each other and the communicator; each alone has been checked
    /// before.
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

    /// Checks the arguments against each other and an intercommunicator, where `MPI_IN_PLACE` is
    /// not allowed.
    pub(super) fn check_between(&self, core: &Core) -> Result<()> {
        if self.collective == Collective::Scan {
            return Err(one_group("MPI_Scan and MPI_Exscan need"));
        }
        let (gives, gets) = match self.root {
            Root::None => (true, true),
            Root::Gives(root) => match RootBetween::of(core, root)? {
                RootBetween::Here => (true, false),
                RootBetween::There(_) => (false, true),
                RootBetween::Nowhere => (false, false),
            },
            Root::Gets(root) => match RootBetween::of(core, root)? {
                RootBetween::Here => (false, true),
                RootBetween::There(_) => (true, false),
                RootBetween::Nowhere => (false, false),
            },
        };
        if gives && !self.gives.is_present() || gets && !self.gets.is_present() {
            return Err(misplaced_between());
        }
        if gives && gets && self.is_aliased(true, 0) {
            return Err(aliased());
        }
        match (self.combines, self.ours()) {
            (Some((op, _)), Some(ours)) if gives || gets => op.check(ours.ty()),
            _ => Ok(()),
        }
    }

    /// True if this rank gives and gets data in one memory. `is_root`: this rank has the blocks of
    /// all members.
    #[inline(always)]
    fn is_aliased(&self, is_root: bool, me: usize) -> bool {
        match (self.gives, self.gets) {
            (Data::One(Some(one)), Data::Each(Some(all)))
            | (Data::Each(Some(all)), Data::One(Some(one))) => is_root && begins_with(all, me, one),
            (Data::Each(Some(give)), Data::Each(Some(take))) => {
                begins_with(give, me, &take.part(me))
            }
            (Data::Vector(Some(give)), Data::Vector(Some(take))) => {
                give.bytes() > 0 && give.is(take)
            }
            _ => false,
        }
    }
}

/// True if the block of member `me` begins where `one` does. It is not inlined, to stay out of the
/// paths of calls without blocks.
#[inline(never)]
fn begins_with(all: &Blocks, me: usize, one: &Buffer) -> bool {
    all.part(me).begins_with(one)
}

/// The root of an operation between two groups, from the view of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RootBetween {
    /// This rank is the root of the operation: it passed `MPI_ROOT`.
    Here,
    /// Another rank of this group is the root: this rank passed `MPI_PROC_NULL` and does not take
    /// part.
    Nowhere,
    /// The root is the rank with this number in the remote group.
    There(usize),
}

impl RootBetween {
    /// Decodes the root argument of a call on an intercommunicator; an error if the root does not
    /// exist.
    pub(super) fn of(core: &Core, root: i32) -> Result<RootBetween> {
        match root {
            ROOT => Ok(RootBetween::Here),
            PROC_NULL => Ok(RootBetween::Nowhere),
            _ => match core.peer(root) {
                Ok(_) => Ok(RootBetween::There(root as usize)),
                Err(_) => Err(bad_root(core, root)),
            },
        }
    }
}

/// The error of an operation that needs an intracommunicator. `what`: the operation, with the verb
/// "need".
#[cold]
pub(super) fn one_group(what: &str) -> Error {
    let detail = format!("{what} a communicator with one group: this is an intercommunicator");
    Error::new(Class::COMM, detail)
}

/// True if this rank is the root. An error if the root does not exist.
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
    let (size, last) = (core.peers().len(), core.peers().len() - 1);
    let detail = match core.is_inter() {
        false => {
            format!("root {root} does not exist: the communicator has {size} ranks, 0 to {last}")
        }
        true => format!(
            "root {root} does not exist: the remote group has {size} ranks, 0 to {last}; ranks of the root's own group \
             name MPI_ROOT and MPI_PROC_NULL"
        ),
    };
    Error::new(Class::ROOT, detail)
}

#[cold]
fn misplaced() -> Error {
    Error::new(
        Class::BUFFER,
        "MPI_IN_PLACE is not allowed for this buffer on this rank (MPI 5.0 §6.2.1)",
    )
}

#[cold]
fn misplaced_between() -> Error {
    Error::new(
        Class::BUFFER,
        "MPI_IN_PLACE is not allowed on an intercommunicator (MPI 5.0 §6.2.3)",
    )
}

#[cold]
fn aliased() -> Error {
    let detail = "the send buffer and the receive buffer are the same memory: use MPI_IN_PLACE, or separate buffers";
    Error::new(Class::BUFFER, detail)
}
