//! The sender of a ring: it builds packets in staging memory and writes them to the same offset in
//! the peer's ring.
//!
//! Packets can be *coalesced*: several short ones in one slot, which leaves in one write.
//!
//! Invariants:
//! - a slot of the staging memory is changed only while no request may read it ([`Outbound`] keeps
//!   account);
//! - packets are posted in the order of their sequence numbers: coalesced packets leave before the
//!   next packet is built.

use std::collections::VecDeque;

use device::{Charges, Effort, Node, Remote, Slice};

use super::immediate::Immediate;
use super::layout::{
    Layout, RING, SUBHEAD, SlotContent, SlotInfo, TAIL, TRAILER, WORD, completion_flag, padded,
    subhead,
};
use super::link::{Link, Wire};
use super::outbound::{ClaimedSlot, Outbound, SlotPlace};
use super::qp_link::{Note, RingWrite};
use super::registered::Registered;
use crate::{Head, Result};

pub(super) const TOO_MANY: &str = "it says that it has consumed packets that were not sent";

/// The sender's end of the ring to one peer. Where the peer has no ring it only numbers the
/// messages.
pub(super) struct RingSender {
    layout: Layout,
    /// True if the data of a packet and its head pointer (the flag) go in two writes: the design
    /// `Basic`.
    basic: bool,
    charges: Charges,
    slots: Outbound,
    coalescing: Option<Coalescing>,
    /// True if coalesced packets have taken the last slot of a size class, and no call has reported
    /// that to the layer above yet.
    lap_untold: bool,
    /// The slots that are to be written again, in the order of their packets.
    replays: VecDeque<(u64, SlotPlace)>,
    head_pointer: Option<HeadPointer>,
    /// The memory in which packets are built. `None`: the peer has no ring for this rank.
    staging: Option<Registered>,
    /// The address of the peer's memory for this rank, known from the peer's hello.
    remote: u64,
}

/// A slot that is being filled with coalesced packets and is not posted.
#[derive(Clone, Copy, Debug)]
struct Coalescing {
    place: SlotPlace,
    /// The length of the packets in the slot so far, in bytes.
    len: usize,
}

/// The head pointer of a packet in the design `Basic`: its flag, which a second write sends after
/// the packet's data.
#[derive(Clone, Copy, Debug)]
struct HeadPointer {
    /// The sequence number of the packet.
    sequence: u64,
    /// The size class of the packet's slot.
    class: usize,
    /// The offset of the head pointer in the ring, in bytes.
    at: usize,
}

/// A slot that has just been posted: its position, and what its caller needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostedSlot {
    /// True if the size class has had as many packets as it has slots since the last lap.
    pub lap: bool,
    /// True if a head pointer (the flag, in the design `Basic`) is due when the data has been
    /// written.
    pub head_pointer_due: bool,
}

impl RingSender {
    pub(super) fn new(layout: Layout, basic: bool, charges: Charges) -> RingSender {
        RingSender {
            layout,
            basic,
            charges,
            slots: Outbound::new(layout),
            coalescing: None,
            lap_untold: false,
            replays: VecDeque::new(),
            head_pointer: None,
            staging: None,
            remote: 0,
        }
    }

    /// Records the address of the peer's memory that this rank writes to.
    pub(super) fn learn_remote(&mut self, address: u64) {
        self.remote = address;
    }

    /// Builds packets in `staging` from now on, for the peer's ring.
    pub(super) fn begin_ring(&mut self, staging: Registered) {
        self.staging = Some(staging);
    }

    #[inline(always)]
    pub(super) fn has_ring(&self) -> bool {
        self.staging.is_some()
    }

    /// The sequence number of the last packet that was posted.
    #[inline(always)]
    pub(super) fn last(&self) -> u64 {
        self.slots.last()
    }

    /// Claims the sequence number of the next packet, which goes as a message.
    pub(super) fn claim_message(&mut self) -> u64 {
        self.slots.claim_message()
    }

