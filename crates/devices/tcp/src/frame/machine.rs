//! The machine of one connection: its requests, the frame that comes, the bytes that leave, and the
//! acknowledgement that is owed.

use device::{Completed, Operation, Slice, Status, Work};

use super::header::{ASKED, AT_ONCE, HEADER, Header, IMMEDIATE, Kind, reason};
use super::host::{Break, Host};
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::requests::{Request, Requests};

/// The length from which a request with a completion is acknowledged at once, in bytes: then the
/// acknowledgement costs little beside the bytes.
pub(super) const LONG: u32 = 16 << 10;
/// The time after which the peer gets a requested acknowledgement, in nanoseconds, while no bytes
/// arrive from it.
pub(super) const QUIET_NS: u64 = 10_000;
/// The time after which the peer gets a requested acknowledgement, in nanoseconds, while more bytes
/// arrive from it.
pub(super) const BUSY_NS: u64 = 100_000;

/// The first bytes of a frame: its header, and the operands of an atomic.
pub(crate) struct FrameHead {
    bytes: [u8; HEADER + 16],
    len: usize,
}

impl std::ops::Deref for FrameHead {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The protocol machine of one connection.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(super) requests: Requests,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    pub(super) owed: Owed,
}

/// The acknowledgement that this end has not sent to the peer yet.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// The number of the peer's last executed request.
    pub executed: u16,
    /// The time since which the peer waits for an acknowledgement. `None`: it does not wait.
    pub since: Option<u64>,
    pub at_once: bool,
}

impl Machine {
    /// The machine of a queue pair for `depth` requests.
    pub(crate) fn new(depth: usize) -> Machine {
        Machine {
            requests: Requests::new(depth),
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            owed: Owed::default(),
        }
    }

