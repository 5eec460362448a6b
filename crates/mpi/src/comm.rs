//! Communicators: a group and a context of its own (MPI 5.0 §7).

use std::sync::Arc;

use crate::{Class, Error, PROC_NULL, Result};

/// The ABI's values of the predefined communicators.
pub const WORLD: u32 = 0x101;
pub const SELF: u32 = 0x102;

/// Messages of collective operations have a context of their own beside the communicator's.
pub const COLLECTIVE: u64 = 1 << 63;

/// The members of a communicator or group, by their rank in the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    /// All ranks of the job in order: `n` of them.
    All(usize),
    Listed(Arc<[u32]>),
}

impl Members {
    pub fn len(&self) -> usize {
        match self {
            Members::All(size) => *size,
            Members::Listed(ranks) => ranks.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The job's rank of member `rank`.
    #[inline(always)]
    pub fn world(&self, rank: usize) -> Option<usize> {
        match self {
            Members::All(size) => (rank < *size).then_some(rank),
            Members::Listed(ranks) => ranks.get(rank).map(|&rank| rank as usize),
        }
    }

    /// Which member is the job's rank `world`?
    pub fn rank_of(&self, world: usize) -> Option<usize> {
        match self {
            Members::All(size) => (world < *size).then_some(world),
            Members::Listed(ranks) => ranks.iter().position(|&rank| rank as usize == world),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter_map(|rank| self.world(rank))
    }
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
        Error::new(
            Class::RANK,
            format!(
                "rank {rank} does not exist: the communicator has {} ranks, 0 to {}",
                self.size(),
                self.size() - 1
            ),
        )
    }
}

pub struct Comm {
    pub core: Arc<Core>,
    pub name: String,
    /// Counts the collective operations begun, so that those under way at once keep apart.
    pub collectives: u32,
}

impl Comm {
    pub fn new(core: Core, name: impl Into<String>) -> Comm {
        Comm {
            core: Arc::new(core),
            name: name.into(),
            collectives: 0,
        }
    }
}
