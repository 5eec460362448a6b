//! The path of packets to and from peers without rings: each packet is a message.
//!
//! A rank has memory for rings with a bounded number of peers. With all others, and with peers that
//! have none for it, packets go as messages. They leave from send buffers that all these peers
//! share. They arrive in a pool of buffers: a shared receive queue of several connections, created
//! when connections need it. Where this end has memory for a ring but the peer has none, messages
//! arrive in that memory.
//!
//! Each peer is granted a number of messages ([`Credits`](super::credit::Credits)). Every
//! connection has a receive for one message and one grant-only message. The other receives of its
//! pool are lent to peers that wait for credit ([`Pools`](super::pool::Pools)).
//!
//! A message is a slot's contents and trailer. Invariants:
//! - a pool has as many receives as its connections have windows and grant-only messages, and a
//!   window grows only by a receive that no other window holds: no message ever arrives at a queue
//!   without a receive;
//! - a buffer is posted again only after its packet was consumed, and before it is granted again.
//!   It is written again only after its message has completed.

use std::collections::VecDeque;
use std::ops::Range;

use device::{Access, Node};

use super::credit::{EMPTY, MOST};
use super::layout::{Layout, RING, WORD};
use super::pool::shape;
use super::rail_set::RailSet;
use super::registered::Registered;
use crate::Result;

/// The messages that a rank exchanges with peers without rings: its send buffers, and the messages
/// that wait for the handler.
#[derive(Default)]
pub(super) struct SrqPath {
    send_buffers: Option<SendBuffers>,
    /// Messages that have arrived and are not consumed.
    arrived: VecDeque<ArrivedMessage>,
    /// Peers that may be owed a message with a grant alone.
    owed: Vec<usize>,
    active: bool,
}

/// A message that has arrived and waits for the handler.
#[derive(Clone, Copy)]
pub(super) struct ArrivedMessage {
    pub from: usize,
    /// The number of the rail over which the message arrived.
    pub rail: usize,
    pub place: MessagePlace,
    pub bytes: usize,
}

/// The buffer that contains an arrived message, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessagePlace {
    /// The number of a buffer in this end's memory for the ring from the peer. The peer has no
    /// memory for rings, so its messages arrive in these buffers.
    Endpoint(usize),
    /// The number of a buffer in the pool (a shared receive queue) that the endpoint uses.
    Pool(usize),
}

/// The buffers from which messages to peers without rings leave.
pub(super) struct SendBuffers {
    pub memory: Registered,
    /// The length of a send buffer in bytes.
    buffer: usize,
    free: Vec<usize>,
    /// The length of the message in each buffer, in bytes.
    lengths: Vec<usize>,
}

/// The length of this end's memory for the ring from one peer, in bytes. It is large enough for the
/// messages of one peer instead of a ring.
pub(super) fn room(layout: &Layout) -> usize {
    RING + layout.bytes.max((1 + EMPTY) * shape(layout).0)
}

/// The number of messages that fit into this end's memory for the ring from one peer, each in a
/// buffer.
pub(super) fn fit(layout: &Layout) -> usize {
    ((room(layout) - RING) / shape(layout).0 - EMPTY).min(MOST as usize)
}

impl SrqPath {
    /// True if this rank exchanges messages with some peer, so that completions may report them.
    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// Records that this rank exchanges messages with some peer, so that completions may report
    /// them.
    pub(super) fn activate(&mut self) {
        self.active = true;
    }

    /// The buffers from which messages leave, if any has left.
    pub(super) fn buffers(&self) -> Option<&SendBuffers> {
        self.send_buffers.as_ref()
    }

    /// The sequence number of the message in a send buffer.
    pub(super) fn sequence(&self, number: usize) -> u64 {
        let buffers = self.buffers();
        buffers
            .expect("a message leaves from a send buffer")
            .message(number)
            .1
    }

    /// The number of messages of `peer` that have arrived and are not consumed.
    pub(super) fn arrived_from(&self, peer: usize) -> u64 {
        let of_peer = self.arrived.iter().filter(|message| message.from == peer);
        of_peer.count() as u64
    }

    /// Removes and returns the next message that has arrived.
    pub(super) fn next_arrived(&mut self) -> Option<ArrivedMessage> {
        self.arrived.pop_front()
    }

    /// Adds `peer` to the list of peers that may be owed a message with a grant alone. The caller
    /// adds each peer once.
    pub(super) fn owe(&mut self, peer: usize) {
        self.owed.push(peer);
    }

    /// True if peers may be owed a message with a grant alone.
    pub(super) fn has_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Removes from the list of peers that may be owed a message with a grant alone those for which
    /// `keep` is false.
    pub(super) fn retain_owed(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.owed.retain(|&peer| keep(peer));
    }

    /// Records a message that has arrived.
    pub(super) fn received(&mut self, rail: usize, from: usize, place: MessagePlace, bytes: usize) {
        self.arrived.push_back(ArrivedMessage {
            from,
            rail,
            place,
            bytes,
        });
    }

    /// Frees a send buffer whose message has left.
    pub(super) fn sent(&mut self, number: usize) {
        let buffers = self.send_buffers.as_mut();
        let buffers = buffers.expect("a message leaves from a send buffer");
        buffers.free.push(number);
    }

    /// The send buffers, registered on `rails` when they are first needed.
    pub(super) fn send_buffers(
        &mut self,
        node: &mut dyn Node,
        rails: RailSet,
        layout: &Layout,
    ) -> Result<&mut SendBuffers> {
        match &mut self.send_buffers {
            Some(buffers) => Ok(buffers),
            none => {
                let (buffer, count) = shape(layout);
                let access = Access::default();
                let memory = Registered::new(node, rails, buffer * count, access)?;
                let free = (0..count).collect();
                Ok(none.insert(SendBuffers {
                    memory,
                    buffer,
                    free,
                    lengths: vec![0; count],
                }))
            }
        }
    }

    /// Deregisters the send buffers of the path.
    pub(super) fn end(&mut self, node: &mut dyn Node) {
        if let Some(buffers) = self.send_buffers.take() {
            buffers.memory.end(node);
        }
    }
}

impl SendBuffers {
    /// Records the length of the message in a buffer.
    pub(super) fn fill(&mut self, number: usize, bytes: usize) {
        self.lengths[number] = bytes;
    }

    /// The range, in the memory of the send buffers, of the message in buffer `number`; and the
    /// message's sequence number.
    pub(super) fn message(&self, number: usize) -> (Range<usize>, u64) {
        let start = number * self.buffer;
        let end = start + self.lengths[number];
        (start..end, self.memory.block.load(end - WORD))
    }

    /// True if no send buffer is free: each holds a message that has not left.
    pub(super) fn is_exhausted(&self) -> bool {
        self.free.is_empty()
    }

    /// Claims a free send buffer. Returns its number, and its offset in the memory of the send
    /// buffers.
    pub(super) fn claim(&mut self) -> Option<(usize, usize)> {
        let number = self.free.pop()?;
        Some((number, number * self.buffer))
    }
}

/// The range of message buffer `number` in this end's memory for the ring from one peer.
pub(super) fn memory_buffer(layout: &Layout, number: usize) -> Range<usize> {
    let buffer = shape(layout).0;
    RING + number * buffer..RING + (number + 1) * buffer
}
