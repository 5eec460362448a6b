//! Sending packets: into a slot of the staging memory, and from there into the same slot of the peer's ring.

use device::{Effort, Remote, Slice};

use super::layout::{Content, Info, TRAILER, WORD, padded};
use super::outbound::{Place, TAIL_BITS, Taken};
use super::qp_link::{DEPTH, Write};
use super::registered::{Block, Registered};
use super::{Design, OWN, Peer, RING, Rdma, TAIL};
use crate::{Fault, Head, Put, Result};

/// Immediates, where completions tell of writes: a packet, or a tail in the other bits. A tail in memory would not do
/// there, for the bytes of two that follow each other could be mixed.
pub(super) const PACKET: u32 = 0;
pub(super) const TAILS: u32 = !TAIL_BITS;

/// Marks the completion after which a basic packet's head pointer is written.
pub(super) const DATA: u64 = 1 << 63;

pub(super) const TOO_MANY: &str = "it says that it has taken packets that were not sent";

impl Rdma {
    #[inline(always)]
    pub(super) fn put_packet(
        &mut self,
        to: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        if !self.peers[to].as_ref().is_some_and(|peer| peer.ready) {
            self.connect(to)?;
            return Ok(Put::Full);
        }
        if !self.peer(to).by_rings() {
            return self.send_packet(to, head, len, fill);
        }
        if self.config.gathers() && self.should_gather(to, len)? {
            return Ok(self.gather(to, head, len, fill));
        }
        if !self.is_clear(to)? {
            return Ok(Put::Full);
        }
        let Some(place) = self.find(to, len)? else {
            return Ok(Put::Full);
        };
        let Rdma {
            peers,
            node,
            layout,
            ..
        } = self;
        let Some(peer) = &mut peers[to] else {
            return Ok(Put::Full);
        };
        let taken = peer.out.take(place);
        let end = layout.lanes()[place.lane].end(place.slot);
        let body = end - TRAILER - padded(len);
        fill(peer.staging().block.bytes_mut(body, len));
        node.charge(Effort::Send);
        if len > 0 {
            node.charge(Effort::Copy(len));
        }
        peer.finish_slot(end, head, Content::Packet, len, taken);
        self.post(to, body..end - TRAILER, end, taken)?;
        if self.attention.receives_due > 0 {
            self.post_due()?;
        }
        Ok(if taken.lap {
            Put::AcceptedPollNow
        } else {
            Put::Accepted
        })
    }

    /// Nothing that was put before stands in the way.
    #[inline(always)]
    fn is_clear(&mut self, to: usize) -> Result<bool> {
        let out = &self.peer(to).out;
        if out.gathering.is_none() && out.head_due.is_none() {
            return Ok(true);
        }
        self.poll()?;
        if self.peer(to).out.gathering.is_some() {
            self.close_gathering(to)?;
        }
        let out = &self.peer(to).out;
        Ok(out.gathering.is_none() && out.head_due.is_none())
    }

