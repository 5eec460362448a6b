//! A queue pair: its queues, its machine, and the connection that carries its frames.

use std::os::fd::OwnedFd;

use device::{Address, Qp, QpWanted, State};
use secret::hello::{ANSWER, CALL, Caller};

use super::cork::Cork;
use super::frame::Machine;
use super::queues::ReceiveQueue;

/// A queue pair: its queues, its connection and its protocol machine.
#[derive(Debug)]
pub(crate) struct Pair {
    pub qp: Qp,
    pub wanted: QpWanted,
    pub state: State,
    pub machine: Machine,
    pub line: Line,
    pub peer: Option<Address>,
    /// The number of entries of the send queue in use.
    pub held: usize,
    /// The queue pair's own receive queue, unused with a shared one.
    pub receives: ReceiveQueue,
    /// The received bytes behind a frame that waits for a receive.
    pub rest: Vec<u8>,
    /// True if both ends have received a frame of the other over this connection, so that neither
    /// is of an earlier epoch of its queue pair.
    pub is_ready: bool,
    /// True if this end makes the connection to its peer.
    pub is_caller: bool,
    /// The number of attempts to connect to the peer so far.
    pub tries: u32,
    /// The number of further polls without an arrival after which the connection is no longer hot.
    pub heat: u32,
    /// The events of the socket that the poller awaits.
    pub interest: Interest,
    /// The frames that wait for those behind them.
    pub cork: Cork,
    /// True if the path is short, and the kernel keeps few bytes for it.
    pub is_near: bool,
    /// True if the queue pair is in the list of those whose peers wait for acknowledgements.
    pub is_owing: bool,
    /// True if the queue pair counts among those whose peers may call.
    pub is_awaited: bool,
}

/// The state of the connection of a queue pair.
#[derive(Debug)]
pub(crate) enum Line {
    /// There is no connection.
    Idle,
    /// The peer is to connect (call). Unless `until` is `None`, it must have begun by that time.
    Waiting { until: Option<u64> },
    /// This end will try to connect again, at the time `until`, after `tries` attempts.
    Resting { until: u64, tries: u32 },
    /// This end is connecting to the peer.
    Calling(Box<Call>),
    /// The connection carries frames.
    Open(OwnedFd),
    /// The connection has ended, or the peer cannot be reached.
    Gone,
}

/// A call in progress: a TCP connection that this end is making to its peer.
#[derive(Debug)]
pub(crate) struct Call {
    pub socket: OwnedFd,
    pub since: u64,
    pub stage: CallStage,
}

/// The stage of a connection attempt (call).
#[derive(Debug)]
pub(crate) enum CallStage {
    /// The kernels are connecting the sockets (TCP's handshake).
    Connecting,
    /// The peer must prove that it belongs to the job.
    Hello(Box<Hello>),
}

/// The handshake of a call in which both ends prove their knowledge of the job's secret, and the
/// peer's answer as far as it has arrived.
#[derive(Debug)]
pub(crate) struct Hello {
    /// The caller's part of the handshake. `None`: the answer has been read, and this end has sent
    /// its proof.
    pub caller: Option<Caller>,
    pub bytes: [u8; ANSWER],
    pub have: usize,
}

/// A call that its queue pair no longer needs. It continues, because the peer waits for it, and
/// ends as soon as it is made.
#[derive(Debug)]
pub(crate) struct LastCall {
    pub number: u32,
    pub call: Box<Call>,
    pub introduction: Introduction,
}

/// The events of a socket that are awaited: input, room for output, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    pub input: bool,
    pub output: bool,
}

/// The first message of a caller: the number of the called queue pair, and its own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Introduction {
    pub to: u32,
    pub from: Address,
}

impl Introduction {
    pub(crate) fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&self.to.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.from.qp.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.from.port.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; 32]) -> Introduction {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Introduction {
            to: word(0),
            from: Address {
                qp: word(4),
                port: u128::from_le_bytes(std::array::from_fn(|i| bytes[8 + i])),
            },
        }
    }
}

/// The longest message, in bytes, of the handshake in which both ends prove their knowledge of the
/// job's secret.
pub(crate) const HELLO: usize = CALL;

impl Pair {
    pub(crate) fn new(qp: Qp, wanted: &QpWanted) -> Pair {
        Pair {
            qp,
            wanted: wanted.clone(),
            state: State::Reset,
            machine: Machine::new(wanted.sends),
            line: Line::Idle,
            peer: None,
            held: 0,
            receives: ReceiveQueue::new(wanted.receives),
            rest: Vec::new(),
            is_ready: false,
            is_caller: false,
            tries: 0,
            heat: 0,
            interest: Interest::default(),
            cork: Cork::default(),
            is_near: false,
            is_owing: false,
            is_awaited: false,
        }
    }

    /// True if the peer may call: it has the address of this end, or may be given it, and no
    /// connection has been made since.
    pub(crate) fn may_be_called(&self) -> bool {
        match self.state {
            State::Reset => true,
            State::Rts => !self.is_caller && !self.is_ready && !matches!(self.line, Line::Gone),
            _ => false,
        }
    }

    /// Resets the queue pair: forgets everything posted and received.
    pub(crate) fn begin_anew(&mut self) {
        self.machine = Machine::new(self.wanted.sends);
        self.held = 0;
        self.receives.clear();
        self.rest.clear();
    }
}
