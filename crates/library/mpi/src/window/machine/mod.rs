//! Windows: memory that ranks open to each other's accesses (MPI 5.0 §12). Data and state machines;
//! the procedures are in `calls`.
//!
//! Operations travel as active messages over the point-to-point messages of the library, in a
//! context of their own. The target applies them within its progress; long data are separate
//! messages that go directly from memory to memory. So accumulates of all origins are atomic with
//! each other, and in order. If all members map the memory of a window, loads and stores of the
//! origin replace these messages.
//!
//! - `direct`: operations in memory that all members map; `mapped`: windows with such memory, and
//!   their locks;
//! - `epoch`: which synchronisation may follow which;
//! - `locks`: the holders of the lock of this rank's window;
//! - `memory`: bounds of every access;
//! - `messages`: the encoding of active messages;
//! - `operation`: operations and their checks;
//! - `peers`: the outstanding operations of each member; `origin` and `target`: the two sides;
//!   `outgoing`: the messages of the origin;
//! - `straight`: puts and gets without the target's process, by devices or by the kernel; `keys`:
//!   the remote keys that they need;
//! - `progress`: who makes progress at the target; `assisted`: windows with a progress thread;
//! - `hints`: info keys;
//! - `checked`: the notes for a check of conflicts.

mod assisted;
mod checked;
mod direct;
mod epoch;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod hints;
mod keys;
mod locks;
mod mapped;
mod memory;
mod messages;
mod operation;
mod origin;
mod outgoing;
mod peers;
mod progress;
mod straight;
pub(crate) mod table;
mod target;

use std::collections::BTreeMap;
use std::sync::Arc;

use channel::Router;
use datatype::Pool;
use datatype::local_work::Meter;

pub(crate) use direct::Direct;
pub use direct::near_place::NearPlace;
pub(crate) use epoch::{Epochs, Held};
pub use hints::WindowHints;
pub(crate) use keys::{KEYS, Remote};
pub(crate) use locks::{LockKind, Locks};
pub(crate) use memory::Memory;
use messages::Answer;
pub use operation::{Access, Place};
use peers::{Origin, Target};
pub(crate) use progress::Assistance;
pub use progress::{AccessKind, Progressor, Progressors};

use crate::attributes::Attributes;
use crate::comm::{AGREEMENT, COLLECTIVE, Core, WINDOW, cut};
use crate::handle::{ObjectKind, Slab};
use crate::matching::Key;
use crate::p2p::Messages;
use crate::{ANY_SOURCE, Class, Error, Result};

/// `MPI_WIN_NULL`, with the ABI's value.
pub const NULL: u32 = 0x110;

/// The flavour of a window, with the ABI's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Flavor {
    /// `MPI_WIN_FLAVOR_CREATE`.
    Create = 311,
    /// `MPI_WIN_FLAVOR_ALLOCATE`.
    Allocate = 312,
    /// `MPI_WIN_FLAVOR_DYNAMIC`.
    Dynamic = 313,
    /// `MPI_WIN_FLAVOR_SHARED`.
    Shared = 314,
}

impl Flavor {
    /// The procedure that makes windows of this flavour, for texts.
    pub fn name(self) -> &'static str {
        match self {
            Flavor::Create => "MPI_Win_create",
            Flavor::Allocate => "MPI_Win_allocate",
            Flavor::Dynamic => "MPI_Win_create_dynamic",
            Flavor::Shared => "MPI_Win_allocate_shared",
        }
    }
}

/// `MPI_WIN_UNIFIED`: a target's accumulates and puts are stores of its own processor, or of a
/// device that is coherent with it.
const UNIFIED: i32 = 321;

/// The values of a window's predefined attributes. Their addresses do not change while the window
/// exists.
#[derive(Debug)]
pub struct Facts {
    /// `MPI_WIN_BASE`: the address of the rank's part.
    pub base: usize,
    /// `MPI_WIN_SIZE`: the size of the rank's part in bytes.
    pub size: isize,
    /// `MPI_WIN_DISP_UNIT`: the unit of displacements in bytes.
    pub disp_unit: i32,
    /// `MPI_WIN_CREATE_FLAVOR`.
    pub flavor: i32,
    /// `MPI_WIN_MODEL`.
    pub model: i32,
}