    /// A slot for a body of this length, and room for its write.
    #[inline(always)]
    pub(super) fn find(&mut self, to: usize, len: usize) -> Result<Option<Place>> {
        // One place in the queue stays free for the tail.
        let peer = self.peer(to);
        match peer
            .out
            .find(len)
            .filter(|_| peer.control.held() + 1 < DEPTH)
        {
            Some(place) => Ok(Some(place)),
            None => self.find_again(to, len),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_again(&mut self, to: usize, len: usize) -> Result<Option<Place>> {
        self.poll()?;
        self.hear_tail(to)?;
        let peer = self.peer(to);
        Ok(peer
            .out
            .find(len)
            .filter(|_| peer.control.held() + 1 < DEPTH))
    }

    /// Posts the write of a slot: what is in it, and the trailer before `end`. In the peer's ring they touch.
    pub(super) fn post(
        &mut self,
        to: usize,
        content: std::ops::Range<usize>,
        end: usize,
        taken: Taken,
    ) -> Result<()> {
        let basic = self.config.design == Design::Basic;
        let by_completion = self.by_completion;
        let Rdma {
            peers,
            node,
            attention,
            ..
        } = self;
        let Some(peer) = &mut peers[to] else {
            return Ok(());
        };
        let staging = peer.staging();
        let trailer = end - TRAILER;
        let len = content.len() + TRAILER;
        let slices = match content.end == trailer {
            true => &[staging.slice(content.start..end)][..],
            false => &[staging.slice(content), staging.slice(trailer..end)],
        };
        let write = Write {
            to: peer.far(RING + end - len),
            immediate: (by_completion && !basic).then_some(PACKET),
            signaled: taken.signaled || basic,
            // The data of a basic packet is not the whole of it.
            note: match basic {
                true => (taken.sequence - 1) | DATA,
                false => taken.sequence,
            },
            from: slices,
        };
        if basic {
            let from = [Slice {
                len: (len - WORD) as u32,
                ..write.from[0]
            }];
            peer.control.write(
                &mut **node,
                &Write {
                    from: &from,
                    ..write
                },
            )?;
            peer.out.head_due = Some((taken.sequence, end - WORD));
            attention.deferred += 1;
        } else {
            peer.control.write(&mut **node, &write)?;
        }
        Ok(())
    }

    /// The data of a basic packet has been written: now its head pointer.
    pub(super) fn write_head(&mut self, to: usize) -> Result<()> {
        let by_completion = self.by_completion;
        let Rdma {
            peers,
            node,
            attention,
            ..
        } = self;
        let Some(peer) = &mut peers[to] else {
            return Ok(());
        };
        if let Some((sequence, at)) = peer.out.head_due.take() {
            attention.deferred -= 1;
            node.charge(Effort::Control);
            let from = [peer.staging().slice(at..at + WORD)];
            let write = Write {
                from: &from,
                to: peer.far(RING + at),
                immediate: by_completion.then_some(PACKET),
                signaled: true,
                note: sequence,
            };
            peer.control.write(&mut **node, &write)?;
        }
        Ok(())
    }

    /// Tells a peer how many of its packets have been taken, unless there is no room for it now.
    pub(super) fn send_tail(&mut self, to: usize, signaled: bool) -> Result<()> {
        let by_completion = self.by_completion;
        let Rdma { peers, node, .. } = self;
        let Some(peer) = &mut peers[to] else {
            return Ok(());
        };
        if !peer.ready || peer.said_bye || !peer.control.has_room() {
            return Ok(());
        }
        let Some(own) = peer
            .memory
            .as_ref()
            .map(|memory| memory.slice(OWN..OWN + WORD))
        else {
            return Ok(());
        };
        node.charge(Effort::Control);
        let tail = peer.inbound.tell();
        peer.block().store(OWN, tail);
        let write = Write {
            from: &[own],
            to: peer.far(TAIL),
            immediate: by_completion.then_some(TAILS | tail as u32),
            signaled,
            note: peer.out.last,
        };
        peer.control.write(&mut **node, &write)
    }

    /// Looks at what the peer has written of its tail.
    pub(super) fn hear_tail(&mut self, of: usize) -> Result<()> {
        if self.by_completion {
            return Ok(());
        }
        let lower = self.peer(of).block().load(TAIL) as u32;
        self.heard_tail(of, lower)
    }

    pub(super) fn heard_tail(&mut self, of: usize, lower: u32) -> Result<()> {
        match self.peer(of).out.heard_tail(lower) {
            true => Ok(()),
            false => Err(Fault::Broken {
                peer: of,
                what: TOO_MANY.into(),
            }
            .into()),
        }
    }
}

impl Peer {
    /// Packets go both ways by rings.
    #[inline(always)]
    pub(super) fn by_rings(&self) -> bool {
        self.staging.is_some()
    }

    /// What the peer writes to.
    #[inline(always)]
    pub(super) fn block(&self) -> &Block {
        match &self.memory {
            Some(memory) => &memory.block,
            None => unreachable!("a peer without rings writes nowhere"),
        }
    }

    /// Where packets for the peer's ring are built.
    #[inline(always)]
    pub(super) fn staging(&mut self) -> &mut Registered {
        match &mut self.staging {
            Some(staging) => staging,
            None => unreachable!("a peer without rings gets messages"),
        }
    }

    /// A place in the peer's memory.
    #[inline(always)]
    fn far(&self, offset: usize) -> Remote {
        let Some(remote) = self.remote else {
            unreachable!("nothing is written before the connection stands")
        };
        Remote {
            address: remote.address + offset as u64,
            rkey: remote.rkey,
        }
    }

    /// Writes the trailer of a slot that ends at `end`.
    #[inline(always)]
    pub(super) fn finish_slot(
        &mut self,
        end: usize,
        head: Head,
        content: Content,
        len: usize,
        taken: Taken,
    ) {
        let tail = self.inbound.tell() as u32;
        let info = Info {
            content,
            len: len as u32,
            tail,
        };
        let words = [head[0], head[1], head[2], info.encode(), taken.sequence];
        for (number, word) in words.into_iter().enumerate() {
            self.staging()
                .block
                .store(end - TRAILER + number * WORD, word);
        }
    }
}