    #[inline(always)]
    pub(super) fn find(&self, len: usize) -> Option<SlotPlace> {
        self.slots.find(len)
    }

    #[inline(always)]
    pub(super) fn fits_well(&self, len: usize) -> bool {
        self.slots.fits_well(len)
    }

    /// Takes over the number of packets that the peer has consumed, of which `lower` has the lower
    /// bits. False: no correct peer reports that.
    #[inline(always)]
    pub(super) fn heard_tail(&mut self, lower: u32) -> bool {
        self.slots.heard_tail(lower)
    }

    pub(super) fn heard_completed(&mut self, link: usize, sequence: u64) {
        self.slots.heard_completed(link, sequence);
    }

    /// True if no packet waits to be posted.
    #[inline(always)]
    pub(super) fn is_clear(&self) -> bool {
        self.coalescing.is_none() && self.head_pointer.is_none() && self.replays.is_empty()
    }

    #[inline(always)]
    pub(super) fn is_coalescing(&self) -> bool {
        self.coalescing.is_some()
    }

    /// The length of the coalesced packets in bytes, if there are any.
    pub(super) fn coalesced(&self) -> Option<usize> {
        self.coalescing.map(|coalescing| coalescing.len)
    }

    /// True if the slot of coalesced packets has room for a further body of `len` bytes.
    pub(super) fn coalescing_has_room(&self, len: usize) -> bool {
        self.coalescing.is_some_and(|coalescing| {
            let room = self.layout.classes()[coalescing.place.class].body();
            coalescing.len + SUBHEAD + padded(len) <= room
        })
    }

    /// Fills this free slot with coalesced packets from now on.
    pub(super) fn begin_coalescing(&mut self, place: SlotPlace) {
        debug_assert!(self.is_clear());
        self.coalescing = Some(Coalescing { place, len: 0 });
    }

    /// Adds a packet to the slot of coalesced packets, which has room. True, and only once:
    /// coalesced packets have taken the last slot of a size class.
    pub(super) fn coalesce(
        &mut self,
        node: &mut dyn Node,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let mut coalescing = self
            .coalescing
            .expect("a slot of coalesced packets is open");
        let place = coalescing.place;
        let start = self.layout.classes()[place.class].start(place.slot);
        let at = start + coalescing.len;
        let block = &mut staging(&mut self.staging).block;
        block
            .bytes_mut(at, SUBHEAD)
            .copy_from_slice(&subhead(head, len));
        fill(block.bytes_mut(at + SUBHEAD, len));
        self.charges.charge(node, Effort::Send);
        self.charges.charge(node, Effort::Copy(SUBHEAD + len));
        coalescing.len += SUBHEAD + padded(len);
        self.coalescing = Some(coalescing);
        std::mem::take(&mut self.lap_untold)
    }

    /// Posts the slot of coalesced packets. `tail` is the tail for the peer.
    pub(super) fn write_coalesced(&mut self, wire: Wire, tail: u32) -> Result<PostedSlot> {
        let coalescing = self.coalescing.take();
        let Coalescing { place, len } = coalescing.expect("a slot of coalesced packets is open");
        let class = &self.layout.classes()[place.class];
        let (start, end) = (class.start(place.slot), class.end(place.slot));
        let claimed = self.slots.claim(place, wire.link.index());
        self.lap_untold |= claimed.lap;
        let info = SlotInfo {
            content: SlotContent::Coalesced,
            len: len as u32,
            tail,
            next: claimed.next,
        };
        let flag = flag(claimed.sequence, wire.link);
        self.write_trailer(end, [0; 3], info, flag);
        self.post(wire, start..start + len, end, claimed)
    }

