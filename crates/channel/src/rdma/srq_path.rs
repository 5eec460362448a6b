//! Peers without rings. A rank has memory for rings with so many peers; with all others, and with peers that have none for
//! it, packets go as messages. They leave from buffers that all these peers share, and come into such: pools of them,
//! each a shared receive queue for so many connections, made as connections come. Where there is memory for a ring, but
//! the peer has none, messages come into that.
//!
//! How many messages may come from a peer is granted to it (`credit`). Every connection has a receive for one message and
//! one for an empty one, and those that are in use share the rest of their pool.
//!
//! A packet is a slot's content and trailer, without a slot. What must always hold:
//! - a pool has as many receives as its connections have windows and empty messages, and a window grows only by a receive
//!   that nobody else was promised: no message ever meets a queue without one;
//! - a buffer is given back to its queue only once its packet has been taken, and before that is granted again; it is
//!   written again only once its message has completed.

use std::collections::VecDeque;
use std::ops::Range;

use device::{Access, Completion, Effort, Node, Operation, Slice, Srq};

use super::credit::{self, EMPTY, MOST};
use super::layout::{Content, Info, Layout, TRAILER, WORD, padded};
use super::pool::{Pool, shape};
use super::qp_link::Link;
use super::registered::{Block, Registered};
use super::{Peer, RING, Rdma};
use crate::{Fault, Head, More, Put, Result};

/// Marks the numbers of receives, and the notes of sends.
pub(super) const SHARED: u64 = 1 << 62;
/// Marks the numbers of receives into memory for a ring.
const OWN: u64 = 1 << 61;
/// The note of empty messages: nothing waits for them.
const GRANT: u64 = 0;

const GRANTS: &str = "it lets us send more messages than any rank lets come";

#[derive(Default)]
pub(super) struct Shared {
    pools: Vec<Pool>,
    outward: Option<Outward>,
    /// Messages that have come and have not been taken.
    arrived: VecDeque<Message>,
    /// Peers that may have to be told of their grants by empty messages.
    owed: Vec<usize>,
    active: bool,
}

#[derive(Clone, Copy)]
struct Message {
    from: usize,
    /// Of the buffer that it is in, with the mark of where that is.
    number: u64,
    len: usize,
}

struct Outward {
    memory: Registered,
    buffer: usize,
    free: Vec<usize>,
}

/// Bytes of the memory for a ring. If need be, messages fit into it.
pub(super) fn room(layout: &Layout) -> usize {
    RING + layout.bytes.max((1 + EMPTY) * shape(layout).0)
}

/// Messages that may come into the memory for a ring.
pub(super) fn fit(layout: &Layout) -> usize {
    ((room(layout) - RING) / shape(layout).0 - EMPTY).min(MOST as usize)
}

impl Shared {
    /// May a completion tell of a packet here?
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Lets messages of a peer that has no memory for rings come into the memory for its ring.
    pub fn adopt(
        &mut self,
        node: &mut dyn Node,
        layout: &Layout,
        control: &Link,
        memory: &Registered,
    ) -> Result<()> {
        self.active = true;
        for number in 0..fit(layout) + EMPTY {
            let place = own_place(layout, number);
            control.post_buffer(node, SHARED | OWN | number as u64, memory.slice(place))?;
        }
        Ok(())
    }

    /// A connection without memory for rings: the pool from which its messages take their receives, the queue of that, and
    /// how many messages may come at once to begin with.
    pub fn admit(&mut self, node: &mut dyn Node, layout: &Layout) -> Result<(usize, Srq, u32)> {
        if self.pools.last().is_none_or(|pool| pool.room() == 0) {
            self.pools.push(Pool::new(node, layout)?);
            self.active = true;
        }
        let number = self.pools.len() - 1;
        let pool = &mut self.pools[number];
        let size = pool.admit();
        Ok((number, pool.srq, size))
    }

    /// A message has come.
    pub fn received(&mut self, from: usize, completion: &Completion) {
        self.arrived.push_back(Message {
            from,
            number: completion.id & !SHARED,
            len: completion.bytes as usize,
        });
    }

    /// The message that left from this buffer is complete.
    pub fn sent(&mut self, number: u64) {
        if let Some(outward) = &mut self.outward {
            outward.free.push((number & !SHARED) as usize);
        }
    }

