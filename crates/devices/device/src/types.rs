//! The types of verbs: regions, queues, work requests, completions, errors.

use std::fmt;

use crate::RequestCosts;

/// The result of a verb.
pub type Result<T> = std::result::Result<T, Error>;

/// The properties of a device.
#[derive(Clone, Debug)]
pub struct Attributes {
    /// The system's name for the device, such as `mlx5_0` or `qdr rail 1`.
    pub name: String,
    /// The largest payload of a packet, in bytes.
    pub mtu: usize,
    /// The largest inline payload, in bytes.
    pub inline: usize,
    /// The longest message, in bytes.
    pub longest: u64,
    /// The order in which the bytes of a write become visible.
    pub placement: Placement,
    /// Writes and sends can carry an immediate. For devices without immediates,
    /// [`with_immediates`](crate::with_immediates) emulates them.
    pub immediates: bool,
    /// The device has datagrams and unreliable connections. Without them it has reliable
    /// connections only.
    pub datagrams: bool,
    /// A request completes once the peer's device has acknowledged it, and fails if no
    /// acknowledgement comes for a while. If false, only the completion of a read proves that the
    /// peer can be reached, and a dead path is not reported.
    pub answered: bool,
    /// The device is software that runs on this host's processors: a spinning rank slows it down.
    pub by_processor: bool,
    /// The device works only while its owner polls it, by [`poll`](crate::Device::poll) or
    /// [`sync_memory`](crate::Device::sync_memory): a peer's request is executed then, and reads
    /// are answered. Every arrival raises an event, a plain write too.
    pub polled: bool,
    /// A queue pair can go back to RESET and be connected again. If not, destroy it and create
    /// another.
    pub resets: bool,
    /// The technology of the port's link.
    pub link_layer: LinkLayer,
    /// The network of the port. Ports with the same link layer and the same subnet reach each
    /// other.
    pub subnet: u64,
    /// Payload that link and slot carry in one direction, in bytes per second: an estimate.
    pub bandwidth: u64,
    /// Time from the post of a short write to its arrival in the peer's memory, in nanoseconds: an
    /// estimate.
    pub latency_ns: u64,
    /// The costs of a work request: an estimate.
    pub request: RequestCosts,
    /// The number of the card among the node's cards. Ports of one card share its slot.
    pub card: usize,
    /// The number of the protection domain among the node's. A region that is registered with one
    /// device of a domain is registered with all, under the same keys.
    pub domain: usize,
}

/// The technology of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE and iWARP.
    Ethernet,
    /// Any link that carries IP: the device works over TCP.
    Internet,
}

/// A change of a port, as its device reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortEvent {
    /// The rail of the port.
    pub rail: usize,
    /// The change.
    pub change: PortChange,
}

/// The kind of a port's change (IBA 11.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// The port carries nothing any more.
    Down,
    /// The port is active.
    Up,
    /// The port's addresses (LID, GID) or keys have changed: peers need the new ones.
    Address,
    /// The device has failed for good.
    Fatal,
}

/// The order in which the bytes of one RDMA write become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In address order: once the last byte is visible, all are.
    Ordered,
    /// In any order: only a completion says that all bytes are visible.
    Completion,
}

/// The accesses that a device may make to a region. It may always read the region for requests of
/// its own queue pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Receives, and the results of reads and atomics, may be written to the region.
    pub local_write: bool,
    /// Peers may write to the region.
    pub remote_write: bool,
    /// Peers may read from the region.
    pub remote_read: bool,
    /// Peers may change the region by atomics.
    pub remote_atomic: bool,
}

impl Access {
    /// Every access.
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
    /// The address of its first byte.
    pub address: u64,
    /// Its length, in bytes.
    pub len: u64,
    /// The key for the owner's work requests.
    pub lkey: u32,
    /// The key for peers' work requests.
    pub rkey: u32,
}

/// The handle of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cq(pub u32);

/// The handle of a shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Srq(pub u32);

/// The handle of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qp(pub u32);

/// The service that a queue pair gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection: writes and sends without acknowledgement.
    Uc,
    /// Unreliable datagram: sends of at most one packet, to any address.
    Ud,
}

/// The properties of a queue pair to create.
#[derive(Clone, Debug)]
pub struct QpWanted {
    /// The service.
    pub transport: Transport,
    /// The completion queue of the send queue.
    pub send_cq: Cq,
    /// The completion queue of the receive queue.
    pub receive_cq: Cq,
    /// The shared queue that receives are taken from. None: the queue pair has its own receive
    /// queue.
    pub srq: Option<Srq>,
    /// The most posted and incomplete work requests.
    pub sends: usize,
    /// The most posted and incomplete receives, without a shared queue.
    pub receives: usize,
    /// The longest inline payload, in bytes.
    pub inline: usize,
}

/// The address of a queue pair, which its owner sends to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The port: its LID on InfiniBand, otherwise a number made of its GID.
    pub port: u128,
    /// The number of the queue pair at its device.
    pub qp: u32,
}

