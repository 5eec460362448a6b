//! The events of a modelled machine, from the arrival of a doorbell to the change of a port.

use sim::Clock;

use super::message::Messages;

/// The clock of a world that contains a modelled machine.
pub(crate) type Clocked = Clock<Event>;

/// An event of the modelled machine.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The processor's store has reached the HCA: a queue pair has one more request.
    #[allow(missing_docs)]
    Doorbell { qp: u32, life: u32, inlined: u32 },
    /// A work request that the processor did not push to the HCA begins to arrive from memory.
    Fetch { qp: u32, life: u32, inlined: u32 },
    /// A work request of the queue pair has arrived in the HCA.
    Fetched { qp: u32, life: u32 },
    /// The engine can take the next request of a queue pair.
    Begin { qp: u32 },
    /// The payload of a request begins to arrive from memory.
    Payload { qp: u32, life: u32 },
    /// An adapter has read a packet from memory, or may read the next one.
    Pump { adapter: u32 },
    /// A stream of packets whose rate is limited may read its next packet.
    #[allow(missing_docs)]
    Paced { stream: u32 },
    /// A packet of a request has reached the peer, whose queue pair was in the epoch `life` when
    /// the packet left.
    Arrive {
        message: u32,
        packet: u32,
        life: u32,
    },
    /// The first bit of a packet of a message is at its next link between switches.
    #[allow(missing_docs)]
    Hop { message: u32, packet: u32 },
    /// The memory of a peer is read for a response, or changed by an atomic.
    Serve { message: u32 },
    /// A packet of a response has reached the requester.
    Answered { message: u32, packet: u32 },
    /// A message has been acknowledged, and with it all messages before it.
    Acknowledged { message: u32 },
    /// The peer has refused a message.
    Refused { message: u32, why: Refusal },
    /// The peer has reported a missing packet.
    Missing { qp: u32, sequence: u32, packet: u32 },
    /// A queue pair resumes after a receiver-not-ready wait.
    Resume { qp: u32, life: u32 },
    /// The acknowledgement timer of a queue pair of `rank` has expired.
    Timeout { qp: u32, life: u32, rank: u32 },
    /// Data becomes visible to a waiting rank.
    Wake { rank: u32 },
    /// A fault of a port begins, changes or ends, so the rank checks its ports and paths.
    Port { rank: u32, fault: u32 },
}

impl Event {
    /// The number of the message in flight that the event is about. `None`: it is about none.
    #[inline]
    pub(crate) fn message(&self) -> Option<u32> {
        match *self {
            Event::Arrive { message, .. }
            | Event::Hop { message, .. }
            | Event::Serve { message }
            | Event::Answered { message, .. }
            | Event::Acknowledged { message }
            | Event::Refused { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The queue pair to whose requests the event belongs.
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

    /// The queue pair and the epoch of it to which the event belongs. In another epoch the event
    /// has no effect.
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

    /// The rank whose memory or completion queues the event may write to soon.
    #[inline]
    pub(crate) fn near_to(&self, messages: &Messages) -> Option<u32> {
        match *self {
            Event::Arrive { message, .. } => Some(messages[message].to_rank),
            Event::Answered { message, .. }
            | Event::Acknowledged { message }
            | Event::Refused { message, .. } => Some(messages[message].from_rank),
            // The last timeout fails the requests.
            Event::Timeout { rank, .. } => Some(rank),
            _ => None,
        }
    }
}

/// The reason with which a responder refuses a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The responder has posted no receive.
    NotReady,
    /// The request is invalid for the responder.
    InvalidRequest,
    /// The remote key does not allow the access.
    Access,
    /// The receive does not allow the write.
    Operation,
}
