//! The path of packets to and from peers without rings: each packet is a message.
//!
//! A rank has memory for rings with a bounded number of peers. With all others, and with peers that have none for it,
//! packets go as messages. They leave from send buffers that all these peers share. They come into a pool of buffers, a
//! shared receive queue of several connections, made as connections come. Where this end has memory for a ring but the peer
//! has none, messages come into that memory.
//!
//! Each peer is granted a number of messages ([`Credits`](super::credit::Credits)). Every connection has a receive for one
//! message and one grant-only message, and connections in use share the other receives of their pool.
//!
//! A message is a slot's contents and trailer. What must always hold:
//! - a pool has as many receives as its connections have windows and grant-only messages, and a window grows only by a
//!   receive that no other window holds: no message ever meets a queue without a receive;
//! - a buffer is posted again only after its packet was consumed, and before it is granted again. It is written again only
//!   after its message has completed.

use std::collections::VecDeque;
use std::ops::Range;

use device::{Access, Effort, Node, Operation, Slice};

use super::Rdma;
use super::credit::{EMPTY, MOST};
use super::endpoint::Endpoint;
use super::layout::{Layout, SlotContent, SlotInfo, TRAILER, WORD, padded};
use super::pool::shape;
use super::qp_link::Note;
use super::rail::Rail;
use super::rail_set::RailSet;
use super::registered::{Block, Registered};
use super::{BATCH, RING};
use crate::{Fault, Head, More, Put, Result};

const GRANTS: &str = "it lets us send more messages than any rank lets come";

/// The messages of a rank.
#[derive(Default)]
pub(super) struct SrqPath {
    send_buffers: Option<SendBuffers>,
    /// Messages that have arrived and are not consumed.
    arrived: VecDeque<ArrivedMessage>,
    /// Peers that may be owed a grant-only message.
    owed: Vec<usize>,
    active: bool,
}

/// A message that has arrived.
#[derive(Clone, Copy)]
struct ArrivedMessage {
    from: usize,
    /// The rail over which it came.
    rail: usize,
    place: MessagePlace,
    bytes: usize,
}

/// The place of a message that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessagePlace {
    /// A buffer in the memory for the peer's ring.
    Endpoint(usize),
    /// A buffer of the endpoint's pool.
    Pool(usize),
}

/// The buffers from which messages leave.
struct SendBuffers {
    memory: Registered,
    /// Bytes of a buffer.
    buffer: usize,
    free: Vec<usize>,
}

/// Bytes of the memory for a ring. It is large enough for the messages of one peer.
pub(super) fn room(layout: &Layout) -> usize {
    RING + layout.bytes.max((1 + EMPTY) * shape(layout).0)
}

/// The number of messages that may come into the memory for a ring.
pub(super) fn fit(layout: &Layout) -> usize {
    ((room(layout) - RING) / shape(layout).0 - EMPTY).min(MOST as usize)
}

impl SrqPath {
    /// Completions may report messages.
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// From now on messages may come.
    pub fn activate(&mut self) {
        self.active = true;
    }

    /// A message has arrived.
    pub fn received(&mut self, rail: usize, from: usize, place: MessagePlace, bytes: usize) {
        self.arrived.push_back(ArrivedMessage {
            from,
            rail,
            place,
            bytes,
        });
    }

    /// The message in this send buffer has left.
    pub fn sent(&mut self, number: usize) {
        let buffers = self.send_buffers.as_mut();
        let buffers = buffers.expect("a message leaves from a send buffer");
        buffers.free.push(number);
    }

    /// The send buffers, registered on `rails` when they are first needed.
    fn send_buffers(
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
                }))
            }
        }
    }

    /// Deregisters the send buffers.
    pub fn end(&mut self, node: &mut dyn Node) {
        if let Some(buffers) = self.send_buffers.take() {
            buffers.memory.end(node);
        }
    }
}

