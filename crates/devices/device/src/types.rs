//! The types of verbs: regions, queues, work requests, completions, errors.

use std::fmt;

use crate::RequestCosts;

/// The result of a call of this crate's traits.
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
    /// True if writes and sends can carry an immediate. For devices without immediates,
    /// [`with_immediates`](crate::with_immediates) emulates them.
    pub immediates: bool,
    /// True if the device has datagrams and unreliable connections. Otherwise it has reliable
    /// connections only.
    pub datagrams: bool,
    /// True if a request completes once the peer's device has acknowledged it, and fails if no
    /// acknowledgement arrives for some time. If false, only the completion of a read proves that
    /// the peer can be reached, and a dead path is not reported.
    pub answered: bool,
    /// True if the device is software that runs on this host's processors: a spinning rank delays
    /// it.
    pub by_processor: bool,
    /// True if the device works only while its owner polls it, by [`poll`](crate::Device::poll) or
    /// [`sync_memory`](crate::Device::sync_memory): only then are peers' requests executed and
    /// reads answered. Every arrival raises an event, even a plain write.
    pub polled: bool,
    /// True if a queue pair can go back to RESET and be connected again. Otherwise destroy it and
    /// create another one.
    pub resets: bool,
    /// The technology of the port's link.
    pub link_layer: LinkLayer,
    /// The number that identifies the port's subnet. Ports with the same link layer and the same
    /// subnet reach each other.
    pub subnet: u64,
    /// Estimated bandwidth of payload through link and slot in one direction, in bytes per second.
    pub bandwidth: u64,
    /// Estimated time from the post of a short write to its arrival in the peer's memory, in
    /// nanoseconds.
    pub latency_ns: u64,
    /// Estimated costs of a work request.
    pub request: RequestCosts,
    /// The number of the device's card among the node's cards. Ports of one card share its slot.
    pub card: usize,
    /// The number of the protection domain among those of the node. A region that is registered
    /// with one device of a domain is registered with all of them, under the same keys.
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
    /// The kind of change.
    pub change: PortChange,
}

/// The kind of a port's change (IBA 11.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// The port does not work any more.
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
    /// In any order: only a completion shows that all bytes are visible.
    Completion,
}

/// The accesses that a device may make to a region. Reads for requests of its own queue pairs are
/// always allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// True if receives, and the results of reads and atomics, may be written to the region.
    pub local_write: bool,
    /// True if peers may write to the region.
    pub remote_write: bool,
    /// True if peers may read from the region.
    pub remote_read: bool,
    /// True if peers may change the region by atomics.
    pub remote_atomic: bool,
}

impl Access {
    /// Every access is allowed.
    pub const ALL: Access = Access {
        local_write: true,
        remote_write: true,
        remote_read: true,
        remote_atomic: true,
    };
}

/// A region of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The address of the region's first byte.
    pub address: u64,
    /// The length of the region, in bytes.
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

/// The service type of a queue pair.
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
    /// The service type.
    pub transport: Transport,
    /// The completion queue of the send queue.
    pub send_cq: Cq,
    /// The completion queue of the receive queue.
    pub receive_cq: Cq,
    /// The shared receive queue that receives are consumed from. `None`: the queue pair has a
    /// receive queue of its own.
    pub srq: Option<Srq>,
    /// The greatest number of work requests that are posted and incomplete.
    pub sends: usize,
    /// The greatest number of receives that are posted and incomplete, without a shared queue.
    pub receives: usize,
    /// The longest inline payload of the queue pair's requests, in bytes.
    pub inline: usize,
}

/// The address of a queue pair, which its owner sends to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The port of the queue pair: its LID on InfiniBand, otherwise an integer made of its GID.
    pub port: u128,
    /// The number of the queue pair on its device.
    pub qp: u32,
}

/// The state of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The queue pair is new or reset: receives may be posted.
    Reset,
    /// The connection is being made and still needs the peer's device. Sends may not be posted yet.
    Connecting,
    /// The queue pair is ready to send.
    Rts,
    /// The queue pair is broken: everything posted is flushed.
    Error,
}

/// The target state of [`modify`](crate::Device::modify).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The state ERROR.
    Error,
    /// The state RESET.
    Reset,
}

/// A part of a registered region of this rank.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The address of the slice's first byte.
    pub address: u64,
    /// The length of the slice, in bytes.
    pub len: u32,
    /// The local key of the slice's region.
    pub lkey: u32,
}

/// An address in a peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// The address in the peer's memory.
    pub address: u64,
    /// The remote key of the region there.
    pub rkey: u32,
}

/// A work request for a send queue.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The caller's number of the request, which the completion returns.
    pub id: u64,
    /// The operation of the work request, with its arguments.
    pub operation: Operation,
    /// The local memory: source (writes, sends) or destination (reads, atomics) of the payload.
    pub local: &'a [Slice],
    /// True if the payload is inline; then the keys of the slices are ignored.
    pub inline: bool,
    /// True if success is reported by a completion. Failure is always reported.
    pub signaled: bool,
    /// The destination of a datagram.
    pub to: Option<Address>,
}

/// The operation of a work request.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// RDMA write.
    Write {
        /// The destination in the memory of the peer.
        to: Remote,
        /// An immediate, which consumes a receive at the peer.
        immediate: Option<u32>,
    },
    /// RDMA read.
    Read {
        /// The source in the memory of the peer.
        from: Remote,
    },
    /// Send, which consumes a receive at the peer.
    Send {
        /// An immediate for the peer's completion.
        immediate: Option<u32>,
    },
    /// Atomic compare and swap. The old value goes to the local slice of eight bytes.
    CompareAndSwap {
        /// The eight bytes in the peer's memory.
        at: Remote,
        /// The value with which the old value is compared.
        compare: u64,
        /// The value that is stored if both are equal.
        swap: u64,
    },
    /// Atomic fetch and add. The old value goes to the local slice of eight bytes.
    FetchAndAdd {
        /// The eight bytes in the peer's memory.
        at: Remote,
        /// The value to be added.
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

/// A queue to which receives are posted.
#[derive(Clone, Copy, Debug)]
pub enum ReceiveQueue {
    /// The receive queue of one queue pair.
    Own(Qp),
    /// A shared receive queue.
    Shared(Srq),
}

/// The completion of a work request or a receive.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The caller's number of the request.
    pub id: u64,
    /// The queue pair of the request.
    pub qp: Qp,
    /// Success, or the reason of the failure.
    pub status: Status,
    /// The kind of request.
    pub of: Completed,
    /// Number of bytes received or read.
    pub bytes: u32,
    /// The peer's immediate, if the completed message had one.
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
    /// The text of the specification and of `ibv_wc_status_str`.
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

/// The reason why a call of a device was refused.
#[derive(Clone, Debug)]
pub enum Error {
    /// The call is invalid: the object concerned, and the reason.
    Invalid(String),
    /// A queue is full: the caller must poll completions first.
    Full,
    /// All ranks wait and no event is due. Only in virtual time.
    Deadlock,
    /// The operating system or a library refused the call.
    System(String),
    /// The operating system refused because too much memory is registered or otherwise locked.
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