impl Facts {
    pub(crate) fn new(base: usize, size: usize, disp_unit: i64, flavor: Flavor) -> Facts {
        Facts {
            base,
            size: size as isize,
            disp_unit: i32::try_from(disp_unit).unwrap_or(i32::MAX),
            flavor: flavor as i32,
            model: UNIFIED,
        }
    }
}

/// The part of a window that one member contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) size: u64,
    pub(crate) disp_unit: i64,
    /// The address of the part's first byte in the memory of this rank. Zero: this rank does not
    /// map it.
    pub(crate) address: u64,
}

/// A window at one of its members.
pub struct Window {
    /// The window's own communicator: its members, and (`comm`) its handle for collective
    /// operations.
    pub(crate) core: Arc<Core>,
    pub(crate) comm: u32,
    /// The name of the window; empty if the user has not named it.
    pub name: String,
    /// Attributes that users have cached on the window.
    pub attributes: Attributes,
    /// The handle of the window's error handler.
    pub errhandler: u32,
    /// The hints that the user gave as info keys.
    pub hints: WindowHints,
    /// The values of the window's predefined attributes.
    pub facts: Arc<Facts>,
    pub(crate) flavor: Flavor,
    /// The parts of all members; only one if all are equal; empty in a dynamic window.
    pub(crate) parts: Box<[Part]>,
    pub(crate) memory: Memory,
    /// The memory of all parts, if operations are loads and stores.
    pub(crate) direct: Option<Box<Direct>>,
    /// This rank's memory that origins access without its process, and the remote keys of the
    /// others' memory.
    pub(crate) remote: Option<Box<Remote>>,
    /// The numbers of this rank's operations, by the path of their data.
    pub counts: WayCounts,
    pub(crate) epochs: Epochs,
    locks: Locks,
    targets: BTreeMap<u32, Target>,
    origins: BTreeMap<u32, Origin>,
    /// The number of posts by each target that `MPI_Win_start` has not used.
    posts: BTreeMap<u32, u64>,
    /// The number of ended epochs of each origin that `MPI_Win_wait` has not counted.
    completes: BTreeMap<u32, u64>,
    /// The first failure of an operation that no call has reported.
    failure: Option<Error>,
    /// The meter for the processor work of accumulates, on a modelled machine.
    pub(crate) meter: Option<Arc<Meter>>,
    /// True if the window is in the list of windows that are served next.
    is_marked: bool,
    /// True if the window is counted as one that needs the progress thread.
    has_thread: bool,
}

/// Counts this rank's operations on a window, by the path of their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// The number of puts and gets without the target's process, to memory that this rank does not
    /// map.
    pub straight: u64,
    /// The number of operations that messages have carried out.
    pub messages: u64,
}

/// The parts of the rank that a window uses: messages, transports and temporary memory.
pub(crate) struct Ports<'a> {
    pub(crate) messages: &'a mut Messages,
    pub(crate) router: &'a mut Router,
    pub(crate) scratch: &'a mut Pool,
}

impl Window {
    /// A window without hints, name and attributes.
    pub(crate) fn new(
        (comm, core): (u32, Arc<Core>),
        (facts, flavor): (Facts, Flavor),
        parts: Vec<Part>,
        memory: Memory,
    ) -> Window {
        let alike = parts.windows(2).all(|pair| pair[0] == pair[1]);
        let shown = if alike {
            parts.len().min(1)
        } else {
            parts.len()
        };
        Window {
            core,
            comm,
            name: String::new(),
            attributes: Attributes::default(),
            errhandler: crate::errhandler::FATAL,
            hints: WindowHints::default(),
            facts: Arc::new(facts),
            flavor,
            parts: parts[..shown].into(),
            memory,
            direct: None,
            remote: None,
            counts: WayCounts::default(),
            epochs: Epochs::default(),
            locks: Locks::default(),
            targets: BTreeMap::new(),
            origins: BTreeMap::new(),
            posts: BTreeMap::new(),
            completes: BTreeMap::new(),
            failure: None,
            meter: None,
            is_marked: false,
            has_thread: false,
        }
    }

