//! The words of verbs: regions, queues, work requests, completions, errors.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

/// What a device can do.
#[derive(Clone, Debug)]
pub struct Attributes {
    /// As the system calls it, such as `mlx5_0` or `qdr rail 1`.
    pub name: String,
    /// The largest payload of a packet, in bytes.
    pub mtu: usize,
    /// The largest payload that may stand in a work request, in bytes.
    pub inline: usize,
    /// The longest message, in bytes.
    pub longest: u64,
    pub placement: Placement,
    /// Writes and sends can take a number along. Where they cannot, [`with_immediates`](crate::with_immediates) helps.
    pub immediates: bool,
    /// It has datagrams, and unreliable connections. Where it has not, there are reliable connections only.
    pub datagrams: bool,
    /// A request completes once the peer's device has answered, and fails if that does not for a while. Where it is not so
    /// only a read's completion says anything of the peer, and a way that is dead says nothing.
    pub answered: bool,
    /// This host's processors do its work, so whoever spins keeps them from it.
    pub by_processor: bool,
}

/// How the bytes of one RDMA write become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the order of their addresses: the last byte says that all are there.
    Ordered,
    /// In any order: only a completion says that all are there.
    Completion,
}

/// What a device may do with a region. It may always read it for requests of its own queue pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Receives, and answers of reads and atomics, may be written to it.
    pub local_write: bool,
    pub remote_write: bool,
    pub remote_read: bool,
    pub remote_atomic: bool,
}

impl Access {
    pub const ALL: Access = Access {
        local_write: true,
        remote_write: true,
        remote_read: true,
        remote_atomic: true,
    };
}

/// Registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub address: u64,
    pub len: u64,
    /// For the owner's work requests.
    pub lkey: u32,
    /// For those of peers.
    pub rkey: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cq(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Srq(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qp(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection: writes and sends without acknowledgement.
    Uc,
    /// Unreliable datagram: sends of at most one packet, to anybody.
    Ud,
}

#[derive(Clone, Debug)]
pub struct QpWanted {
    pub transport: Transport,
    pub send_cq: Cq,
    pub receive_cq: Cq,
    /// Takes receives from here rather than from a queue of its own.
    pub srq: Option<Srq>,
    /// Work requests that are posted and not yet complete, at most.
    pub sends: usize,
    pub receives: usize,
    /// The longest inline payload, in bytes.
    pub inline: usize,
}

/// Where a queue pair is: to be told to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The port: on InfiniBand its LID, elsewhere what the GID says.
    pub port: u128,
    pub qp: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Reset,
    /// Connecting, which needs the other end.
    Connecting,
    /// Ready to send.
    Rts,
    Error,
}

/// Where [`modify`](crate::Device::modify) takes a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Error,
    Reset,
}

/// A piece of registered local memory.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub address: u64,
    pub len: u32,
    pub lkey: u32,
}

/// A place in a peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    pub address: u64,
    pub rkey: u32,
}

/// A work request for a send queue.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// Comes back in the completion.
    pub id: u64,
    pub operation: Operation,
    /// Gathered from (writes, sends) or scattered to (reads, atomics).
    pub local: &'a [Slice],
    /// The payload stands in the request; the keys of the slices do not matter.
    pub inline: bool,
    /// Completes with a completion; otherwise only if it fails.
    pub signaled: bool,
    /// Whom a datagram is for.
    pub to: Option<Address>,
}

#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Write {
        to: Remote,
        immediate: Option<u32>,
    },
    Read {
        from: Remote,
    },
    Send {
        immediate: Option<u32>,
    },
    /// The old value goes to the local slice of eight bytes.
    CompareAndSwap {
        at: Remote,
        compare: u64,
        swap: u64,
    },
    FetchAndAdd {
        at: Remote,
        add: u64,
    },
}

impl Operation {
    /// It takes an immediate along.
    #[inline]
    pub fn says(&self) -> bool {
        let (Operation::Write { immediate, .. } | Operation::Send { immediate }) = self else {
            return false;
        };
        immediate.is_some()
    }
}

#[derive(Clone, Copy, Debug)]
pub enum ReceiveQueue {
    Own(Qp),
    Shared(Srq),
}

/// What became of a work request or a receive.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    pub id: u64,
    pub qp: Qp,
    pub status: Status,
    pub of: Completed,
    /// Bytes received or read.
    pub bytes: u32,
    pub immediate: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    Send,
    Write,
    Read,
    Atomic,
    Receive,
    /// A receive that an RDMA write with immediate has used up.
    ReceiveWrite,
}

/// IBA 10.10.3: why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Success,
    LocalLength,
    LocalQpOperation,
    LocalProtection,
    Flushed,
    BadResponse,
    RemoteInvalidRequest,
    RemoteAccess,
    RemoteOperation,
    RetryExceeded,
    RnrRetryExceeded,
}

impl Status {
    /// As the specification and `ibv_wc_status_str` put it.
    pub fn words(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::LocalLength => "local length error",
            Status::LocalQpOperation => "local QP operation error",
            Status::LocalProtection => "local protection error",
            Status::Flushed => "work request flushed",
            Status::BadResponse => "bad response",
            Status::RemoteInvalidRequest => "remote invalid request",
            Status::RemoteAccess => "remote access error",
            Status::RemoteOperation => "remote operation error",
            Status::RetryExceeded => "transport retry counter exceeded",
            Status::RnrRetryExceeded => "receiver-not-ready retry counter exceeded",
        }
    }
}

/// Why a verb was refused.
#[derive(Clone, Debug)]
pub enum Error {
    /// What was asked for, and why that cannot be.
    Invalid(String),
    /// A queue is full: take completions first.
    Full,
    /// All ranks wait and nothing is on its way. Only in virtual time.
    Deadlock,
    /// The operating system or the library below refused.
    System(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Invalid(what) | Error::System(what) => f.write_str(what),
            Error::Full => f.write_str("the queue is full"),
            Error::Deadlock => f.write_str(
                "deadlock: every rank waits, and nothing is on its way that could wake one",
            ),
        }
    }
}

impl std::error::Error for Error {}