/// The state of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// New, or reset: receives may be posted.
    Reset,
    /// The connection is being made and still needs the peer's device. Sends may not be posted yet.
    Connecting,
    /// Ready to send.
    Rts,
    /// Broken: everything posted is flushed.
    Error,
}

/// The target of [`modify`](crate::Device::modify).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The state ERROR.
    Error,
    /// The state RESET.
    Reset,
}

/// A piece of registered local memory.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The address of its first byte.
    pub address: u64,
    /// Its length, in bytes.
    pub len: u32,
    /// The local key of its region.
    pub lkey: u32,
}

/// A place in a peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// The address in the peer's memory.
    pub address: u64,
    /// The remote key of its region.
    pub rkey: u32,
}

/// A work request for a send queue.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The caller's number, which the completion returns.
    pub id: u64,
    /// The operation.
    pub operation: Operation,
    /// The local memory: gathered from (writes, sends) or scattered to (reads, atomics).
    pub local: &'a [Slice],
    /// The payload is inline; the keys of the slices do not matter.
    pub inline: bool,
    /// Success is reported by a completion. Failure always is.
    pub signaled: bool,
    /// The destination of a datagram.
    pub to: Option<Address>,
}

/// The operation of a work request.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// RDMA write.
    Write {
        /// The destination.
        to: Remote,
        /// An immediate, which consumes a receive at the peer.
        immediate: Option<u32>,
    },
    /// RDMA read.
    Read {
        /// The source.
        from: Remote,
    },
    /// Send, which consumes a receive at the peer.
    Send {
        /// An immediate for the peer's completion.
        immediate: Option<u32>,
    },
    /// Atomic compare and swap. The old value goes to the local slice of eight bytes.
    CompareAndSwap {
        /// The word at the peer.
        at: Remote,
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
    /// Atomic fetch and add. The old value goes to the local slice of eight bytes.
    FetchAndAdd {
        /// The word at the peer.
        at: Remote,
        /// The summand.
        add: u64,
    },
}

impl Operation {
    /// True if the operation carries an immediate.
    #[inline]
    pub fn has_immediate(&self) -> bool {
        let (Operation::Write { immediate, .. } | Operation::Send { immediate }) = self else {
            return false;
        };
        immediate.is_some()
    }
}

/// A queue that receives are posted to.
#[derive(Clone, Copy, Debug)]
pub enum ReceiveQueue {
    /// The receive queue of one queue pair.
    Own(Qp),
    /// A shared receive queue.
    Shared(Srq),
}

/// The report of the end of a work request or a receive.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The caller's number of the request.
    pub id: u64,
    /// The queue pair.
    pub qp: Qp,
    /// Success, or the reason of the failure.
    pub status: Status,
    /// The kind of request.
    pub of: Completed,
    /// Bytes received or read.
    pub bytes: u32,
    /// The peer's immediate.
    pub immediate: Option<u32>,
}

/// The kind of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// A send.
    Send,
    /// An RDMA write.
    Write,
    /// An RDMA read.
    Read,
    /// An atomic operation.
    Atomic,
    /// A receive consumed by a send.
    Receive,
    /// A receive consumed by an RDMA write with immediate.
    ReceiveWrite,
}

/// Success, or the reason of a failure (IBA vol. 1, 10.10.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The request has succeeded.
    Success,
    /// The local memory does not fit the message.
    LocalLength,
    /// The queue pair could not execute the request.
    LocalQpOperation,
    /// A local key does not allow the access.
    LocalProtection,
    /// The queue pair was in the state ERROR.
    Flushed,
    /// The peer's answer was invalid.
    BadResponse,
    /// The peer's device rejected the request as invalid.
    RemoteInvalidRequest,
    /// The remote key does not allow the access.
    RemoteAccess,
    /// The peer's device could not execute the request.
    RemoteOperation,
    /// The peer's device did not acknowledge, for all retries.
    RetryExceeded,
    /// The peer had no receive posted, for all retries.
    RnrRetryExceeded,
}

impl Status {
    /// The words of the specification and of `ibv_wc_status_str`.
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

/// The reason why a verb was refused.
#[derive(Clone, Debug)]
pub enum Error {
    /// The call is invalid: the object, and the reason.
    Invalid(String),
    /// A queue is full: take completions first.
    Full,
    /// All ranks wait and nothing is in flight. Only in virtual time.
    Deadlock,
    /// The operating system or a library refused.
    System(String),
    /// The operating system refused because too much memory is registered, or locked otherwise.
    Shortage(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Invalid(what) | Error::System(what) | Error::Shortage(what) => f.write_str(what),
            Error::Full => f.write_str("the queue is full"),
            Error::Deadlock => f.write_str(
                "deadlock: every rank waits, and nothing is under way that could wake one",
            ),
        }
    }
}

impl std::error::Error for Error {}
