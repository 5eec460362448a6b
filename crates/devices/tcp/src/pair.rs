//! A queue pair: its queues, its machine, and the connection that carries its frames.

use std::os::fd::OwnedFd;

use device::{Address, Qp, QpWanted, State};
use secret::hello::{ANSWER, CALL, Caller};

use super::cork::Cork;
use super::frame::Machine;
use super::queues::ReceiveQueue;

/// A queue pair.
#[derive(Debug)]
pub(crate) struct Pair {
    pub qp: Qp,
    pub wanted: QpWanted,
    pub state: State,
    pub machine: Machine,
    pub line: Line,
    pub peer: Option<Address>,
    /// Places of the send queue in use.
    pub held: usize,
    /// Unused with a shared queue.
    pub receives: ReceiveQueue,
    /// Bytes behind a frame that waits for a receive.
    pub rest: Vec<u8>,
    /// Both ends have received a frame of the other over this connection, so neither is of an
    /// earlier epoch of its queue pair.
    pub is_ready: bool,
    /// This end calls its peer.
    pub is_caller: bool,
    /// The number of its calls.
    pub tries: u32,
    /// Polls without an arrival after which the connection is no longer read directly.
    pub heat: u32,
    /// The events that are asked for.
    pub interest: Interest,
    /// The frames that wait for others.
    pub cork: Cork,
    /// The path is short, and the kernel keeps little for it.
    pub is_near: bool,
    /// It is in the list of those whose peers wait for acknowledgements.
    pub is_owing: bool,
    /// It counts among those whose peers may call.
    pub is_awaited: bool,
}

/// The connection of a queue pair.
#[derive(Debug)]
pub(crate) enum Line {
    /// There is none.
    Idle,
    /// The peer is to call, and by this time, if there is one, to have begun.
    Waiting { until: Option<u64> },
    /// This end will call again.
    Resting { until: u64, tries: u32 },
    /// This end calls.
    Calling(Box<Call>),
    /// Frames go.
    Open(OwnedFd),
    /// The peer has ended it, or cannot be reached.
    Gone,
}

/// A call in progress.
#[derive(Debug)]
pub(crate) struct Call {
    pub socket: OwnedFd,
    pub since: u64,
    pub stage: CallStage,
}

/// The stage of a call.
#[derive(Debug)]
pub(crate) enum CallStage {
    /// The kernels connect.
    Connecting,
    /// The peer is to prove that it belongs to the job.
    Hello(Box<Hello>),
}

/// The answer of the peer, as far as it has come.
#[derive(Debug)]
pub(crate) struct Hello {
    /// None: the answer has been read, and this end has sent its proof.
    pub caller: Option<Caller>,
    pub bytes: [u8; ANSWER],
    pub have: usize,
}

/// A call that its queue pair no longer needs. It goes on, because the peer waits for it, and ends
/// as soon as it is made.
#[derive(Debug)]
pub(crate) struct LastCall {
    pub number: u32,
    pub call: Box<Call>,
    pub introduction: Introduction,
}

/// The events of a socket that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    pub input: bool,
    pub output: bool,
}

/// The introduction of a caller: the queue pair that it calls, and its own address.
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

/// The longest message of a hello, in bytes.
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

    /// The peer may call: it has the address of this end, or may be given it, and no connection has
    /// been made since.
    pub(crate) fn may_be_called(&self) -> bool {
        match self.state {
            State::Reset => true,
            State::Rts => !self.is_caller && !self.is_ready && !matches!(self.line, Line::Gone),
            _ => false,
        }
    }

    /// Forgets everything that was posted and that has come.
    pub(crate) fn begin_anew(&mut self) {
        self.machine = Machine::new(self.wanted.sends);
        self.held = 0;
        self.receives.clear();
        self.rest.clear();
    }
}
