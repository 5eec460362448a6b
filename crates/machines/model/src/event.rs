//! The events of a modelled machine.

use sim::Clock;

use super::message::Messages;

/// The clock of a world with a modelled machine.
pub(crate) type Clocked = Clock<Event>;

/// An event of the modelled machine.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The processor's store has reached the HCA: a queue pair has one more request.
    #[allow(missing_docs)]
    Doorbell { qp: u32, life: u32, inlined: u32 },
    /// A work request that the processor did not push begins to arrive from memory.
    Fetch { qp: u32, life: u32, inlined: u32 },
    /// A work request has arrived in the HCA.
    Fetched { qp: u32, life: u32 },
    /// The engine can take a queue pair's next request.
    Begin { qp: u32 },
    /// A request's payload begins to arrive from memory.
    Payload { qp: u32, life: u32 },
    /// An adapter has read a packet from memory, or may read the next.
    Pump { adapter: u32 },
    /// A queue pair whose rate is bounded may read its next packet.
    #[allow(missing_docs)]
    Paced { stream: u32 },
    /// A packet of a request has reached the peer, whose queue pair was in this epoch when it left.
    Arrive {
        message: u32,
        packet: u32,
        life: u32,
    },
    /// A peer's memory is read for a message, or changed by an atomic.
    Serve { message: u32 },
    /// A packet of a response has reached the requester.
    Answered { message: u32, packet: u32 },
    /// A message has been acknowledged, and with it all before it.
    Acknowledged { message: u32 },
    /// The peer refuses a message.
    Refused { message: u32, why: Refusal },
    /// The peer reports a missing packet.
    Missing { qp: u32, sequence: u32, packet: u32 },
    /// A queue pair resumes after a receiver-not-ready wait.
    Resume { qp: u32, life: u32 },
    /// The acknowledgement timer of a queue pair, which is of this rank, has expired.
    Timeout { qp: u32, life: u32, rank: u32 },
    /// Data becomes visible to a waiting rank.
    Wake { rank: u32 },
    /// A fault takes a port of a rank's host down, or its end brings the port up.
    Port { rank: u32, fault: u32 },
}

impl Event {
    /// The message that it is about, if that is in flight.
    #[inline]
    pub(crate) fn message(&self) -> Option<u32> {
        match *self {
            Event::Arrive { message, .. }
            | Event::Serve { message }
            | Event::Answered { message, .. }
            | Event::Acknowledged { message }
            | Event::Refused { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The queue pair whose requests it belongs to.
    pub(crate) fn requester(&self, messages: &Messages) -> Option<u32> {
        match *self {
            Event::Doorbell { qp, .. }
            | Event::Fetch { qp, .. }
            | Event::Fetched { qp, .. }
            | Event::Begin { qp }
            | Event::Payload { qp, .. }
            | Event::Missing { qp, .. }
            | Event::Resume { qp, .. }
            | Event::Timeout { qp, .. } => Some(qp),
            _ => self.message().map(|message| messages[message].from),
        }
    }

    /// The queue pair, and its epoch: in another epoch the event means nothing.
    #[inline]
    pub(crate) fn life(&self) -> Option<(u32, u32)> {
        match *self {
            Event::Doorbell { qp, life, .. }
            | Event::Fetch { qp, life, .. }
            | Event::Fetched { qp, life }
            | Event::Payload { qp, life }
            | Event::Resume { qp, life }
            | Event::Timeout { qp, life, .. } => Some((qp, life)),
            _ => None,
        }
    }

    /// The rank that it may write to.
    #[inline]
    pub(crate) fn near_to(&self, messages: &Messages) -> Option<u32> {
        match *self {
            Event::Arrive { message, .. } => Some(messages[message].to_rank),
            Event::Answered { message, .. }
            | Event::Acknowledged { message }
            | Event::Refused { message, .. } => Some(messages[message].from_rank),
            // The last one fails the requests.
            Event::Timeout { rank, .. } => Some(rank),
            _ => None,
        }
    }
}

/// The reason why a responder refuses a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No receive is posted.
    NotReady,
    /// The request is invalid.
    InvalidRequest,
    /// The remote key does not allow the access.
    Access,
    /// The operation failed.
    Operation,
}
