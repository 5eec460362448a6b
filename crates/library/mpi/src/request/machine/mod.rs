//! Requests: started operations (MPI 5.0 §3.7).

pub mod generalized;
pub(crate) mod table;
pub(crate) mod task;

use std::collections::BTreeMap;
use std::sync::Arc;

use datatype::Buffer;

use crate::coll::lanes::Round;
use crate::handle::{ObjectKind, Slab};
use crate::matching::Key;
use crate::packet::{Envelope, RunClass};
use crate::request::generalized::Functions;
use crate::{Class, Error, Result, Status};

/// The handle of a request, as the program gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct RequestId(pub u32);

/// Send mode, which decides when a send completes (MPI 5.0 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The send completes when its buffer can be reused.
    Standard,
    /// A standard send whose call waits for its completion.
    Blocking,
    /// The send completes at once: a standard send of a copy.
    Buffered,
    /// The send completes after the match.
    Synchronous,
    /// A standard send whose receive is posted already.
    Ready,
}

/// A call and the requests that it waits for, for reports of ranks that hang.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// The procedure that waits, such as `MPI_Recv`.
    pub operation: &'static str,
    /// The requests that the procedure waits for.
    pub requests: &'a [RequestId],
}

impl Waiting<'static> {
    /// The wait of a call for something other than requests.
    pub fn in_call(operation: &'static str) -> Waiting<'static> {
        Waiting {
            operation,
            requests: &[],
        }
    }
}

/// A request: a started operation, and its status once it is complete.
pub struct Request {
    /// The operation to which the request belongs.
    pub operation: Operation,
    /// The status of the operation; `None` until it is complete.
    pub status: Option<Status>,
    /// True if the user has freed the handle: completion then removes the request.
    detached: bool,
}

impl Request {
    /// True if the operation is not complete, even if its next wait is to report a lost peer.
    pub fn is_open(&self) -> bool {
        self.status.is_none_or(|status| status.error.0 < 0)
    }
}

/// The operation to which a request belongs.
pub enum Operation {
    /// A send. It is boxed, because most sends are complete at once and need no request.
    Send(Box<Send>),
    /// A receive.
    Receive(Receive),
    /// A collective operation, or another with several steps, whose task completes the request.
    Collective {
        /// The context of the communicator whose error handler receives a failure.
        context: Option<u64>,
    },
    /// An access to exposed memory of a peer, in which the peer's process has no part.
    Access {
        /// World rank of the peer whose memory is accessed.
        peer: usize,
    },
    /// A send or receive that can be started again.
    Persistent(Box<Persistent>),
    /// A generalised request (MPI 5.0 §13.2), which the user completes. Its functions are stored
    /// apart: with one more variant that owns memory, each drop of a request would need a jump
    /// table.
    Generalized,
}

impl Operation {
    /// An operation that belongs to no communicator.
    pub const NOBODYS: Operation = Operation::Collective { context: None };
}

/// A send of a message that is in progress.
pub struct Send {
    /// The send buffer.
    pub buffer: Buffer,
    /// World rank of the receiver.
    pub peer: usize,
    pub(crate) envelope: Envelope,
    /// True once the send can no longer be cancelled: the receiver has asked for the message, or
    /// its packet is about to leave.
    pub streaming: bool,
    /// Number of bytes that the message occupies in a buffer attached for buffered sends.
    pub buffered: usize,
    /// True while a cancellation of the send is in progress.
    pub cancelling: bool,
    /// The user's request, if this one is the library's own: it completes with this one, if it is
    /// not complete before.
    pub users: Option<RequestId>,
    /// The runs of the send buffer, for the first piece of a message in several packets.
    pub(crate) runs: RunClass,
}

/// A receive in progress.
pub struct Receive {
    /// The receive buffer.
    pub buffer: Buffer,
    /// The envelope that the receive matches, and that of its message after the match.
    pub key: Key,
    /// Length of the message in bytes, known once the receive is matched.
    pub announced: usize,
    /// The number of bytes of the message that have arrived.
    pub arrived: usize,
}

/// A persistent operation (MPI 5.0 §3.9).
#[derive(Clone)]
pub struct Persistent {
    /// The arguments with which each instance of the operation is started.
    pub template: Template,
    /// The current instance, or `None` while the request is inactive.
    pub active: Option<RequestId>,
}

/// The arguments of a persistent operation.
#[derive(Clone)]
pub enum Template {
    /// The arguments of a send.
    Send {
        /// The mode of the send.
        mode: Mode,
        /// The send buffer.
        buffer: Buffer,
        /// Rank of the receiver in the communicator.
        dest: i32,
        /// Tag of the message.
        tag: i32,
        /// Handle of the communicator.
        comm: u32,
    },
    /// The arguments of a receive.
    Receive {
        /// The receive buffer.
        buffer: Buffer,
        /// Rank of the sender in the communicator, or `MPI_ANY_SOURCE`.
        source: i32,
        /// Tag of the message, or `MPI_ANY_TAG`.
        tag: i32,
        /// Handle of the communicator.
        comm: u32,
    },
    /// A collective operation.
    Collective(Arc<dyn PersistentCollective>),
}

/// A persistent collective operation.
pub trait PersistentCollective: std::marker::Send + Sync {
    /// The lane operation that one instance consists of. `None`: an instance begins with
    /// [`start`](PersistentCollective::start).
    fn round(&self) -> Option<&Round>;

    /// Starts another instance. Must be called without the rank's lock.
    ///
    /// # Errors
    /// The rank is gone, or too many requests are active.
    fn start(&self) -> Result<RequestId>;
}

/// The result of a completed wait for one request.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// The status of the operation. For a generalised request it is a placeholder: the true status
    /// comes from [`Rank::end_generalized`](crate::Rank::end_generalized).
    pub status: Status,
    /// True if the request has been removed and its handle is invalid. Otherwise it is persistent,
    /// or a receive from any source that stays active: the wait has only reported the loss of a
    /// peer.
    pub gone: bool,
    /// The context of the operation's communicator, if the operation failed and belongs to one.
    pub context: Option<u64>,
}

impl Finished {
    /// The result of the null request.
    pub const NULL: Finished = Finished {
        status: Status::EMPTY,
        gone: true,
        context: None,
    };
}