    /// True if no operation on the window is outstanding, so that it has nothing to do until a
    /// message or a call.
    fn is_resting(&self) -> bool {
        let mut targets = self.targets.values();
        let mut origins = self.origins.values();
        targets.all(Target::is_resting) && origins.all(Origin::is_resting)
    }

    /// Sets the name of the window; a name that is too long is truncated.
    pub fn set_name(&mut self, name: &str) {
        self.name = cut(name).to_string();
    }

    /// True if the window is one of `MPI_Win_allocate_shared`, whose memory this rank loads and
    /// stores.
    pub(crate) fn is_shared(&self) -> bool {
        self.flavor == Flavor::Shared
    }

    /// True if the library has mapped the memory of the window, rather than the caller.
    pub fn is_mapped(&self) -> bool {
        self.is_shared() || self.direct.is_some()
    }

    /// The part of a member. `None` in a dynamic window.
    pub(crate) fn part(&self, member: u32) -> Option<&Part> {
        self.parts.get(member as usize).or(self.parts.first())
    }

    /// The member with this rank in the window.
    ///
    /// # Errors
    /// No member has this rank.
    pub(crate) fn member(&self, rank: i32) -> Result<u32> {
        match u32::try_from(rank) {
            Ok(member) if (member as usize) < self.core.size() => Ok(member),
            _ => Err(Error::new(
                Class::RANK,
                format!(
                    "rank {rank} does not exist: the window has {} ranks",
                    self.core.size()
                ),
            )),
        }
    }

