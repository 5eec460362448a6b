//! Communicators: a group of ranks and a message space (MPI 5.0 §7).

mod context;
mod core;
pub(crate) mod table;

use std::sync::Arc;

use crate::algorithms::contest::Contests;
use crate::attributes::Attributes;
use crate::coll::collective_buffers::CommBuffer;
use crate::coll::lanes::Lane;
use crate::errhandler;
use crate::hints::Hints;
use crate::topology::Topology;

pub(crate) use self::context::{AGREEMENT, COLLECTIVE, PERSISTENT, STAGES, WINDOW, bare, stage};
pub use self::core::Core;
pub use crate::group::Members;

/// `MPI_COMM_NULL`, with the ABI's value.
pub const NULL: u32 = 0x100;
/// `MPI_COMM_WORLD`, with the ABI's value.
pub const WORLD: u32 = 0x101;
/// `MPI_COMM_SELF`, with the ABI's value.
pub const SELF: u32 = 0x102;

/// The longest name of an object in bytes, without the closing NUL of C.
pub const MAX_NAME: usize = 127;

/// The members of an intercommunicator that share a collective buffer. `None`: all of them. `Some`:
/// the root with this number in the joint group, and the members of the other group.
pub(crate) type Around = Option<usize>;

/// The memory that some members of an intercommunicator share, and the results of their contests.
#[derive(Default)]
pub(crate) struct SharedBetween {
    /// The collective buffer of the members that share memory.
    pub(crate) buffer: CommBuffer,
    /// The lane in which the members copy straight between their buffers.
    pub(crate) lane: Option<Lane>,
    /// The contests of the members' data paths. `None`: the members do not measure.
    pub(crate) contests: Option<Box<Contests>>,
}

/// A communicator.
pub struct Comm {
    /// The part of the communicator that messages and collective operations use.
    pub core: Arc<Core>,
    /// The name of the communicator; empty if the user has not named it.
    pub name: String,
    /// Number of collective operations begun. It distinguishes operations that are in flight
    /// together.
    pub(crate) collectives: u32,
    /// Number of persistent collective operations initialized.
    pub(crate) persistent: u32,
    /// The collective buffer for operations on short vectors.
    pub(crate) buffer: CommBuffer,
    /// The shared memory of an intercommunicator: that of all members, and that of each root with
    /// the members of the other group.
    pub(crate) between: Vec<(Around, SharedBetween)>,
    /// The lane (a collective buffer) for long and for nonblocking operations.
    pub(crate) lane: Option<Lane>,
    /// The contests of the communicator. `None`: its members do not choose by measurement.
    pub(crate) contests: Option<Box<Contests>>,
    /// Attributes that users have cached on the communicator.
    pub attributes: Attributes,
    /// The topology of the communicator, if it has one.
    pub topology: Option<Arc<Topology>>,
    /// The handle of the communicator's error handler.
    pub errhandler: u32,
    /// The hints that the user has set on the communicator.
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

/// The beginning of a name that is not longer than [`MAX_NAME`].
pub(crate) fn cut(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}
