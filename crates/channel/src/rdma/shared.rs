//! Peers without rings. A rank has memory for rings with so many peers; with all others, and with peers that have none for
//! it, packets go as messages. They leave from buffers that all these peers share, and come into such (a shared receive
//! queue), so memory does not grow with the number of peers; where there is memory for a ring, but the peer has none,
//! messages come into that.
//!
//! A packet is a slot's content and trailer, without a slot. What must always hold: a buffer is given back to its queue
//! only once its packet has been taken, and is written again only once its message has completed. When no buffer is
//! there for a message, the sender's device tries again by itself.

use std::collections::VecDeque;
use std::ops::Range;

use device::{Access, Completion, Effort, Node, Operation, ReceiveQueue, Slice, Srq};

use super::block::{Block, Registered};
use super::layout::{Content, Info, Layout, TRAILER, WORD, padded};
use super::link::Link;
use super::{RING, Rdma};
use crate::{Fault, Head, More, Put, Result};

/// Messages under way to one peer: the others need buffers too.
const EACH: u32 = 8;
/// Marks the numbers of receives, and the notes of sends.
pub(super) const SHARED: u64 = 1 << 62;
/// Marks the numbers of receives into memory for a ring.
const OWN: u64 = 1 << 61;

#[derive(Default)]
pub(super) struct Shared {
    inward: Option<Inward>,
    outward: Option<Outward>,
    /// Messages that have come and have not been taken.
    arrived: VecDeque<Message>,
    active: bool,
}

#[derive(Clone, Copy)]
struct Message {
    from: usize,
    /// Of the buffer that it is in, with the mark of where that is.
    number: u64,
    len: usize,
}

struct Inward {
    srq: Srq,
    memory: Registered,
    buffer: usize,
}

struct Outward {
    memory: Registered,
    buffer: usize,
    free: Vec<usize>,
}

/// Bytes of a buffer, and how many there are for so many bytes of a ring.
fn shape(layout: &Layout) -> (usize, usize) {
    let buffer = (padded(layout.max_body()) + TRAILER).next_multiple_of(64);
    (buffer, (8 * layout.bytes / buffer).clamp(16, 512))
}

/// Buffers in the memory for a ring.
pub(super) fn fit(layout: &Layout) -> usize {
    layout.bytes / shape(layout).0
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
        for number in 0..fit(layout) {
            let place = own_place(layout, number);
            control.post_buffer(node, SHARED | OWN | number as u64, memory.slice(place))?;
        }
        Ok(())
    }

    /// The queue from which a peer without a ring takes its receives.
    pub fn queue(&mut self, node: &mut dyn Node, layout: &Layout) -> Result<Srq> {
        if let Some(inward) = &self.inward {
            return Ok(inward.srq);
        }
        let (buffer, count) = shape(layout);
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        let memory = Registered::new(node.rail(0), buffer * count, access)?;
        let srq = node.rail(0).create_srq(count)?;
        let inward = Inward {
            srq,
            memory,
            buffer,
        };
        for number in 0..count {
            inward.post(node, number)?;
        }
        self.inward = Some(inward);
        self.active = true;
        Ok(srq)
    }

    /// Completions of receives that one queue may have to hold.
    pub fn receives(layout: &Layout) -> usize {
        shape(layout).1
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
        let inward = self.inward.take().map(|inward| inward.memory);
        let outward = self.outward.take().map(|outward| outward.memory);
        for memory in inward.into_iter().chain(outward) {
            memory.end(node.rail(0));
        }
    }
}

impl Inward {
    fn place(&self, number: usize) -> Range<usize> {
        number * self.buffer..(number + 1) * self.buffer
    }

    fn post(&self, node: &mut dyn Node, number: usize) -> Result<()> {
        let into = [self.memory.slice(self.place(number))];
        let queue = ReceiveQueue::Shared(self.srq);
        // SAFETY: the memory stays until the queue pairs are gone, and is looked at only between a completion and the
        // next post.
        unsafe {
            node.rail(0)
                .post_receive(queue, SHARED | number as u64, &into)?
        };
        Ok(())
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
        if nothing_free || self.peer(to).control.held() >= EACH {
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
        let Some(peer) = peers[to].as_mut().filter(|peer| peer.control.held() < EACH) else {
            return Ok(Put::Full);
        };
        let Some(number) = outward.free.pop() else {
            return Ok(Put::Full);
        };
        let start = number * outward.buffer;
        let end = start + padded(len) + TRAILER;
        fill(outward.memory.block.bytes_mut(start, len));
        node.spend(Effort::Send);
        if len > 0 {
            node.spend(Effort::Copy(len));
        }
        peer.out.last += 1;
        let info = Info {
            content: Content::Packet,
            len: len as u32,
            tail: 0,
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
        Ok(match peer.control.held() >= EACH {
            true => Put::TakenLap,
            false => Put::Taken,
        })
    }

    /// Takes packets of peers without a ring.
    #[inline(never)]
    pub(super) fn drain_shared(
        &mut self,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
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
            let number = (message.number & !OWN) as usize;
            let is_own = message.number & OWN != 0;
            let (memory, place) = match (is_own, &peer.memory, &shared.inward) {
                (true, Some(memory), _) => (memory, own_place(layout, number)),
                (false, _, Some(inward)) => (&inward.memory, inward.place(number)),
                _ => break,
            };
            let nonsense = |what| Fault::Broken { peer: from, what };
            let packet = read(&memory.block, place.start, message.len).map_err(nonsense)?;
            peer.inbound
                .take_message(packet.sequence)
                .map_err(nonsense)?;
            packets += 1;
            if packet.len > 0 {
                node.spend(Effort::Copy(packet.len));
            }
            let body = memory.block.bytes(place.start, packet.len);
            let more = handler(from, packet.head, body);
            node.spend(Effort::Receive);
            match (is_own, &shared.inward) {
                (false, Some(inward)) => inward.post(&mut **node, number)?,
                _ => {
                    let (id, into) = (SHARED | message.number, memory.slice(place));
                    peer.control.post_buffer(&mut **node, id, into)?;
                }
            }
            self.now_ready(from)?;
            if more == More::Enough {
                break;
            }
        }
        Ok(packets)
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
        sequence: word(4),
    })
}