    /// Builds a packet in a free slot and posts it. `tail` is the tail for the peer.
    #[inline(always)]
    pub(super) fn write_packet(
        &mut self,
        wire: Wire,
        tail: u32,
        place: SlotPlace,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<PostedSlot> {
        let claimed = self.slots.claim(place, wire.link.index());
        let end = self.layout.classes()[place.class].end(place.slot);
        let body = end - TRAILER - padded(len);
        fill(staging(&mut self.staging).block.bytes_mut(body, len));
        self.charges.charge(wire.node, Effort::Send);
        if len > 0 {
            self.charges.charge(wire.node, Effort::Copy(len));
        }
        let info = SlotInfo {
            content: SlotContent::Packet,
            len: len as u32,
            tail,
            next: claimed.next,
        };
        let flag = flag(claimed.sequence, wire.link);
        self.write_trailer(end, head, info, flag);
        self.post(wire, body..end - TRAILER, end, claimed)
    }

    /// Writes the trailer of the slot that ends at offset `end`.
    #[inline(always)]
    fn write_trailer(&mut self, end: usize, head: Head, info: SlotInfo, flag: u64) {
        let block = &staging(&mut self.staging).block;
        let words = [head[0], head[1], head[2], info.encode(), flag];
        for (number, word) in words.into_iter().enumerate() {
            block.store(end - TRAILER + number * WORD, word);
        }
    }

    /// Posts the write of a slot: its contents, and the trailer before `end`. In the peer's ring
    /// they are adjacent.
    fn post(
        &mut self,
        wire: Wire,
        content: std::ops::Range<usize>,
        end: usize,
        claimed: ClaimedSlot,
    ) -> Result<PostedSlot> {
        let Wire { node, link } = wire;
        let basic = self.basic;
        let rail = link.rail();
        let trailer = end - TRAILER;
        let len = content.len() + TRAILER;
        let to = link.remote(self.remote + (RING + end - len) as u64);
        let staging = staging(&mut self.staging);
        let slices = match content.end == trailer {
            true => &[staging.slice(rail, content.start..end)][..],
            false => &[
                staging.slice(rail, content),
                staging.slice(rail, trailer..end),
            ],
        };
        let write = RingWrite {
            to,
            immediate: match basic {
                true => None,
                false => immediate(claimed.sequence, claimed.class, link),
            },
            signaled: claimed.signaled || basic,
            note: match basic {
                true => Note::RingData(claimed.sequence - 1),
                false => Note::Ring(claimed.sequence),
            },
            from: slices,
        };
        if basic {
            // The flag, which is the head pointer here, follows in a write of its own.
            let from = [Slice {
                len: (len - WORD) as u32,
                ..write.from[0]
            }];
            link.control.write(
                node,
                &RingWrite {
                    from: &from,
                    ..write
                },
            )?;
            self.head_pointer = Some(HeadPointer {
                sequence: claimed.sequence,
                class: claimed.class,
                at: end - WORD,
            });
        } else {
            link.control.write(node, &write)?;
        }
        Ok(PostedSlot {
            lap: claimed.lap,
            head_pointer_due: basic,
        })
    }

    /// Records that link `link` is fenced, and that the receiver has received every packet up to
    /// `received`. The slots that the link carried and the receiver lacks will be written again.
    /// True: a head pointer was due, which a repeated slot includes.
    pub(super) fn fenced(&mut self, link: usize, received: u64) -> bool {
        let lost = self.slots.fenced(link, received);
        self.replays.extend(lost);
        // Slots that were to be written again on the same link are among the lost ones.
        let mut replays = Vec::from(std::mem::take(&mut self.replays));
        replays.sort_unstable_by_key(|(sequence, _)| *sequence);
        replays.dedup_by_key(|(sequence, _)| *sequence);
        self.replays = replays.into();
        self.head_pointer.take().is_some()
    }

    /// Drops all writes that wait, because the peer is lost. Returns the number of deferred writes.
    pub(super) fn give_up(&mut self) -> usize {
        self.replays.clear();
        usize::from(self.coalescing.take().is_some())
            + usize::from(self.head_pointer.take().is_some())
    }

    /// True if slots wait to be written again over another link.
    #[inline(always)]
    pub(super) fn has_replays(&self) -> bool {
        !self.replays.is_empty()
    }

    /// Writes the next lost slot again: the same bytes, except for the flag, which depends on the
    /// link.
    pub(super) fn replay(&mut self, wire: Wire) -> Result<()> {
        let Some((sequence, place)) = self.replays.pop_front() else {
            return Ok(());
        };
        let class = &self.layout.classes()[place.class];
        let (start, end) = (class.start(place.slot), class.end(place.slot));
        let Wire { node, link } = wire;
        let rail = link.rail();
        let staging = staging(&mut self.staging);
        staging.block.store(end - WORD, flag(sequence, link));
        let info = SlotInfo::decode(staging.block.load(end - 2 * WORD));
        let info = info.expect("a slot that was posted has an info");
        let len = padded(info.len as usize);
        let slices = match info.content {
            SlotContent::Packet => &[staging.slice(rail, end - TRAILER - len..end)][..],
            SlotContent::Coalesced => &[
                staging.slice(rail, start..start + info.len as usize),
                staging.slice(rail, end - TRAILER..end),
            ],
        };
        let bytes: usize = slices.iter().map(|slice| slice.len as usize).sum();
        let write = RingWrite {
            from: slices,
            to: link.remote(self.remote + (RING + end - bytes) as u64),
            immediate: immediate(sequence, place.class, link),
            signaled: true,
            note: Note::Replay(sequence),
        };
        self.charges.charge(node, Effort::Control);
        self.slots.replayed(sequence, place, link.index());
        link.control.write(node, &write)
    }

    /// Records that the repeated write of packet `sequence` has completed.
    pub(super) fn replay_completed(&mut self, sequence: u64) {
        self.slots.replay_completed(sequence);
    }

    /// Posts the head pointer (the flag, in the design `Basic`) of a packet whose data has been
    /// written. False: no head pointer is due.
    pub(super) fn write_head_pointer(&mut self, wire: Wire) -> Result<bool> {
        let Wire { node, link } = wire;
        let Some(HeadPointer {
            sequence,
            class,
            at,
        }) = self.head_pointer.take()
        else {
            return Ok(false);
        };
        self.charges.charge(node, Effort::Control);
        let from = [staging(&mut self.staging).slice(link.rail(), at..at + WORD)];
        let write = RingWrite {
            from: &from,
            to: link.remote(self.remote + (RING + at) as u64),
            immediate: immediate(sequence, class, link),
            signaled: true,
            note: Note::Ring(sequence),
        };
        link.control.write(node, &write)?;
        Ok(true)
    }

    /// The location of the word in the peer's memory that receives this rank's tail.
    pub(super) fn remote_tail(&self, link: &Link) -> Remote {
        link.remote(self.remote + TAIL as u64)
    }

    /// The start of the peer's memory, for probes and other requests without payload.
    pub(super) fn remote_memory(&self, link: &Link) -> Remote {
        link.remote(self.remote)
    }

    /// The memory in which packets are built.
    #[cfg(test)]
    pub(super) fn staging_memory(&self) -> Option<&Registered> {
        self.staging.as_ref()
    }

    /// Deregisters the staging memory.
    pub(super) fn end(self, node: &mut dyn Node) {
        if let Some(staging) = self.staging {
            staging.end(node);
        }
    }
}

/// The flag (last word) of packet `sequence` on this link.
#[inline(always)]
fn flag(sequence: u64, link: &Link) -> u64 {
    match link.peer_is_unordered() {
        true => completion_flag(sequence),
        false => sequence,
    }
}

/// The immediate of the write that completes packet `sequence`, in a slot of size class `class`.
/// `None`: the peer needs none.
#[inline(always)]
fn immediate(sequence: u64, class: usize, link: &Link) -> Option<u32> {
    let lower = sequence as u32;
    let whole = Immediate::Whole { class, lower };
    link.peer_is_unordered().then(|| whole.encode())
}

/// The staging memory of a sender with a ring.
#[inline(always)]
fn staging(staging: &mut Option<Registered>) -> &mut Registered {
    match staging {
        Some(staging) => staging,
        None => unreachable!("a peer without a ring gets messages"),
    }
}
