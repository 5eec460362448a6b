//! Communicators: a group of ranks and a message space (MPI 5.0 §7).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::algorithms::Network;
use crate::algorithms::contest::Contests;
use crate::algorithms::recent::RecentChoices;
use crate::attributes::Attributes;
use crate::coll::collective_buffers::CommBuffer;
use crate::coll::lanes::Lane;
use crate::errhandler;
use crate::group::Comparison;
use crate::handle::{ObjectKind, Slab};
use crate::hints::Hints;
use crate::matching::Key;
use crate::shape::Shape;
use crate::topology::Topology;
use crate::{ANY_SOURCE, ANY_TAG, Class, Error, PROC_NULL, Result, TAG_UB};

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
    /// The members of this rank's group, by world rank.
    pub members: Members,
    /// This rank's number in its group.
    pub rank: usize,
    /// The group whose ranks calls name: the same, or the remote group of an intercommunicator.
    peers: Members,
    /// The members of both groups of an intercommunicator, as a communicator of one group.
    joint: Option<Arc<Core>>,
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
            peers: members.clone(),
            members,
            rank,
            joint: None,
            shape: OnceLock::new(),
            network: Arc::default(),
            recent: OnceLock::new(),
        }
    }

    /// The part of an intercommunicator between this rank's group and a remote one. `is_first`:
    /// this rank's group comes first in the joint group. The two groups answer differently.
    pub fn between(
        context: u64,
        members: Members,
        rank: usize,
        remote: Members,
        is_first: bool,
    ) -> Core {
        let (first, second) = match is_first {
            true => (&members, &remote),
            false => (&remote, &members),
        };
        let place = match is_first {
            true => rank,
            false => first.len() + rank,
        };
        let all = first.iter().chain(second.iter());
        let all: Vec<u32> = all.map(|world| world as u32).collect();
        Core {
            joint: Some(Arc::new(Core::new(context, all.into(), place))),
            peers: remote,
            ..Core::new(context, members, rank)
        }
    }

    /// The same groups with another context.
    pub(crate) fn again(&self, context: u64) -> Core {
        let (members, rank) = (self.members.clone(), self.rank);
        match self.joint.is_some() {
            true => {
                let is_first = self.is_first();
                Core::between(context, members, rank, self.peers.clone(), is_first)
            }
            false => Core::new(context, members, rank),
        }
    }

    /// Members of `parent`, all of whose members make this communicator together.
    pub(crate) fn made_from(mut self, parent: &Core) -> Core {
        let network = &parent.joint().network;
        if !network.is_begun.load(Ordering::Relaxed) {
            return self;
        }
        let network = network.clone();
        match &mut self.joint {
            // Nobody else has it yet.
            Some(joint) => _ = Arc::get_mut(joint).map(|joint| joint.network = network),
            None => self.network = network,
        }
        self
    }

    /// The communicator has two groups.
    #[inline(always)]
    pub fn is_inter(&self) -> bool {
        self.joint.is_some()
    }

    /// The remote group of an intercommunicator, by world rank.
    pub fn remote(&self) -> Option<&Members> {
        self.is_inter().then_some(&self.peers)
    }

    /// The group whose ranks calls name, by world rank: this rank's own, or the remote group of an
    /// intercommunicator.
    pub fn peers(&self) -> &Members {
        &self.peers
    }

    /// The group in which messages with this context number their senders and receivers: the
    /// [`peers`](Core::peers) for those of users, and the joint group for those of the library.
    pub(crate) fn numbered(&self, context: u64) -> &Members {
        match context == bare(context) {
            true => &self.peers,
            false => &self.joint().members,
        }
    }

    /// All members as a communicator of one group, with the same context.
    pub(crate) fn joint(&self) -> &Core {
        self.joint.as_deref().unwrap_or(self)
    }

    /// The joint group of an intercommunicator.
    pub(crate) fn joined(&self) -> Option<&Arc<Core>> {
        self.joint.as_ref()
    }

    /// This rank's group comes first in the joint group.
    pub(crate) fn is_first(&self) -> bool {
        self.joint().rank == self.rank
    }

    /// The members of this rank's group, by their numbers in the joint group.
    pub(crate) fn ours(&self) -> Range<usize> {
        let first = self.joint().rank - self.rank;
        first..first + self.members.len()
    }

    /// The [`peers`](Core::peers), by their numbers in the joint group.
    pub(crate) fn theirs(&self) -> Range<usize> {
        match self.is_inter() && self.is_first() {
            true => self.members.len()..self.joint().size(),
            false => 0..self.peers.len(),
        }
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

    /// The number of members of this rank's group.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The world rank of the member with this number among the [`peers`](Core::peers); `None` for
    /// `MPI_PROC_NULL`.
    #[inline(always)]
    pub fn peer(&self, rank: i32) -> Result<Option<usize>> {
        match self.peers.world(rank as usize) {
            Some(world) if rank >= 0 => Ok(Some(world)),
            _ if rank == PROC_NULL => Ok(None),
            _ => Err(self.no_such_rank(rank)),
        }
    }

    /// The error for a rank that the communicator does not have.
    #[cold]
    pub(crate) fn no_such_rank(&self, rank: i32) -> Error {
        let of = match self.is_inter() {
            true => "the remote group",
            false => "the communicator",
        };
        let detail = match self.peers.len() {
            0 => "the communicator is not ready: wait for the request of MPI_Comm_idup first"
                .to_string(),
            size => format!(
                "rank {rank} does not exist: {of} has {size} ranks, 0 to {}",
                size - 1
            ),
        };
        Error::new(Class::RANK, detail)
    }
}