    fn outward(&mut self, node: &mut dyn Node, layout: &Layout) -> Result<&mut Outward> {
        match &mut self.outward {
            Some(outward) => Ok(outward),
            none => {
                let (buffer, count) = shape(layout);
                let memory = Registered::new(node.rail(0), buffer * count, Access::default())?;
                let free = (0..count).collect();
                Ok(none.insert(Outward {
                    memory,
                    buffer,
                    free,
                }))
            }
        }
    }

    /// Takes the devices' access back.
    pub fn end(&mut self, node: &mut dyn Node) {
        let pools = self.pools.drain(..).map(|pool| pool.memory);
        let outward = self.outward.take().map(|outward| outward.memory);
        for memory in pools.chain(outward) {
            memory.end(node.rail(0));
        }
    }
}

impl Rdma {
    /// Sends a packet to a peer that keeps no ring for this rank.
    pub(super) fn send_packet(
        &mut self,
        to: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        let Rdma {
            node,
            layout,
            shared,
            ..
        } = self;
        let nothing_free = shared.outward(&mut **node, layout)?.free.is_empty();
        if nothing_free || !self.peer(to).may_send() {
            self.poll()?;
        }
        let Rdma {
            peers,
            node,
            layout,
            shared,
            ..
        } = self;
        let outward = shared.outward(&mut **node, layout)?;
        let Some(peer) = peers[to].as_mut().filter(|peer| peer.may_send()) else {
            return Ok(Put::Full);
        };
        let Some(number) = outward.free.pop() else {
            return Ok(Put::Full);
        };
        let start = number * outward.buffer;
        let end = start + padded(len) + TRAILER;
        fill(outward.memory.block.bytes_mut(start, len));
        node.charge(Effort::Send);
        if len > 0 {
            node.charge(Effort::Copy(len));
        }
        peer.out.last += 1;
        let info = Info {
            content: Content::Packet,
            len: len as u32,
            tail: peer.window.tell(),
        };
        let words = [head[0], head[1], head[2], info.encode(), peer.out.last];
        for (word, at) in words.into_iter().zip((end - TRAILER..end).step_by(WORD)) {
            outward.memory.block.store(at, word);
        }
        let local: [Slice; 1] = [outward.memory.slice(start..end)];
        let operation = Operation::Send { immediate: None };
        let inline = peer.control.takes_inline(end - start);
        let note = SHARED | number as u64;
        peer.control
            .post(&mut **node, operation, &local, inline, true, note)?;
        Ok(match peer.out.last == peer.allowed {
            true => Put::AcceptedPollNow,
            false => Put::Accepted,
        })
    }

    /// Takes packets of peers without a ring.
    #[inline(never)]
    pub(super) fn drain_shared(
        &mut self,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        if !self.shared.owed.is_empty() {
            self.tell_grants()?;
        }
        let mut packets = 0;
        while packets < super::BATCH {
            let Rdma {
                peers,
                node,
                shared,
                layout,
                ..
            } = self;
            let Some(message) = shared.arrived.pop_front() else {
                break;
            };
            let from = message.from;
            let Some(peer) = &mut peers[from] else { break };
            let Some((memory, place)) = peer.buffer(&shared.pools, layout, message.number) else {
                break;
            };
            let nonsense = |what| Fault::Broken { peer: from, what };
            let packet = read(&memory.block, place.start, message.len).map_err(nonsense)?;
            let allowed = credit::heard(peer.allowed, peer.out.last, packet.tail);
            let allowed = allowed.ok_or_else(|| nonsense(GRANTS.into()))?;
            let granted = peer.window.granted();
            peer.inbound
                .check_message(packet.sequence, granted)
                .map_err(nonsense)?;
            packets += 1;
            if packet.len > 0 {
                node.charge(Effort::Copy(packet.len));
            }
            let body = memory.block.bytes(place.start, packet.len);
            let more = handler(from, packet.head, body);
            node.charge(Effort::Receive);
            peer.allowed = allowed;
            peer.post_again(&mut **node, &shared.pools, layout, message.number)?;
            if message.number & OWN == 0 {
                peer.window.size = shared.pools[peer.pool].resize(peer.window.size);
            }
            peer.inbound.take_message();
            peer.window.taken(packet.sequence);
            if peer.window.owes() && !std::mem::replace(&mut peer.window.listed, true) {
                shared.owed.push(from);
            }
            self.now_ready(from)?;
            if more == More::Enough {
                break;
            }
        }
        Ok(packets)
    }

