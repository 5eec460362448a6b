//! The members of a window, as targets of this rank's operations and as their origins.

use std::collections::VecDeque;

use datatype::{Buffer, Type};

use super::keys::Shortest;
use crate::request::RequestId;
use crate::{Class, Error};

/// The state of one target of this rank's operations.
#[derive(Default)]
pub(super) struct Target {
    /// The messages that wait for a credit of the target.
    pub(super) queue: VecDeque<Outgoing>,
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// The number of confirmations that operations have ended that this rank has requested, by
    /// messages `Flush` and `Unlock`. `synced`: the number of those that the target has sent.
    pub(super) asked: u64,
    pub(super) synced: u64,
    /// True if operations have left since the last request for confirmation, and no returned data
    /// confirm their end.
    pub(super) is_dirty: bool,
    /// True if a long put has left since the last request for confirmation.
    pub(super) has_long: bool,
    /// True if puts or accumulates have left by messages since the last request for confirmation.
    pub(super) has_messages: bool,
    /// True if this rank has requested a lock of the target, granted or not.
    pub(super) is_locked: bool,
    /// True if the target has granted the requested lock.
    pub(super) is_granted: bool,
    /// Operations that are not complete at this origin, in order.
    pub(super) locals: VecDeque<Local>,
    /// The number of the first operation whose entry is in `locals`.
    pub(super) first_local: u64,
    /// The type of the last operation, to which the next may refer.
    pub(super) last_type: Option<Type>,
    /// The number of straight operations, without the target's process, that are not complete.
    pub(super) straight: usize,
    /// The lengths from which operations are straight; `None` until they are needed.
    pub(super) shortest: Option<Shortest>,
}

impl Target {
    /// True if no operation on this target is outstanding.
    pub(super) fn is_resting(&self) -> bool {
        self.queue.is_empty() && self.locals.is_empty()
    }
}

/// A message to a target in the stream of operations, not sent yet.
pub(super) struct Outgoing {
    pub(super) bytes: Carried,
    /// True if the message ends an epoch. It leaves once no straight operation on the target is
    /// in progress.
    pub(super) is_end: bool,
    /// The data that follow the message or that the target returns, and the number of the operation
    /// to which they belong at this rank.
    pub(super) data: Option<(Data, u64)>,
}

/// The bytes of a message. Most messages are short, and many may be queued.
pub(super) enum Carried {
    Short(Box<[u8]>),
    Long(Buffer),
}

/// Memory that belongs to a message: the program's, except for the description of a type.
pub(super) enum Data {
    /// Data that are sent behind the message.
    Following(Buffer),
    /// The description of a type, which is sent behind the message.
    Description(Buffer),
    /// Memory for the data that the operation returns.
    Returned(Buffer),
}

impl Data {
    /// True if the memory belongs to the program, which waits until it is no longer in use.
    pub(super) fn is_programs(&self) -> bool {
        !matches!(self, Data::Description(_))
    }
}

/// An operation that is not complete at its origin: its memory is in use.
pub(super) struct Local {
    /// The number of messages with data of the operation that have not left yet.
    pub(super) queued: usize,
    /// The sends and receives of the operation, each with the least number of bytes that it must
    /// receive.
    pub(super) open: Vec<(RequestId, u64)>,
    /// The request that the program waits for, if it has one.
    pub(super) user: Option<RequestId>,
    pub(super) class: Class,
    /// True if the operation is straight, without the target's process.
    pub(super) is_straight: bool,
    /// True if the target has returned data, so it has granted the lock.
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

/// The state of one origin of operations on this rank.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) queue: VecDeque<Incoming>,
    pub(super) processed: u64,
    pub(super) acknowledged: u64,
    /// The datatype of the origin's last operation.
    pub(super) last_type: LastType,
    /// The requests of receives for long puts of the origin.
    pub(super) arriving: Vec<RequestId>,
    /// The sends of data that operations return from the window's memory.
    pub(super) returning: Vec<RequestId>,
}

impl Origin {
    /// True if the description of the last operation's type is being received.
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

/// The type of an origin's last operation. Later operations may refer to it instead of describing a
/// type.
#[derive(Default)]
pub(super) enum LastType {
    /// The origin has described no datatype yet.
    #[default]
    None,
    Known(Type),
    /// The description of the type is being received into this memory.
    Coming(RequestId, Buffer),
    /// This rank cannot make the described datatype, for this reason.
    Refused(Error),
    /// The received bytes are no valid description of a type.
    Unreadable,
    /// The description is incomplete because the origin is lost.
    Lost,
}

/// A message of an origin in the stream of operations.
pub(super) enum Incoming {
    Whole(Box<[u8]>),
    /// A long message of the origin that is being received.
    Coming(RequestId, Buffer),
}
