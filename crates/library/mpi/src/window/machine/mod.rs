//! Windows: memory that ranks open to each other's accesses (MPI 5.0 §12). Data and machines; the
//! procedures are in `calls`.
//!
//! Operations travel as active messages over the point-to-point messages of the library, in a
//! context apart. The target applies them within its progress; long data go straight from memory to
//! memory as messages of their own. So accumulates of all origins are atomic with each other, and
//! in order. Where all members map the memory of a window, their loads and stores take the place of
//! these messages.
//!
//! - `direct`: operations in memory that all members map; `mapped`: its windows, and their locks;
//! - `epoch`: which synchronisation may follow which;
//! - `locks`: who holds the lock of this rank's window;
//! - `memory`: bounds of every access;
//! - `messages`: the bytes on the way;
//! - `operation`: operations and their checks;
//! - `peers`: the outstanding operations of each member; `origin` and `target`: the two sides;
//!   `outgoing`: the messages of the origin;
//! - `straight`: puts and gets straight to the memory of a target, by devices or by the kernel;
//!   `keys`: that memory;
//! - `progress`: who makes progress at the target; `assisted`: windows with a progress thread;
//! - `hints`: info keys;
//! - `checked`: what is noted for a check of conflicts.

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

/// Flavours of windows, with the ABI's values.
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
    /// The procedure that makes such windows, in texts.
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

/// The values of a window's predefined attributes. Their places do not move while the window
/// exists.
#[derive(Debug)]
pub struct Facts {
    /// `MPI_WIN_BASE`: an address.
    pub base: usize,
    /// `MPI_WIN_SIZE` in bytes.
    pub size: isize,
    /// `MPI_WIN_DISP_UNIT` in bytes.
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

/// The part of a window that one member gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) size: u64,
    pub(crate) disp_unit: i64,
    /// Its first byte in the memory of this rank. Zero: the memory is not shared.
    pub(crate) address: u64,
}

/// A window.
pub struct Window {
    /// The communicator of the window's own collective operations, with its members.
    pub(crate) core: Arc<Core>,
    pub(crate) comm: u32,
    /// Empty if the user has not named it.
    pub name: String,
    /// Attributes that users have cached on the window.
    pub attributes: Attributes,
    /// The handle of its error handler.
    pub errhandler: u32,
    /// The info keys.
    pub hints: WindowHints,
    /// The predefined attributes.
    pub facts: Arc<Facts>,
    pub(crate) flavor: Flavor,
    /// The parts of all members; one, if they are alike; none in a dynamic window.
    pub(crate) parts: Box<[Part]>,
    pub(crate) memory: Memory,
    /// The memory of all parts, if operations are loads and stores.
    pub(crate) direct: Option<Box<Direct>>,
    /// The memory of this rank that others access without it, and the keys of theirs.
    pub(crate) remote: Option<Box<Remote>>,
    /// Puts and gets so far, by the path that their data took.
    pub counts: WayCounts,
    pub(crate) epochs: Epochs,
    locks: Locks,
    targets: BTreeMap<u32, Target>,
    origins: BTreeMap<u32, Origin>,
    /// Posts that `MPI_Win_start` has not used, by target.
    posts: BTreeMap<u32, u64>,
    /// Epochs of origins that have ended and that `MPI_Win_wait` has not counted.
    completes: BTreeMap<u32, u64>,
    /// The first failure that no call has reported.
    failure: Option<Error>,
    /// The meter of accumulates, on a modelled machine.
    pub(crate) meter: Option<Arc<Meter>>,
    /// The window is among those that are served next.
    is_marked: bool,
    /// The window is counted among those that need the progress thread.
    has_thread: bool,
}

/// Counts this rank's operations on a window, by the path of their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// Puts and gets straight to the memory of a target that this rank does not map.
    pub straight: u64,
    /// Operations by messages.
    pub messages: u64,
}