/// The members of an intercommunicator that share a collective buffer: all, or the root with this
/// number in the joint group and the members of the other group.
pub(crate) type Around = Option<usize>;

/// The memory that some members of an intercommunicator share, and what they have learned.
#[derive(Default)]
pub(crate) struct SharedBetween {
    /// Their collective buffer.
    pub(crate) buffer: CommBuffer,
    /// Their lane, by which they copy directly.
    pub(crate) lane: Option<Lane>,
    /// The contests by which they learn. `None`: they learn nothing.
    pub(crate) contests: Option<Box<Contests>>,
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
    /// The shared memory of an intercommunicator: of all members, and of the receivers around each
    /// root.
    pub(crate) between: Vec<(Around, SharedBetween)>,
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
            between: Vec::new(),
            lane: None,
            contests: None,
            attributes: Attributes::default(),
            topology: None,
            errhandler: errhandler::FATAL,
            hints: Hints::default(),
        }
    }

    /// The shared memory of some members of an intercommunicator.
    pub(crate) fn shared_between(&mut self, around: Around) -> &mut SharedBetween {
        let known = self.between.iter().position(|(of, _)| *of == around);
        let at = known.unwrap_or_else(|| {
            self.between.push((around, SharedBetween::default()));
            self.between.len() - 1
        });
        &mut self.between[at].1
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

/// The handles of the ABI's communicators.
const PREDEFINED: [u32; 2] = [WORLD, SELF];

/// All communicators of a rank, by handle.
pub struct Comms {
    /// The communicators with the handles of [`PREDEFINED`], in the same order.
    predefined: [Comm; PREDEFINED.len()],
    /// The communicators that the program made.
    made: Slab<Comm>,
    /// The number of the next context that this rank assigns.
    next_context: u32,
}

impl Comms {
    /// The table of a rank with these communicators as `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub fn new(world: Comm, alone: Comm) -> Comms {
        Comms {
            predefined: [world, alone],
            made: Slab::new(ObjectKind::Comm),
            // Those of the predefined communicators are 0 and 1.
            next_context: 2,
        }
    }

    /// A context that no other communicator of the job has. All members must learn it. `rank`: this
    /// rank's number in the job.
    pub(crate) fn new_context(&mut self, rank: usize) -> u64 {
        let number = self.next_context;
        self.next_context += 1;
        (rank as u64) << 32 | u64::from(number)
    }

    /// The communicator with this handle.
    #[inline(always)]
    pub fn get(&self, handle: u32) -> Result<&Comm> {
        match handle {
            // Comparisons with constants: a search would cost a send 15 instructions more.
            WORLD => Ok(&self.predefined[0]),
            SELF => Ok(&self.predefined[1]),
            _ => self.made.get(handle).ok_or_else(|| unknown(handle)),
        }
    }

    /// The communicator with this handle, to change it.
    pub fn get_mut(&mut self, handle: u32) -> Result<&mut Comm> {
        match handle {
            WORLD => Ok(&mut self.predefined[0]),
            SELF => Ok(&mut self.predefined[1]),
            _ => self.made.get_mut(handle).ok_or_else(|| unknown(handle)),
        }
    }

    /// Adds a communicator and returns its handle. `None` if there are a million already.
    pub fn insert(&mut self, comm: Comm) -> Option<u32> {
        self.made.insert(comm)
    }

    /// Another communicator can be added.
    pub(crate) fn has_room(&self) -> bool {
        self.made.has_room()
    }

    /// Takes out a communicator that the program made; its handle becomes invalid.
    pub fn remove(&mut self, handle: u32) -> Option<Comm> {
        self.made.remove(handle)
    }

    /// All communicators, with their handles.
    fn entries(&self) -> impl Iterator<Item = (u32, &Comm)> {
        let predefined = PREDEFINED.into_iter().zip(&self.predefined);
        predefined.chain(self.made.iter())
    }

    /// The communicator with this handle, if there is one with one group.
    #[inline(always)]
    pub(crate) fn with_one_group(&mut self, handle: u32) -> Option<&mut Comm> {
        match handle {
            WORLD => Some(&mut self.predefined[0]),
            SELF => Some(&mut self.predefined[1]),
            _ => {
                let made = self.made.get_mut(handle);
                made.filter(|comm| !comm.core.is_inter())
            }
        }
    }

    /// All communicators.
    pub fn iter(&self) -> impl Iterator<Item = &Comm> {
        self.entries().map(|(_, comm)| comm)
    }

    /// The handle of the communicator whose messages have this context.
    pub fn handle_of(&self, context: u64) -> Option<u32> {
        let context = bare(context);
        self.entries()
            .find(|(_, comm)| comm.core.context == context)
            .map(|(handle, _)| handle)
    }

    /// The communicator whose messages have this context, those of the library included.
    pub(crate) fn of_context(&self, context: u64) -> Option<&Comm> {
        let context = bare(context);
        self.iter().find(|comm| comm.core.context == context)
    }

    /// The world rank that sends the messages with this key, those of the library included.
    pub(crate) fn source_of(&self, key: &Key) -> Option<usize> {
        if key.source < 0 {
            return None;
        }
        let core = &self.of_context(key.context)?.core;
        core.numbered(key.context).world(key.source as usize)
    }

    /// The envelope that a receive or probe matches. `None`: the source is `MPI_PROC_NULL`.
    ///
    /// # Errors
    /// An argument is invalid.
    #[inline(always)]
    pub(crate) fn receive_key(&self, source: i32, tag: i32, comm: u32) -> Result<Option<Key>> {
        let core = &self.get(comm)?.core;
        if source != ANY_SOURCE && core.peer(source)?.is_none() {
            return Ok(None);
        }
        if tag < 0 {
            check_negative(tag)?;
        }
        Ok(Some(Key {
            context: core.context,
            source,
            tag,
        }))
    }

    /// The world rank to which a send goes, and the envelope of its message. `None`: the
    /// destination is `MPI_PROC_NULL`.
    ///
    /// # Errors
    /// An argument is invalid.
    #[inline(always)]
    pub(crate) fn send_key(&self, dest: i32, tag: i32, comm: u32) -> Result<Option<(usize, Key)>> {
        let core = &self.get(comm)?.core;
        let Some(peer) = core.peer(dest)? else {
            return Ok(None);
        };
        if tag < 0 {
            return Err(bad_tag(tag));
        }
        let key = Key {
            context: core.context,
            source: core.rank as i32,
            tag,
        };
        Ok(Some((peer, key)))
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
        if one.is_inter() != other.is_inter() {
            return Ok(Comparison::Unequal);
        }
        let ours = one.members.compare(&other.members);
        let theirs = one.peers.compare(&other.peers);
        Ok(match ours.max(theirs) {
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

#[cold]
#[inline(never)]
fn check_negative(tag: i32) -> Result<()> {
    match tag {
        ANY_TAG => Ok(()),
        _ => Err(bad_tag(tag)),
    }
}

#[cold]
fn bad_tag(tag: i32) -> Error {
    Error::new(
        Class::TAG,
        format!("tag {tag} is not allowed: tags are 0 to {TAG_UB}"),
    )
}