    /// The bytes that wait for room in the socket.
    pub(crate) fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    /// Records that the socket has taken this number of the bytes that wait.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.outgoing.sent(bytes);
    }

    /// True if requests are in flight.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.requests.any()
    }

    /// Begins a request whose local memory has been checked; returns the first bytes of its frame.
    /// The payload follows them.
    #[inline]
    pub(crate) fn begin(&mut self, work: &Work, len: u32) -> FrameHead {
        let mut head = Header::of(Kind::Write, self.acknowledge());
        let mut operands = [0; 16];
        let answered = |work: &Work| Some((work.local.to_vec(), len));
        let (of, answer) = match work.operation {
            Operation::Write { to, immediate } => {
                (head.address, head.key, head.len) = (to.address, to.rkey, len);
                head.set_immediate(immediate);
                (Completed::Write, None)
            }
            Operation::Send { immediate } => {
                (head.kind, head.len) = (Kind::Send, len);
                head.set_immediate(immediate);
                (Completed::Send, None)
            }
            Operation::Read { from } => {
                (head.kind, head.len) = (Kind::Read, len);
                (head.address, head.key) = (from.address, from.rkey);
                (Completed::Read, answered(work))
            }
            Operation::FetchAndAdd { at, add } => {
                (head.kind, head.len) = (Kind::Add, 8);
                (head.address, head.key) = (at.address, at.rkey);
                operands[..8].copy_from_slice(&add.to_le_bytes());
                (Completed::Atomic, answered(work))
            }
            Operation::CompareAndSwap { at, compare, swap } => {
                (head.kind, head.len) = (Kind::Swap, 16);
                (head.address, head.key) = (at.address, at.rkey);
                operands[..8].copy_from_slice(&compare.to_le_bytes());
                operands[8..].copy_from_slice(&swap.to_le_bytes());
                (Completed::Atomic, answered(work))
            }
        };
        self.requests.add(Request {
            id: work.id,
            of,
            signaled: work.signaled,
            answer,
            failed: None,
        });
        if work.signaled {
            head.flags |= ASKED;
        }
        let is_long = work.signaled && len >= LONG;
        if self.requests.is_pressing() || is_long && self.requests.is_urgent(len) {
            head.flags |= AT_ONCE;
        }
        let behind = match head.kind {
            Kind::Add => 8,
            Kind::Swap => 16,
            _ => 0,
        };
        let mut bytes = [0; HEADER + 16];
        bytes[..HEADER].copy_from_slice(&head.encode());
        bytes[HEADER..].copy_from_slice(&operands);
        FrameHead {
            bytes,
            len: HEADER + behind,
        }
    }

    /// Adds a request that cannot be executed at this end. It fails after those before it have
    /// ended.
    pub(crate) fn fail_locally(
        &mut self,
        work: &Work,
        of: Completed,
        status: Status,
        host: &mut impl Host,
    ) -> Result<(), Break> {
        self.requests.add(Request {
            id: work.id,
            of,
            signaled: true,
            answer: None,
            failed: Some(status),
        });
        self.requests.check(host)
    }

    /// Keeps a frame of which the socket has taken the first `sent` bytes. The payload is copied if
    /// its owner may change it.
    pub(crate) fn keep(
        &mut self,
        head: &[u8],
        payload: &[Slice],
        sent: usize,
        is_copied: bool,
        host: &impl Host,
    ) {
        let take = |address, len, into: &mut Vec<u8>| host.copy(address, len, into);
        self.outgoing.frame((head, payload), sent, is_copied, take);
    }

    /// True if the peer must get an acknowledgement in a frame of its own now. `is_quiet`: no bytes
    /// have just arrived from it.
    #[inline]
    pub(crate) fn owes(&self, is_quiet: bool, now: impl FnOnce() -> u64) -> bool {
        let Some(since) = self.owed.since else {
            return false;
        };
        let limit = if is_quiet { QUIET_NS } else { BUSY_NS };
        self.owed.at_once || now().saturating_sub(since) >= limit
    }

    /// True if the peer waits for an acknowledgement of its requests.
    pub(crate) fn is_asked(&self) -> bool {
        self.owed.since.is_some()
    }

    /// Adds an acknowledgement to the bytes that wait for the socket.
    pub(crate) fn queue_acknowledgement(&mut self) {
        let header = Header::of(Kind::Acknowledgement, self.acknowledge());
        self.outgoing.bytes(&header.encode());
    }

    /// A frame that acknowledges nothing: both ends of a new connection begin with one.
    pub(crate) fn greeting() -> [u8; HEADER] {
        Header::of(Kind::Acknowledgement, 0).encode()
    }

    /// A frame that refuses a connection whose queue pair has failed.
    pub(crate) fn farewell() -> [u8; HEADER] {
        Header::of(Kind::Refusal, 0).encode()
    }

    /// Returns the number of the peer's last executed request, for a frame that leaves now, and
    /// records that it leaves.
    #[inline]
    pub(super) fn acknowledge(&mut self) -> u16 {
        self.owed.since = None;
        self.owed.at_once = false;
        self.owed.executed
    }

    /// Ends the connection: posted requests and a receive in use complete.
    pub(crate) fn fail(&mut self, why: Break, host: &mut impl Host) {
        let status = match why {
            Break::Refused(status) | Break::Local(status) => status,
            Break::Lost => Status::RetryExceeded,
            Break::Protocol(_) => Status::BadResponse,
            Break::Refuse(_) | Break::Ended => Status::Flushed,
        };
        let of_receive = match why {
            Break::Refuse(Status::RemoteInvalidRequest) => Status::LocalLength,
            _ => Status::Flushed,
        };
        self.incoming.abandon(of_receive, host);
        self.requests.flush(status, host);
        self.outgoing.clear();
        if let Break::Refuse(status) = why {
            let mut header = Header::of(Kind::Refusal, self.owed.executed);
            header.immediate = reason(status);
            self.outgoing.bytes(&header.encode());
        }
    }
}

impl Header {
    #[inline]
    fn set_immediate(&mut self, immediate: Option<u32>) {
        if let Some(immediate) = immediate {
            self.flags |= IMMEDIATE;
            self.immediate = immediate;
        }
    }
}
