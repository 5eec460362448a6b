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
use crate::packet::Envelope;
use crate::request::generalized::Functions;
use crate::{Class, Error, Result, Status};

/// The handle of a request.
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

/// The object of a wait, for reports of a rank that does not return.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// The procedure, such as `MPI_Recv`.
    pub operation: &'static str,
    /// The requests that the procedure waits for.
    pub requests: &'a [RequestId],
}

impl Waiting<'static> {
    /// A wait for something else than requests.
    pub fn in_call(operation: &'static str) -> Waiting<'static> {
        Waiting {
            operation,
            requests: &[],
        }
    }
}

/// A started operation.
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// The status of the operation, once it is complete.
    pub status: Option<Status>,
    /// The user has freed the handle: completion removes the request.
    detached: bool,
}

impl Request {
    /// The operation is not complete. A wait for it may be about to report a loss.
    pub fn is_open(&self) -> bool {
        self.status.is_none_or(|status| status.error.0 < 0)
    }
}

/// The operation of a request.
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
    /// An access to exposed memory of a peer, which has no part in it.
    Access {
        /// World rank of the peer.
        peer: usize,
    },
    /// A send or receive that can be started again.
    Persistent(Box<Persistent>),
    /// A generalised request (MPI 5.0 §13.2), which the user completes. Its functions lie apart:
    /// one kind more that owns memory would cost each drop of a request a jump by a table.
    Generalized,
}

impl Operation {
    /// An operation that belongs to no communicator.
    pub const NOBODYS: Operation = Operation::Collective { context: None };
}

/// A send in progress.
pub struct Send {
    /// The message.
    pub buffer: Buffer,
    /// World rank of the receiver.
    pub peer: usize,
    pub(crate) envelope: Envelope,
    /// The receiver has asked for the message, which can no longer be cancelled.
    pub streaming: bool,
    /// Bytes that the message occupies in a buffer attached for buffered sends.
    pub buffered: usize,
    /// A cancellation is in progress.
    pub cancelling: bool,
}

/// A receive in progress.
pub struct Receive {
    /// The receive buffer.
    pub buffer: Buffer,
    /// The envelope that the receive matches, and that of its message after the match.
    pub key: Key,
    /// Length of the message in bytes, known once the receive is matched.
    pub announced: usize,
    /// Bytes that have arrived in packets.
    pub arrived: usize,
}

/// A persistent operation (MPI 5.0 §3.9).
#[derive(Clone)]
pub struct Persistent {
    /// The arguments with which the operation is started.
    pub template: Template,
    /// The current instance, or `None` while the request is inactive.
    pub active: Option<RequestId>,
}

/// The arguments of a persistent operation.
#[derive(Clone)]
pub enum Template {
    /// A send.
    Send {
        /// The mode of the send.
        mode: Mode,
        /// The message.
        buffer: Buffer,
        /// Rank of the receiver in the communicator.
        dest: i32,
        /// Tag of the message.
        tag: i32,
        /// Handle of the communicator.
        comm: u32,
    },
    /// A receive.
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
    /// The round that is an instance, if one is known.
    fn round(&self) -> Option<&Round>;

    /// Starts another instance. Called without the rank's lock.
    ///
    /// # Errors
    /// The rank is gone, or too many requests are active.
    fn start(&self) -> Result<RequestId>;
}

/// The result of a wait for a request.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// The status of the operation. That of a generalised request stands for what
    /// [`Rank::end_generalized`](crate::Rank::end_generalized) gives.
    pub status: Status,
    /// The request is gone, and its handle is invalid. Otherwise it is persistent, or a receive
    /// from any source that stays active: the wait has only reported the loss of a peer.
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
