//! Point-to-point communication (MPI 5.0 §3).
//!
//! A short message travels at once (*eager*), in one packet, or through shared memory in several that nothing comes
//! between; a long one stays with its sender, who offers it (*rendezvous*), and the receiver fetches it: it reads the
//! sender's memory where it can, and otherwise asks for it in packets.

mod handlers;
mod internal_messages;
#[cfg(test)]
mod nonsense_tests;
mod probe;
mod rdma;
mod ready_to_receive;
mod receive;
mod recv_fast_path;
mod rendezvous;
mod send;
mod send_queue;

use std::collections::{HashMap, VecDeque};

use channel::{Channel, Channels};
pub use probe::{Claimed, Found};
use rdma::Transfer;
pub(crate) use recv_fast_path::Short;
use rendezvous::{Chore, Fetch};
pub use send_queue::Peer;

use crate::Result;
use crate::matching::{Posted, Unexpected};
use crate::request::Requests;

/// How a send completes (MPI 5.0 §3.4). Buffered sends are standard sends from a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Standard,
    Buffered,
    Synchronous,
    Ready,
}

/// Everything that messages of this rank need, whatever communicator they belong to.
pub struct Messages {
    pub requests: Requests,
    posted: Posted,
    unexpected: Unexpected<Message>,
    /// What is known of each peer beyond "nothing special".
    peers: Vec<Option<Box<Peer>>>,
    /// Peers with packets that found no room yet.
    waiting: VecDeque<usize>,
    /// Offers that have met their receive and can be fetched.
    fetches: VecDeque<Fetch>,
    /// What else is to be done for long messages, ours and others'.
    chores: VecDeque<Chore>,
    /// Buffers that a device has access to, by their request.
    transfers: HashMap<u32, Transfer>,
    /// Which receives are told to their senders ahead.
    ahead: ready_to_receive::Receiver,
    pub(crate) limits: Limits,
    /// A packet that made no sense ends the job at the next opportunity.
    pub broken: Option<crate::Error>,
}

/// Where protocols change, from the knobs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest message that is sent at once in one packet, in bytes.
    pub whole: usize,
    /// The longest one that is sent at once to a rank that shares memory, in pieces.
    pub eager: usize,
    /// From this length on what all ranks share is written past the cache.
    pub past_cache: usize,
    /// From this length on a message is fetched by a single copy where that is allowed.
    pub single_copy: usize,
    /// From this length on its sender helps.
    pub together: usize,
    /// Unexpected bytes from one peer beyond which it is told to send headers only.
    pub unexpected: usize,
    /// Who moves a long message over RDMA.
    pub rendezvous: knobs::Rendezvous,
}

/// A message that no receive has asked for yet.
pub struct Message {
    pub peer: usize,
    pub body: Body,
}

pub enum Body {
    /// The message is here. `sync`: the sender's request that wants to hear of the match.
    Here { bytes: Bytes, sync: Option<u32> },
    /// The sender has it still: its request, and what it offers.
    Offered {
        request: u32,
        offer: crate::packet::Offer,
    },
}

impl Body {
    pub fn bytes(&self) -> usize {
        match self {
            Body::Here { bytes, .. } => bytes.len(),
            Body::Offered { offer, .. } => offer.len as usize,
        }
    }
}

/// The bytes of a message that waits: the short ones, which are the many, need no memory of their own.
pub enum Bytes {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

const SHORT: usize = 32;

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(from: &[u8]) -> Bytes {
        if from.len() > SHORT {
            return Bytes::Long(from.into());
        }
        let mut bytes = [0; SHORT];
        bytes[..from.len()].copy_from_slice(from);
        Bytes::Short {
            len: from.len() as u8,
            bytes,
        }
    }
}

impl From<Bytes> for Box<[u8]> {
    fn from(bytes: Bytes) -> Box<[u8]> {
        match bytes {
            Bytes::Short { .. } => (*bytes).into(),
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Short { len, bytes } => &bytes[..*len as usize],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl Messages {
    pub fn new(ranks: usize, limits: Limits) -> Messages {
        Messages {
            requests: Requests::default(),
            posted: Posted::default(),
            unexpected: Unexpected::default(),
            peers: std::iter::repeat_with(|| None).take(ranks).collect(),
            waiting: VecDeque::new(),
            fetches: VecDeque::new(),
            chores: VecDeque::new(),
            transfers: HashMap::new(),
            ahead: ready_to_receive::Receiver::default(),
            limits,
            broken: None,
        }
    }

    /// Is there anything that can be moved without a packet from outside?
    #[inline(always)]
    pub fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.fetches.is_empty() || !self.chores.is_empty()
    }

    /// Takes what has arrived, moves long messages, sends what waits for room. True if anything moved.
    #[inline(always)]
    pub fn round(&mut self, channels: &mut Channels) -> Result<bool> {
        let packets = channels.get(
            #[inline(always)]
            |peer, head, body| self.on_packet(peer, head, body),
        )?;
        let moved = packets > 0 || self.has_work();
        if moved {
            let fetched = self.fetch(channels)?;
            let flushed = self.flush(channels)?;
            if packets == 0 && channels.waits_by_node() {
                // Whoever waits for room lets time pass.
                return Ok(fetched || flushed);
            }
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
        }
        Ok(moved)
    }

    pub fn unexpected(&self) -> impl Iterator<Item = (&crate::matching::Key, &Message)> {
        self.unexpected.iter()
    }
}