impl Rdma {
    /// Sends a packet as a message.
    pub(super) fn send_message(
        &mut self,
        to: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        let in_use = self.rails_in_use();
        let node = &mut *self.node;
        let buffers = self.srq_path.send_buffers(node, in_use, &self.layout)?;
        if buffers.free.is_empty() || !self.endpoints.of(to).may_send_message() {
            self.poll()?;
        }
        let node = &mut *self.node;
        let endpoint = self.endpoints.of(to);
        let buffers = self.srq_path.send_buffers(node, in_use, &self.layout)?;
        if !endpoint.may_send_message() {
            return Ok(Put::Full);
        }
        let Some(number) = buffers.free.pop() else {
            return Ok(Put::Full);
        };
        let start = number * buffers.buffer;
        let end = start + padded(len) + TRAILER;
        fill(buffers.memory.block.bytes_mut(start, len));
        node.charge(Effort::Send);
        if len > 0 {
            node.charge(Effort::Copy(len));
        }
        let sequence = endpoint.sender.claim_message();
        let info = SlotInfo {
            content: SlotContent::Packet,
            len: len as u32,
            tail: endpoint.credits.window.tell(),
        };
        let words = [head[0], head[1], head[2], info.encode(), sequence];
        for (word, at) in words.into_iter().zip((end - TRAILER..end).step_by(WORD)) {
            buffers.memory.block.store(at, word);
        }
        let link = endpoint.link_mut();
        let local: [Slice; 1] = [buffers.memory.slice(link.rail(), start..end)];
        let operation = Operation::Send { immediate: None };
        let inline = link.control.takes_inline(end - start);
        let note = Note::SendBuffer(number);
        link.control
            .post(node, operation, &local, inline, true, note)?;
        Ok(match sequence == endpoint.credits.allowed() {
            true => Put::AcceptedPollNow,
            false => Put::Accepted,
        })
    }

    /// Hands packets that have come as messages to `handler`.
    #[inline(never)]
    pub(super) fn drain_messages(
        &mut self,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        if !self.srq_path.owed.is_empty() {
            self.send_grants()?;
        }
        let mut packets = 0;
        while packets < BATCH
            && let Some(message) = self.srq_path.arrived.pop_front()
        {
            packets += 1;
            if self.handle_message(message, handler)? == More::Enough {
                break;
            }
        }
        Ok(packets)
    }

    /// Hands one packet to `handler`, and posts its buffer again.
    fn handle_message(
        &mut self,
        message: ArrivedMessage,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<More> {
        let Rdma {
            endpoints,
            rails,
            node,
            srq_path,
            layout,
            ..
        } = self;
        let ArrivedMessage {
            from,
            rail,
            place,
            bytes,
        } = message;
        let nonsense = |what| Fault::Broken { peer: from, what };
        let endpoint = endpoints.of(from);
        let (memory, range) = endpoint.message(&rails[rail], layout, place);
        let packet = read(&memory.block, range.start, bytes).map_err(nonsense)?;
        let last = endpoint.sender.last();
        let grant = endpoint.credits.grant(last, packet.grant);
        let grant = grant.ok_or_else(|| nonsense(GRANTS.into()))?;
        let granted = endpoint.credits.window.granted();
        let check = endpoint.receiver.check_message(packet.sequence, granted);
        check.map_err(nonsense)?;
        if packet.len > 0 {
            node.charge(Effort::Copy(packet.len));
        }
        let body = memory.block.bytes(range.start, packet.len);
        let more = handler(from, packet.head, body);
        node.charge(Effort::Receive);
        endpoint.credits.accept(grant);
        endpoint.post_again(&mut **node, &rails[rail], layout, from, place)?;
        let window = &mut endpoint.credits.window;
        if let MessagePlace::Pool(_) = place {
            let pool = rails[rail].pool_mut(endpoint.pool);
            window.resize(pool.resize(window.size()));
        }
        endpoint.receiver.consume_message();
        window.consumed(packet.sequence);
        if window.owes() && !std::mem::replace(&mut window.listed, true) {
            srq_path.owed.push(from);
        }
        self.peer_ready(from)?;
        Ok(more)
    }

    /// Sends grant-only messages to peers that no packet has told of their grants.
    ///
    /// That is done a poll later than the grants are made: an answer may follow, and carry them.
    pub(super) fn send_grants(&mut self) -> Result<()> {
        let Rdma {
            endpoints,
            node,
            srq_path,
            ..
        } = self;
        let mut result = Ok(());
        srq_path.owed.retain(|&to| {
            let endpoint = endpoints.of(to);
            let owes = endpoint.credits.window.owes() && !endpoint.connection.has_said_bye();
            let may_write = endpoint.connection.may_write();
            if owes && !(may_write && endpoint.link().control.has_room()) {
                return true;
            }
            endpoint.credits.window.listed = false;
            if owes && result.is_ok() {
                node.charge(Effort::Control);
                let grant = endpoint.credits.window.tell_alone();
                result = endpoint.link_mut().send_grant(&mut **node, grant);
            }
            false
        });
        result
    }

    /// A peer grants messages by a grant-only message, which used up the receive at `place`.
    pub(super) fn granted(
        &mut self,
        from: usize,
        rail: usize,
        place: MessagePlace,
        lower: u32,
    ) -> Result<()> {
        let endpoint = self.endpoints.of(from);
        let last = endpoint.sender.last();
        let grant = endpoint.credits.grant(last, lower);
        let grant = grant.ok_or_else(|| Fault::Broken {
            peer: from,
            what: GRANTS.into(),
        })?;
        endpoint.credits.accept(grant);
        let rail = &self.rails[rail];
        endpoint.post_again(&mut *self.node, rail, &self.layout, from, place)
    }
}

impl Endpoint {
    /// A message may go to this peer.
    fn may_send_message(&self) -> bool {
        // One place in the queue stays free for a grant-only message, and other peers need buffers too.
        self.sender.last() < self.credits.allowed() && self.link().control.held() < 2 * MOST
    }

