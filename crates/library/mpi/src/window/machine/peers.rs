//! The members of a window, as targets of this rank's operations and as their origins.

use std::collections::VecDeque;

use datatype::{Buffer, Type};

use super::keys::Shortest;
use crate::request::RequestId;
use crate::{Class, Error};

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
    /// Operations have left since the last question, and no returned data show their end.
    pub(super) is_dirty: bool,
    /// A long put has left since the last question.
    pub(super) has_long: bool,
    /// Puts or accumulates have left by messages since the last question.
    pub(super) has_messages: bool,
    /// The target has been asked for a lock, which it has or will have granted.
    pub(super) is_locked: bool,
    /// The target has granted that lock.
    pub(super) is_granted: bool,
    /// Operations that are not complete here, in order.
    pub(super) locals: VecDeque<Local>,
    /// The number of the first of them.
    pub(super) first_local: u64,
    /// The type of the last operation, which the target remembers.
    pub(super) last_type: Option<Type>,
    /// Operations that move straight to or from its memory and are not complete.
    pub(super) straight: usize,
    /// The lengths from which operations do, once they are known.
    pub(super) shortest: Option<Shortest>,
}

impl Target {
    /// True if no operation on this target is outstanding.
    pub(super) fn is_resting(&self) -> bool {
        self.queue.is_empty() && self.locals.is_empty()
    }
}

/// A message in the stream of operations.
pub(super) struct Outgoing {
    pub(super) bytes: Carried,
    /// It leaves once no operation moves straight to the target's memory: the epoch ends.
    pub(super) is_end: bool,
    /// The data that follow or return, and the number of the operation at its origin.
    pub(super) data: Option<(Data, u64)>,
}

/// The bytes of a message. Those of most are few, and many may wait.
pub(super) enum Carried {
    Short(Box<[u8]>),
    Long(Buffer),
}

/// Memory that a message is about: that of the program but for a description.
pub(super) enum Data {
    /// It is sent behind the message.
    Following(Buffer),
    /// The description of a type, which is sent behind the message.
    Description(Buffer),
    /// It receives what the operation returns.
    Returned(Buffer),
}

impl Data {
    /// It belongs to the program, which waits for the end of its use.
    pub(super) fn is_programs(&self) -> bool {
        !matches!(self, Data::Description(_))
    }
}

/// An operation that is not complete at its origin: its memory is in use.
pub(super) struct Local {
    /// Messages about its memory that have not left yet.
    pub(super) queued: usize,
    /// Sends and receives, each with the bytes that it must have.
    pub(super) open: Vec<(RequestId, u64)>,
    /// The program's request.
    pub(super) user: Option<RequestId>,
    pub(super) class: Class,
    /// It moves straight to or from the target's memory.
    pub(super) is_straight: bool,
    /// The target has returned data, so it has granted the lock.
    pub(super) is_answered: bool,
}

impl Local {
    pub(super) fn new(
        open: Vec<(RequestId, u64)>,
        user: Option<RequestId>,
        is_straight: bool,
    ) -> Local {
        Local {
            queued: 0,
            open,
            user,
            class: Class::SUCCESS,
            is_straight,
            is_answered: false,
        }
    }
}

/// An origin of operations on this rank.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) queue: VecDeque<Incoming>,
    pub(super) processed: u64,
    pub(super) acknowledged: u64,
    /// The type of the last operation.
    pub(super) last_type: LastType,
    /// Receives of long puts.
    pub(super) arriving: Vec<RequestId>,
    /// Sends of returned data from the window's memory.
    pub(super) returning: Vec<RequestId>,
}

impl Origin {
    /// A description of it is being received.
    pub(super) fn is_described(&self) -> bool {
        matches!(self.last_type, LastType::Coming(..))
    }

    /// True if no operation of this origin is outstanding.
    pub(super) fn is_resting(&self) -> bool {
        self.queue.is_empty()
            && self.arriving.is_empty()
            && self.returning.is_empty()
            && !self.is_described()
    }
}

/// The type of the last operation of an origin, which further ones may take.
#[derive(Default)]
pub(super) enum LastType {
    /// There was no operation.
    #[default]
    None,
    Known(Type),
    /// Its description is being received, into this memory.
    Coming(RequestId, Buffer),
    /// It cannot be known here.
    Refused(Error),
    /// The bytes were no description.
    Unreadable,
    /// Its description has not come whole: the origin is lost.
    Lost,
}

/// A message in the stream of operations.
pub(super) enum Incoming {
    Whole(Box<[u8]>),
    /// A long one, which is being received.
    Coming(RequestId, Buffer),
}