    /// Tells peers what they may send, by empty messages, where no packet has told them since their messages were taken.
    /// This comes a look later than that, for an answer may be on its way.
    pub(super) fn tell_grants(&mut self) -> Result<()> {
        let Rdma {
            peers,
            node,
            shared,
            ..
        } = self;
        let mut failed = Ok(());
        shared.owed.retain(|&to| {
            let Some(peer) = &mut peers[to] else {
                return false;
            };
            let owes = peer.window.owes() && !peer.said_bye;
            if owes && !(peer.ready && peer.control.has_room()) {
                return true;
            }
            peer.window.listed = false;
            if owes && failed.is_ok() {
                node.charge(Effort::Control);
                let immediate = Some(peer.window.tell_alone());
                let operation = Operation::Send { immediate };
                let link = &mut peer.control;
                failed = link.post(&mut **node, operation, &[], false, true, GRANT);
            }
            false
        });
        failed
    }

    /// A peer says by an empty message what we may send.
    pub(super) fn granted(&mut self, from: usize, granted: u32, id: u64) -> Result<()> {
        let Rdma {
            peers,
            node,
            shared,
            layout,
            ..
        } = self;
        let Some(peer) = &mut peers[from] else {
            return Ok(());
        };
        peer.allowed =
            credit::heard(peer.allowed, peer.out.last, granted).ok_or_else(|| Fault::Broken {
                peer: from,
                what: GRANTS.into(),
            })?;
        peer.post_again(&mut **node, &shared.pools, layout, id & !SHARED)
    }
}

impl Peer {
    /// May a message go to this peer?
    fn may_send(&self) -> bool {
        // One place in the queue stays free for an empty message, and others need buffers too.
        self.out.last < self.allowed && self.control.held() < 2 * MOST
    }

    /// Where a message of this peer's is, by its number.
    fn buffer<'a>(
        &'a self,
        pools: &'a [Pool],
        layout: &Layout,
        number: u64,
    ) -> Option<(&'a Registered, Range<usize>)> {
        let at = (number & !OWN) as usize;
        match number & OWN != 0 {
            true => Some((self.memory.as_ref()?, own_place(layout, at))),
            false => {
                let pool = pools.get(self.pool)?;
                Some((&pool.memory, pool.place(at)))
            }
        }
    }

    /// Gives a buffer back to its queue.
    fn post_again(
        &self,
        node: &mut dyn Node,
        pools: &[Pool],
        layout: &Layout,
        number: u64,
    ) -> Result<()> {
        match (number & OWN != 0, self.buffer(pools, layout, number)) {
            (true, Some((memory, place))) => {
                self.control
                    .post_buffer(node, SHARED | number, memory.slice(place))
            }
            (false, Some(_)) => pools[self.pool].post(node, number as usize),
            (_, None) => Ok(()),
        }
    }
}

/// Where the buffers in the memory for a ring are.
fn own_place(layout: &Layout, number: usize) -> Range<usize> {
    let buffer = shape(layout).0;
    RING + number * buffer..RING + (number + 1) * buffer
}

struct Packet {
    head: Head,
    len: usize,
    /// What the peer grants.
    tail: u32,
    sequence: u64,
}

/// The packet in a buffer.
fn read(block: &Block, start: usize, bytes: usize) -> std::result::Result<Packet, String> {
    let trailer = bytes
        .checked_sub(TRAILER)
        .filter(|at| at.is_multiple_of(WORD))
        .ok_or_else(|| format!("a message of {bytes} bytes"))?;
    let word = |number: usize| block.load(start + trailer + number * WORD);
    let info = Info::decode(word(3))
        .filter(|info| info.content == Content::Packet && padded(info.len as usize) == trailer)
        .ok_or_else(|| format!("a packet that says {:#x} of itself", word(3)))?;
    Ok(Packet {
        head: [word(0), word(1), word(2)],
        len: info.len as usize,
        tail: info.tail,
        sequence: word(4),
    })
}