    /// Posts receives for the messages of `peer`, which has no memory for rings, in the memory for its ring.
    pub fn adopt_memory(&self, node: &mut dyn Node, layout: &Layout, peer: usize) -> Result<()> {
        for buffer in 0..fit(layout) + EMPTY {
            self.post_in_memory(node, layout, peer, buffer)?;
        }
        Ok(())
    }

    /// Posts a receive into a buffer in the memory for the peer's ring.
    fn post_in_memory(
        &self,
        node: &mut dyn Node,
        layout: &Layout,
        peer: usize,
        buffer: usize,
    ) -> Result<()> {
        let memory = self.receiver.memory();
        let memory = memory.expect("messages come into memory for a ring only where there is some");
        let link = self.link();
        let into = memory.slice(link.rail(), memory_buffer(layout, buffer));
        link.control.post_buffer(node, peer, buffer, into)
    }

    /// The memory of a message that has come over `rail`, and the message's place in it.
    fn message<'a>(
        &'a self,
        rail: &'a Rail,
        layout: &Layout,
        place: MessagePlace,
    ) -> (&'a Registered, Range<usize>) {
        match place {
            MessagePlace::Pool(buffer) => rail.pool(self.pool).buffer(buffer),
            MessagePlace::Endpoint(buffer) => {
                let memory = self.receiver.memory();
                let memory = memory.expect("a message came into memory that is there");
                (memory, memory_buffer(layout, buffer))
            }
        }
    }

    /// Posts the receive of a message again.
    fn post_again(
        &self,
        node: &mut dyn Node,
        rail: &Rail,
        layout: &Layout,
        peer: usize,
        place: MessagePlace,
    ) -> Result<()> {
        match place {
            MessagePlace::Pool(buffer) => rail.pool(self.pool).post(node, buffer),
            MessagePlace::Endpoint(buffer) => self.post_in_memory(node, layout, peer, buffer),
        }
    }
}

/// The place of a buffer in the memory for a ring.
fn memory_buffer(layout: &Layout, number: usize) -> Range<usize> {
    let buffer = shape(layout).0;
    RING + number * buffer..RING + (number + 1) * buffer
}

/// A packet in a message.
struct MessagePacket {
    head: Head,
    len: usize,
    /// The lower half of the number of the last message that the peer grants.
    grant: u32,
    sequence: u64,
}

/// The packet in a message of `bytes` bytes at `start`. An error says why there is none.
fn read(block: &Block, start: usize, bytes: usize) -> std::result::Result<MessagePacket, String> {
    let trailer = bytes
        .checked_sub(TRAILER)
        .filter(|at| at.is_multiple_of(WORD))
        .ok_or_else(|| format!("a message of {bytes} bytes"))?;
    let word = |number: usize| block.load(start + trailer + number * WORD);
    let info = SlotInfo::decode(word(3))
        .filter(|info| info.content == SlotContent::Packet && padded(info.len as usize) == trailer)
        .ok_or_else(|| format!("a packet that says {:#x} of itself", word(3)))?;
    Ok(MessagePacket {
        head: [word(0), word(1), word(2)],
        len: info.len as usize,
        grant: info.tail,
        sequence: word(4),
    })
}
