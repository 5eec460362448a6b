//! The members of a window, as targets of this rank's operations and as their origins.

use std::collections::VecDeque;

use datatype::{Buffer, Type};

use crate::Class;
use crate::request::RequestId;

/// A target of this rank's operations.
#[derive(Default)]
pub(super) struct Target {
    /// Messages for which there is no credit yet.
    pub(super) queue: VecDeque<Outgoing>,
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// Questions for the end of operations, and their answers.
    pub(super) asked: u64,
    pub(super) synced: u64,
    /// Messages have left since the last question.
    pub(super) is_dirty: bool,
    /// The target has been asked for a lock, which it has or will have granted.
    pub(super) is_locked: bool,
    /// The target has granted that lock.
    pub(super) is_granted: bool,
    /// The type of the last operation, which the target remembers.
    pub(super) last_type: Option<Type>,
}

/// A message in the stream of operations.
pub(super) struct Outgoing {
    pub(super) bytes: Buffer,
    /// Long data that follow, and the number of the operation at its origin.
    pub(super) following: Option<(Buffer, u64)>,
}

/// An operation that is not complete at its origin: its memory is in use.
pub(super) struct Local {
    pub(super) number: u64,
    pub(super) target: u32,
    /// Data have not left yet.
    pub(super) is_queued: bool,
    /// Sends and receives, each with the bytes that it must have.
    pub(super) open: Vec<(RequestId, u64)>,
    /// The program's request.
    pub(super) user: Option<RequestId>,
    pub(super) class: Class,
}

/// An origin of operations on this rank.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) queue: VecDeque<Incoming>,
    pub(super) processed: u64,
    pub(super) acknowledged: u64,
    /// The type of the last operation.
    pub(super) last_type: Option<Type>,
    /// Receives of long puts.
    pub(super) arriving: Vec<RequestId>,
    /// Sends of returned data from the window's memory.
    pub(super) returning: Vec<RequestId>,
}

/// A message in the stream of operations.
pub(super) enum Incoming {
    Whole(Box<[u8]>),
    /// A long one, which is being received.
    Coming(RequestId, Buffer),
}
