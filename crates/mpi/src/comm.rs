//! Communicators: a group and a context of its own (MPI 5.0 §7).

use std::sync::Arc;

use crate::attributes::Attributes;
use crate::coll::Sharing;
use crate::errhandler;
use crate::group::Comparison;
use crate::handle::Slab;
use crate::hints::Hints;
use crate::rank::State;
use crate::topology::Cartesian;
use crate::{Class, Error, PROC_NULL, Result};

pub use crate::group::Members;

/// The ABI's values of the predefined communicators.
pub const NULL: u32 = 0x100;
pub const WORLD: u32 = 0x101;
pub const SELF: u32 = 0x102;

/// The longest name of an object, without the closing NUL of C.
pub const MAX_NAME: usize = 127;

/// Messages of collective operations have a context of their own beside the communicator's.
pub const COLLECTIVE: u64 = 1 << 63;
/// And so have those by which ranks agree on a new communicator.
pub const AGREEMENT: u64 = 1 << 62;

/// The context of the communicator that a message belongs to.
pub fn bare(context: u64) -> u64 {
    context & !(COLLECTIVE | AGREEMENT)
}

/// What communication needs of a communicator: it outlives the handle while operations are under way.
#[derive(Debug)]
pub struct Core {
    /// Unique in the job: the job's rank that made it up, and a number of its own.
    pub context: u64,
    pub members: Members,
    /// This rank's place among the members.
    pub rank: usize,
}

impl Core {
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The job's rank behind `rank`; `None` for `MPI_PROC_NULL`.
    #[inline(always)]
    pub fn peer(&self, rank: i32) -> Result<Option<usize>> {
        match self.members.world(rank as usize) {
            Some(world) if rank >= 0 => Ok(Some(world)),
            _ if rank == PROC_NULL => Ok(None),
            _ => Err(self.no_such_rank(rank)),
        }
    }

    #[cold]
    pub fn no_such_rank(&self, rank: i32) -> Error {
        let detail = match self.size() {
            0 => "the communicator is not ready: wait for the request of MPI_Comm_idup first"
                .to_string(),
            size => format!(
                "rank {rank} does not exist: the communicator has {size} ranks, 0 to {}",
                size - 1
            ),
        };
        Error::new(Class::RANK, detail)
    }
}

pub struct Comm {
    pub core: Arc<Core>,
    pub name: String,
    /// Counts the collective operations begun, so that those under way at once keep apart.
    pub collectives: u32,
    /// The memory in which small collective operations are done.
    pub(crate) sharing: Sharing,
    pub attributes: Attributes,
    pub topology: Option<Arc<Cartesian>>,
    /// The handle of its error handler.
    pub errhandler: u32,
    pub hints: Hints,
}

impl Comm {
    pub fn new(core: Core, name: impl Into<String>) -> Comm {
        Comm {
            core: Arc::new(core),
            name: name.into(),
            collectives: 0,
            sharing: Sharing::default(),
            attributes: Attributes::default(),
            topology: None,
            errhandler: errhandler::FATAL,
            hints: Hints::default(),
        }
    }

    /// The tag of the next collective operation: every rank of the communicator begins them in the same order.
    pub fn collective_tag(&mut self) -> i32 {
        let tag = self.collectives & i32::MAX as u32;
        self.collectives = self.collectives.wrapping_add(1);
        tag as i32
    }

    /// Names the communicator; what is longer than `MPI_MAX_OBJECT_NAME` allows is cut off.
    pub fn set_name(&mut self, name: &str) {
        self.name = cut(name).to_string();
    }
}

/// As much of a name as fits `MPI_MAX_OBJECT_NAME`.
pub(crate) fn cut(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// All communicators of a rank.
pub struct Comms {
    pub world: Comm,
    pub alone: Comm,
    pub others: Slab<Comm>,
}

impl Comms {
    #[inline(always)]
    pub fn get(&self, handle: u32) -> Result<&Comm> {
        match handle {
            WORLD => Ok(&self.world),
            SELF => Ok(&self.alone),
            _ => self.others.get(handle).ok_or_else(|| unknown(handle)),
        }
    }

    pub fn get_mut(&mut self, handle: u32) -> Result<&mut Comm> {
        match handle {
            WORLD => Ok(&mut self.world),
            SELF => Ok(&mut self.alone),
            _ => self.others.get_mut(handle).ok_or_else(|| unknown(handle)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Comm> {
        [&self.world, &self.alone]
            .into_iter()
            .chain(self.others.iter().map(|(_, comm)| comm))
    }

    /// The communicator whose messages have this context.
    pub fn handle_of(&self, context: u64) -> Option<u32> {
        let context = bare(context);
        let others = self.others.iter();
        let mut all = [(WORLD, &self.world), (SELF, &self.alone)]
            .into_iter()
            .chain(others);
        all.find(|(_, comm)| comm.core.context == context)
            .map(|(handle, _)| handle)
    }

    pub fn compare(&self, first: u32, second: u32) -> Result<Comparison> {
        let (one, other) = (&self.get(first)?.core, &self.get(second)?.core);
        Ok(match one.members.compare(&other.members) {
            Comparison::Ident if first != second => Comparison::Congruent,
            comparison => comparison,
        })
    }
}

impl State {
    /// `MPI_Comm_group`.
    pub fn comm_group(&mut self, comm: u32) -> Result<u32> {
        let members = self.comms.get(comm)?.core.members.clone();
        self.groups.add(members)
    }

    /// Gives a new communicator its handle.
    pub(crate) fn add_comm(&mut self, comm: Comm) -> Result<u32> {
        let errhandler = comm.errhandler;
        let handle = self.comms.others.insert(comm).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million communicators: free some of them first",
            )
        })?;
        self.errhandlers.hold(errhandler);
        Ok(handle)
    }

    /// The handle names nothing any more; operations under way go on.
    pub(crate) fn remove_comm(&mut self, handle: u32) -> Result<()> {
        let comm = self
            .comms
            .others
            .remove(handle)
            .ok_or_else(|| unknown(handle))?;
        self.errhandlers.let_go(comm.errhandler);
        Ok(())
    }
}

#[cold]
fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_COMM_NULL is not a communicator that can be used".to_string(),
        _ => format!("{handle:#x} is not a communicator: it was never one, or it has been freed"),
    };
    Error::new(Class::COMM, detail)
}
