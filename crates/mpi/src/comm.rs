//! Communicators: a group of ranks and a message space (MPI 5.0 §7).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::algorithms::Network;
use crate::algorithms::contest::Contests;
use crate::algorithms::recent::RecentChoices;
use crate::attributes::Attributes;
use crate::collective_buffers::CommBuffer;
use crate::errhandler;
use crate::group::Comparison;
use crate::handle::Slab;
use crate::hints::Hints;
use crate::lanes::Lane;
use crate::matching::Key;
use crate::shape::Shape;
use crate::topology::Topology;
use crate::{Class, Error, PROC_NULL, Result};

pub use crate::group::Members;

/// `MPI_COMM_NULL`, with the ABI's value.
pub const NULL: u32 = 0x100;
/// `MPI_COMM_WORLD`, with the ABI's value.
pub const WORLD: u32 = 0x101;
/// `MPI_COMM_SELF`, with the ABI's value.
pub const SELF: u32 = 0x102;

/// The longest name of an object in bytes, without the closing NUL of C.
pub const MAX_NAME: usize = 127;

/// The bit of a context that separates messages of collective operations from the user's.
pub(crate) const COLLECTIVE: u64 = 1 << 63;
/// The bit of a context that separates messages by which ranks agree on a new communicator.
pub(crate) const AGREEMENT: u64 = 1 << 62;

/// The bit of a context that separates messages of persistent collective operations, whose tags are
/// numbers of their own.
pub(crate) const PERSISTENT: u64 = 1 << 61;

/// The bit of a context that separates messages of one-sided communication.
pub(crate) const WINDOW: u64 = 1 << 60;

/// The number of stages of a collective operation, whose messages match apart from each other's.
pub(crate) const STAGES: u64 = 16;

/// The bits of a context that have the number of a stage.
pub(crate) fn stage(number: u64) -> u64 {
    debug_assert!(number < STAGES);
    number << 56
}

/// The context of the communicator that a message with this context belongs to.
pub(crate) fn bare(context: u64) -> u64 {
    context & !(COLLECTIVE | AGREEMENT | PERSISTENT | WINDOW | stage(STAGES - 1))
}

/// The part of a communicator that communication needs. It outlives the handle while operations are
/// in flight.
#[derive(Debug)]
pub struct Core {
    /// Unique in the job: the world rank that made it up, and a number that this rank counts.
    pub context: u64,
    /// The members, by world rank.
    pub members: Members,
    /// This rank's number in the communicator.
    pub rank: usize,
    /// The members by host, once a collective operation has needed them.
    shape: OnceLock<Shape>,
    /// The network between the members.
    pub(crate) network: Arc<AgreedNetwork>,
    /// Algorithms that costs have chosen.
    recent: OnceLock<RecentChoices>,
}

/// The network between the members of a communicator, on which they agree in their first collective
/// operation. Communicators made from it have the same.
#[derive(Debug, Default)]
pub(crate) struct AgreedNetwork {
    is_begun: AtomicBool,
    /// Empty until the members have agreed.
    pub(crate) agreed: OnceLock<Network>,
}

impl AgreedNetwork {
    /// True at the first call: the members begin to agree in that operation.
    pub(crate) fn begin(&self) -> bool {
        !self.is_begun.load(Ordering::Relaxed) && !self.is_begun.swap(true, Ordering::Relaxed)
    }
}

impl Core {
    /// The part of a communicator whose members have not agreed on their network.
    pub fn new(context: u64, members: Members, rank: usize) -> Core {
        Core {
            context,
            members,
            rank,
            shape: OnceLock::new(),
            network: Arc::default(),
            recent: OnceLock::new(),
        }
    }

    /// Members of `parent`, all of whose members make this communicator together.
    pub(crate) fn made_from(mut self, parent: &Core) -> Core {
        if parent.network.is_begun.load(Ordering::Relaxed) {
            self.network = parent.network.clone();
        }
        self
    }

    /// Algorithms that costs have chosen for this communicator.
    pub(crate) fn recent_choices(&self) -> &RecentChoices {
        self.recent.get_or_init(RecentChoices::default)
    }

    /// The members by host; `host_of` returns the host of a world rank.
    pub(crate) fn shape(&self, host_of: impl Fn(usize) -> u32) -> &Shape {
        self.shape
            .get_or_init(|| Shape::of(self.members.iter().map(host_of)))
    }

    /// The number of members.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The world rank of a member; `None` for `MPI_PROC_NULL`.
    #[inline(always)]
    pub fn peer(&self, rank: i32) -> Result<Option<usize>> {
        match self.members.world(rank as usize) {
            Some(world) if rank >= 0 => Ok(Some(world)),
            _ if rank == PROC_NULL => Ok(None),
            _ => Err(self.no_such_rank(rank)),
        }
    }