    /// Takes the first failure that no call has reported.
    ///
    /// # Errors
    /// The error is that failure.
    pub(crate) fn report(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// The key of the message for which a wait for this member waits.
    pub(crate) fn awaited(&self, member: u32) -> Key {
        self.stream_key(member, messages::ANSWERS)
    }

    fn world(&self, member: u32) -> Result<usize> {
        let world = self.core.members.world(member as usize);
        world.ok_or_else(|| self.core.no_such_rank(member as i32))
    }

    /// The number of the member that sent a message of the window.
    fn sender(&self, peer: usize, source: i32) -> Result<u32> {
        match u32::try_from(source) {
            Ok(member) if self.core.members.world(member as usize) == Some(peer) => Ok(member),
            _ => Err(nonsense(peer as u32, "a message of another rank's window")),
        }
    }

    fn stream_key(&self, source: u32, tag: i32) -> Key {
        self.stream_key_of(source as i32, tag)
    }

    fn stream_key_of(&self, source: i32, tag: i32) -> Key {
        debug_assert!(source >= ANY_SOURCE);
        Key {
            // Arrival of a message in this context wakes the task that serves windows.
            context: self.core.context | WINDOW | AGREEMENT,
            source,
            tag,
        }
    }

    fn data_key(&self, source: u32, tag: i32) -> Key {
        Key {
            context: self.core.context | WINDOW | COLLECTIVE,
            source: source as i32,
            tag,
        }
    }

    /// Notifies an origin that the window is exposed to it (`MPI_Win_post`).
    pub(crate) fn notify_post(&mut self, ports: &mut Ports, origin: u32) {
        self.answer(ports, origin, &Answer::Post);
    }

    /// True if all these members have exposed their windows to this rank; then one post of each is
    /// used up.
    pub(crate) fn take_posts(&mut self, members: &[u32]) -> bool {
        take_all(&mut self.posts, members)
    }

    /// True if all these origins have ended an epoch at this rank; then one end of each is used up.
    pub(crate) fn take_completes(&mut self, members: &[u32]) -> bool {
        take_all(&mut self.completes, members)
    }

    /// The first of these members that has not exposed its window to this rank.
    pub(crate) fn missing_post(&self, members: &[u32]) -> Option<u32> {
        missing(&self.posts, members)
    }

    /// The first of these origins that has not ended an epoch at this rank.
    pub(crate) fn missing_complete(&self, members: &[u32]) -> Option<u32> {
        missing(&self.completes, members)
    }

    /// Ends the access epoch of `MPI_Win_start` at these targets. In a dynamic window, whose bounds
    /// only the target knows, this rank also requests the outcome.
    pub(crate) fn end_access(&mut self, ports: &mut Ports, targets: &[u32]) -> Result<()> {
        for &target in targets {
            self.notify_complete(ports, target)?;
            if self.flavor == Flavor::Dynamic {
                self.ask_for_end(ports, target)?;
            }
        }
        Ok(())
    }

    /// Requests confirmation from a target, or from all (`None`), that all operations have ended.
    pub(crate) fn ask_ends(&mut self, ports: &mut Ports, target: Option<u32>) -> Result<()> {
        self.asked(target)
            .into_iter()
            .try_for_each(|target| self.ask_for_end(ports, target))
    }

    /// Requests the locks of the epoch from these targets; the caller waits for the grants later.
    pub(crate) fn ask_locks(&mut self, ports: &mut Ports, targets: &[u32]) -> Result<()> {
        targets
            .iter()
            .try_for_each(|&target| self.ask_for_lock(ports, target, true))
    }

    /// Releases the lock of a target, or of all (`None`).
    pub(crate) fn ask_unlocks(&mut self, ports: &mut Ports, target: Option<u32>) -> Result<()> {
        self.asked(target)
            .into_iter()
            .try_for_each(|target| self.ask_for_unlock(ports, target))
    }

    /// Requests confirmation from all targets that have not acknowledged every message, so that no
    /// answer is in transit when the window is freed.
    pub(crate) fn ask_last(&mut self, ports: &mut Ports) -> Result<()> {
        for target in self.asked(None) {
            if !self.is_acknowledged(target) {
                self.must_ask(target);
                self.ask_for_end(ports, target)?;
            }
        }
        Ok(())
    }

    /// The first of these targets that has not granted its lock.
    pub(crate) fn missing_grant(&self, targets: &[u32]) -> Option<u32> {
        let waits = |target: &&u32| {
            let known = self.targets.get(target);
            known.is_some_and(|known| known.is_locked && !known.is_granted)
        };
        targets.iter().find(waits).copied()
    }

    /// The first target that has not confirmed all requests for confirmation: `target`, or any
    /// (`None`).
    pub(crate) fn missing_end(&self, target: Option<u32>) -> Option<u32> {
        let mut asked = self.asked(target).into_iter();
        asked.find(|&target| !self.is_synced(target))
    }

    /// The first target whose operations still use memory of this rank: `target`, or any (`None`).
    pub(crate) fn missing_local(&self, target: Option<u32>) -> Option<u32> {
        let mut asked = self.asked(target).into_iter();
        asked.find(|target| !self.is_local(*target))
    }

    /// True if no data are in transit from or to this rank's memory.
    pub(crate) fn is_quiet(&mut self, ports: &mut Ports) -> bool {
        self.missing_local(None).is_none() && self.is_idle(ports)
    }

    fn asked(&self, target: Option<u32>) -> Vec<u32> {
        match target {
            Some(target) => vec![target],
            None => self.targets.keys().copied().collect(),
        }
    }
}

fn missing(counts: &BTreeMap<u32, u64>, members: &[u32]) -> Option<u32> {
    let has_none = |member: &&u32| counts.get(member).is_none_or(|count| *count == 0);
    members.iter().find(has_none).copied()
}

fn take_all(counts: &mut BTreeMap<u32, u64>, members: &[u32]) -> bool {
    if missing(counts, members).is_some() {
        return false;
    }
    for member in members {
        if let Some(count) = counts.get_mut(member) {
            *count -= 1;
        }
    }
    true
}

#[cold]
fn nonsense(from: u32, what: &str) -> Error {
    let detail = format!(
        "rank {from} of a window broke the protocol: it sent {what}. Do all ranks use the same \
         version of the library?"
    );
    Error::new(Class::INTERN, detail)
}