/// The machines that a window works with.
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

    /// True if no operation on the window is outstanding, so only a message or a call gives it
    /// work.
    fn is_resting(&self) -> bool {
        let mut targets = self.targets.values();
        let mut origins = self.origins.values();
        targets.all(Target::is_resting) && origins.all(Origin::is_resting)
    }

    /// Names the window; a name that is too long is cut off.
    pub fn set_name(&mut self, name: &str) {
        self.name = cut(name).to_string();
    }

    /// Loads and stores of this rank reach the memory of other members.
    pub(crate) fn is_shared(&self) -> bool {
        self.flavor == Flavor::Shared
    }

    /// The library mapped the memory of the window, which is no other memory of the process.
    pub fn is_mapped(&self) -> bool {
        self.is_shared() || self.direct.is_some()
    }

    /// The part of a member. `None` in a dynamic window.
    pub(crate) fn part(&self, member: u32) -> Option<&Part> {
        self.parts.get(member as usize).or(self.parts.first())
    }

    /// The member with this rank.
    ///
    /// # Errors
    /// There is none.
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

    /// The first failure that no call has reported.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn report(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// The next message that a wait for this member awaits.
    pub(crate) fn awaited(&self, member: u32) -> Key {
        self.stream_key(member, messages::ANSWERS)
    }

    fn world(&self, member: u32) -> Result<usize> {
        let world = self.core.members.world(member as usize);
        world.ok_or_else(|| self.core.no_such_rank(member as i32))
    }

    /// The member that sent a message.
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
            // A message that arrives in this context makes tasks due.
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

    /// Exposes the window to an origin.
    pub(crate) fn tell_post(&mut self, ports: &mut Ports, origin: u32) {
        self.answer(ports, origin, &Answer::Post);
    }

    /// All these members have exposed their windows to this rank: takes one post of each.
    pub(crate) fn take_posts(&mut self, members: &[u32]) -> bool {
        take_all(&mut self.posts, members)
    }

    /// All these origins have ended an epoch at this rank: takes one end of each.
    pub(crate) fn take_completes(&mut self, members: &[u32]) -> bool {
        take_all(&mut self.completes, members)
    }

    /// The first of these members that has exposed no window to this rank.
    pub(crate) fn missing_post(&self, members: &[u32]) -> Option<u32> {
        missing(&self.posts, members)
    }

    /// The first of these origins that has ended no epoch at this rank.
    pub(crate) fn missing_complete(&self, members: &[u32]) -> Option<u32> {
        missing(&self.completes, members)
    }

    /// Ends the access epoch of `MPI_Win_start` at these targets. In a dynamic window, whose
    /// bounds only the target knows, this rank asks for the outcome.
    pub(crate) fn end_access(&mut self, ports: &mut Ports, targets: &[u32]) -> Result<()> {
        for &target in targets {
            self.tell_complete(ports, target)?;
            if self.flavor == Flavor::Dynamic {
                self.ask_for_end(ports, target)?;
            }
        }
        Ok(())
    }

    /// Asks targets for the end of all operations. `None`: all targets.
    pub(crate) fn ask_ends(&mut self, ports: &mut Ports, target: Option<u32>) -> Result<()> {
        self.asked(target)
            .into_iter()
            .try_for_each(|target| self.ask_for_end(ports, target))
    }

    /// Asks targets for the lock of the epoch and waits for the answer later.
    pub(crate) fn ask_locks(&mut self, ports: &mut Ports, targets: &[u32]) -> Result<()> {
        targets
            .iter()
            .try_for_each(|&target| self.ask_for_lock(ports, target, true))
    }

    /// Gives locks up. `None`: all of them.
    pub(crate) fn ask_unlocks(&mut self, ports: &mut Ports, target: Option<u32>) -> Result<()> {
        self.asked(target)
            .into_iter()
            .try_for_each(|target| self.ask_for_unlock(ports, target))
    }

    /// Asks all targets that have not acknowledged everything, so that no answer is on its way
    /// when the window is freed.
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

    /// The first target that has not answered all questions. `None` as the argument: of all.
    pub(crate) fn missing_end(&self, target: Option<u32>) -> Option<u32> {
        let mut asked = self.asked(target).into_iter();
        asked.find(|&target| !self.is_synced(target))
    }

    /// The first target whose operations still use memory of this rank. `None` as the argument: of
    /// all.
    pub(crate) fn missing_local(&self, target: Option<u32>) -> Option<u32> {
        let mut asked = self.asked(target).into_iter();
        asked.find(|target| !self.is_local(*target))
    }

    /// Nothing moves from or to this rank's memory.
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