    /// The error for a rank that the communicator does not have.
    #[cold]
    pub(crate) fn no_such_rank(&self, rank: i32) -> Error {
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

/// A communicator.
pub struct Comm {
    /// The part that communication needs.
    pub core: Arc<Core>,
    /// Empty if the user has not named it.
    pub name: String,
    /// Collective operations begun. The number tells operations apart that are in flight together.
    pub(crate) collectives: u32,
    /// Persistent collective operations initialized.
    pub(crate) persistent: u32,
    /// The collective buffer, for small collective operations.
    pub(crate) buffer: CommBuffer,
    /// The lane of long and of nonblocking collective operations.
    pub(crate) lane: Option<Lane>,
    /// The contests by which its members learn. `None`: they learn nothing.
    pub(crate) contests: Option<Box<Contests>>,
    /// Attributes that users have cached on the communicator.
    pub attributes: Attributes,
    /// Its topology, if it has one.
    pub topology: Option<Arc<Topology>>,
    /// The handle of its error handler.
    pub errhandler: u32,
    /// The hints that are set.
    pub hints: Hints,
    /// The number of lost peers of the rank of which waits for any source have heard.
    pub(crate) losses_told: usize,
    /// The reason why a member has left a collective operation, after which none works.
    pub(crate) left: Option<Error>,
}

impl Comm {
    /// A communicator without attributes, with the default error handler.
    pub fn new(core: Core, name: impl Into<String>) -> Comm {
        Comm {
            core: Arc::new(core),
            name: name.into(),
            collectives: 0,
            persistent: 0,
            buffer: CommBuffer::default(),
            lane: None,
            contests: None,
            attributes: Attributes::default(),
            topology: None,
            errhandler: errhandler::FATAL,
            hints: Hints::default(),
            losses_told: 0,
            left: None,
        }
    }

    /// The tag of the next collective operation: all members begin them in one order.
    pub(crate) fn collective_tag(&mut self) -> i32 {
        let tag = self.collectives & i32::MAX as u32;
        self.collectives = self.collectives.wrapping_add(1);
        tag as i32
    }

    /// The tag of the next persistent collective operation: all members initialize them in one
    /// order.
    pub(crate) fn persistent_tag(&mut self) -> i32 {
        let tag = self.persistent & i32::MAX as u32;
        self.persistent = self.persistent.wrapping_add(1);
        tag as i32
    }

    /// Names the communicator; a name longer than [`MAX_NAME`] is cut off.
    pub fn set_name(&mut self, name: &str) {
        self.name = cut(name).to_string();
    }
}

/// The longest beginning of a name that fits [`MAX_NAME`].
pub(crate) fn cut(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// All communicators of a rank.
pub struct Comms {
    /// `MPI_COMM_WORLD`.
    pub world: Comm,
    /// `MPI_COMM_SELF`.
    pub alone: Comm,
    /// The communicators that the program made.
    pub others: Slab<Comm>,
}

impl Comms {
    /// The communicator with this handle.
    #[inline(always)]
    pub fn get(&self, handle: u32) -> Result<&Comm> {
        match handle {
            WORLD => Ok(&self.world),
            SELF => Ok(&self.alone),
            _ => self.others.get(handle).ok_or_else(|| unknown(handle)),
        }
    }

    /// The communicator with this handle, to change it.
    pub fn get_mut(&mut self, handle: u32) -> Result<&mut Comm> {
        match handle {
            WORLD => Ok(&mut self.world),
            SELF => Ok(&mut self.alone),
            _ => self.others.get_mut(handle).ok_or_else(|| unknown(handle)),
        }
    }

    /// All communicators.
    pub fn iter(&self) -> impl Iterator<Item = &Comm> {
        [&self.world, &self.alone]
            .into_iter()
            .chain(self.others.iter().map(|(_, comm)| comm))
    }

    /// The handle of the communicator whose messages have this context.
    pub fn handle_of(&self, context: u64) -> Option<u32> {
        let context = bare(context);
        let others = self.others.iter();
        let mut all = [(WORLD, &self.world), (SELF, &self.alone)]
            .into_iter()
            .chain(others);
        all.find(|(_, comm)| comm.core.context == context)
            .map(|(handle, _)| handle)
    }

    /// The world rank that sends the messages with this key. `None`: the key names no source, or
    /// its messages are not the user's.
    pub(crate) fn sender_of(&self, key: &Key) -> Option<usize> {
        let of_user = key.context == bare(key.context) && key.source >= 0;
        let comm = of_user.then(|| self.handle_of(key.context)).flatten()?;
        self.get(comm).ok()?.core.peer(key.source).ok()?
    }

    /// `MPI_Comm_compare`.
    pub fn compare(&self, first: u32, second: u32) -> Result<Comparison> {
        let (one, other) = (&self.get(first)?.core, &self.get(second)?.core);
        Ok(match one.members.compare(&other.members) {
            Comparison::Ident if first != second => Comparison::Congruent,
            comparison => comparison,
        })
    }
}

/// The error for a handle that names no communicator.
#[cold]
pub(crate) fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_COMM_NULL is not a communicator that can be used".to_string(),
        _ => format!("{handle:#x} is not a communicator: it was never one, or it has been freed"),
    };
    Error::new(Class::COMM, detail)
}
