//! Collective buffers: memory in which each member of a group publishes a vector to the others, for
//! small collective operations without packets.
//!
//! In a buffer each rank of the host has an area, at the index of its local rank, and is the only
//! writer of it. The area holds the last round that the rank has ended, and a few slots that
//! successive rounds use cyclically. A slot holds a flag, which contains the round's number and a
//! note, and a vector; vectors too long for a slot have memory of their own
//! ([`super::collective_vectors`]). The group and its first round are agreed elsewhere
//! ([`super::buffer_pool`]).
//!
//! Invariants:
//! - a member publishes in a slot only once all members have ended the previous round in that slot;
//! - a member reads vectors of the current round only, each only after it has seen the round's
//!   flag;
//! - the numbers of rounds only grow, whatever group uses a buffer.

use std::cell::Cell;
use std::sync::Arc;

use datatype::Buffer;
use datatype::double::{Primitive, spend};

use super::cache_distance::{ASKED, CacheDistance};
pub use super::collective_area::MOST_BYTES;
use super::collective_area::{AREA, Member, SHORT, SLOTS};
pub use super::collective_vectors::Published;
use super::collective_vectors::Vectors;
use crate::BodyStores;
use crate::sync::Ordering;

/// Number of collective buffers of a host. A buffer takes memory once it is used.
pub const BUFFERS: usize = 64;
// A collective operation that copies directly exposes two users' buffers while it uses a collective
// buffer.
const _: () = assert!(2 * BUFFERS <= super::exposures::FOR_COLLECTIVES as usize);
/// The greatest number of rounds by which a member may be ahead of the slowest.
pub const ROUNDS_AHEAD: u64 = SLOTS as u64;
/// Number of different notes: a note is less than this.
pub const NOTES: u32 = 1 << 23;

/// Fruitless polls for a vector from one check that its member is still in the round to the next:
/// each check takes the cache line with the member's round number from that member.
const LOOKS: u32 = 16;
/// Bits of a flag below the round's number: the note, and [`SEEN_ALL`].
const NOTE_BITS: u32 = 24;
/// Bit of a flag: the publisher had already seen the vectors of all other members.
const SEEN_ALL: u64 = NOTES as u64;

/// The length of the file that contains the collective buffers of `ranks` ranks.
pub(super) fn file_bytes(ranks: usize) -> usize {
    BUFFERS * ranks * AREA
}

/// The collective buffers that a rank offers to a group. The default offer has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferOffer {
    /// Bit `n` is set if buffer `n` is free.
    pub free: u64,
    /// The first round that this rank has not used in any buffer.
    pub first_round: u64,
}

/// A member's handle of a collective buffer; [`begin`](CollectiveBuffer::begin) gives access.
pub struct CollectiveBuffer {
    members: Arc<[Member]>,
    /// This rank's number among the members of the buffer.
    me: usize,
    /// The last round of the buffer that this rank has ended.
    round: u64,
    /// The latest round that all members are known to have ended.
    all_done: u64,
    /// True if this rank has published its vector in the current round.
    published: bool,
    /// From this member number on, all members are known to have published in the current round.
    unseen: usize,
    /// True if the members have agreed that each of them has a core.
    pub core_each: bool,
    /// The memory in which the members publish their vectors.
    vectors: Vectors,
    /// The latest end of a round that this rank has read in another member's area.
    latest_end: Cell<u64>,
    /// The event for which the last unsuccessful step waits.
    missing: Missing,
    /// Number of fruitless polls for vectors, except polls that found a member gone.
    looks: Cell<u32>,
    /// The owner of the mapping of the areas and doorbells.
    _memory: Arc<dyn Send + Sync>,
}

/// The event without which the present step of a round cannot succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// The step waits for no event.
    Nothing,
    /// The step waits for the end of this round by this member.
    End(usize, u64),
    /// The publication of this member's vector in the current round.
    Vector(usize),
}

/// The members that the end of a round wakes: those that may sleep until this rank has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The step wakes no member.
    Nobody,
    /// The step wakes this member.
    Member(usize),
    /// The step wakes all other members.
    Everybody,
}

impl CollectiveBuffer {
    /// The handle of member number `me` of `members`, whose next round is `first`. `memory` keeps
    /// the members' areas and doorbells mapped.
    pub(super) fn new(
        members: Arc<[Member]>,
        me: usize,
        first: u64,
        reach: CacheDistance,
        memory: Arc<dyn Send + Sync>,
    ) -> CollectiveBuffer {
        CollectiveBuffer {
            me,
            round: first - 1,
            all_done: first - 1,
            published: false,
            unseen: members.len(),
            core_each: false,
            vectors: Vectors::new(members.clone(), me, reach),
            members,
            latest_end: Cell::new(first - 1),
            missing: Missing::Nothing,
            looks: Cell::new(0),
            _memory: memory,
        }
    }

    /// True if the event that the last unsuccessful step waits for has happened, so that the step
    /// can be repeated.
    pub fn may_go_on(&self) -> bool {
        spend(Primitive::Poll);
        match self.missing {
            Missing::Nothing => true,
            Missing::End(member, round) => self.has_ended(member, round),
            Missing::Vector(member) => self.has_published(member) || self.is_gone(member),
        }
    }

    /// The member whose vector the last unsuccessful step needs, if it has ended the round without
    /// one: the vector will not arrive. `None` may also mean that this was not checked.
    pub fn gone(&self) -> Option<usize> {
        match self.missing {
            Missing::Vector(member) => self.is_gone(member).then_some(member),
            _ => None,
        }
    }

    /// True if the member has published in the current round.
    fn has_published(&self, member: usize) -> bool {
        let flag = self.members[member].flag(self.round + 1);
        flag.load(Ordering::Acquire) >> NOTE_BITS == (self.round + 1) << NOTE_BITS >> NOTE_BITS
    }

    /// True if the member has ended the round without publishing. Each [`LOOKS`]-th call checks.
    #[cold]
    fn is_gone(&self, member: usize) -> bool {
        let looks = self.looks.get().wrapping_add(1);
        let is_gone = looks.is_multiple_of(LOOKS)
            && self.has_ended(member, self.round + 1)
            && !self.has_published(member);
        if !is_gone {
            // If the member is gone the count stays, so that the next call checks again.
            self.looks.set(looks);
        }
        is_gone
    }

    /// True if every other member has ended the last round of this rank.
    pub fn is_over(&mut self) -> bool {
        let last = self.round;
        if last <= self.all_done {
            return true;
        }
        for member in 0..self.members.len() {
            if member != self.me && !self.has_ended(member, last) {
                self.missing = Missing::End(member, last);
                return false;
            }
        }
        self.all_done = last;
        true
    }

    fn has_ended(&self, member: usize, round: u64) -> bool {
        last_end(&self.members[member], &self.latest_end) >= round
    }

    /// Begins the next round, or resumes it if the last token for it was dropped.
    #[inline(always)]
    pub fn begin(&mut self) -> Round<'_> {
        Round { buffer: self }
    }

    /// Ends the current round without a result after an error. The others are woken: some may wait
    /// for its end.
    #[cold]
    pub fn abandon(&mut self) {
        self.begin().end(Wake::Everybody);
    }

    /// Counts a long vector, and every few of them measures the cache distance to one of the other
    /// members. All are taken for near only if several of them were.
    fn measure(&mut self) {
        let others = self.members.len().saturating_sub(1).max(1);
        let member = (self.me + 1 + self.round as usize % others) % self.members.len();
        let known = self.latest_end.get();
        let (members, latest) = (&self.members, &self.latest_end);
        // A line with a later end than any known was written after the last read of it.
        self.vectors
            .reach
            .check(|| last_end(&members[member], latest) > known);
    }

    /// Rings the doorbells of all other members.
    #[inline(always)]
    fn ring_others(&self) {
        for (member, peer) in self.members.iter().enumerate() {
            if member != self.me {
                peer.ring();
            }
        }
    }

    /// True if every other member is known to have published in the current round, and therefore to
    /// have ended the rounds before.
    #[inline(always)]
    fn has_seen_all(&self) -> bool {
        self.unseen <= usize::from(self.me == 0)
    }

    /// True if all members have ended the previous round in the slot of round `round`.
    #[cold]
    fn has_slot(&mut self, round: u64) -> bool {
        let end = |member: usize| match member == self.me {
            true => self.round,
            false => last_end(&self.members[member], &self.latest_end),
        };
        let slowest = (0..self.members.len()).map(|at| (end(at), at)).min();
        let (ended, member) = slowest.unwrap_or_default();
        self.all_done = self.all_done.max(ended);
        let has_slot = round <= self.all_done + ROUNDS_AHEAD;
        if !has_slot {
            self.missing = Missing::End(member, round - ROUNDS_AHEAD);
        }
        has_slot
    }
}

/// Reads the last round that another member has ended. `latest`: the latest of all that were read.
#[inline]
fn last_end(member: &Member, latest: &Cell<u64>) -> u64 {
    let ended = member.done().load(Ordering::Acquire);
    latest.set(latest.get().max(ended));
    ended
}

/// Access to a member's current round. If a step must wait for another member, the caller drops
/// this value and repeats the step later with a new one.
pub struct Round<'a> {
    buffer: &'a mut CollectiveBuffer,
}

impl Round<'_> {
    #[inline(always)]
    fn number(&self) -> u64 {
        self.buffer.round + 1
    }

    /// The number of members of the buffer.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.buffer.members.len()
    }

    /// This rank's number among the members of the buffer.
    #[inline(always)]
    pub fn me(&self) -> usize {
        self.buffer.me
    }

    /// Publishes the first `len` bytes of `vector` with a note, which is less than [`NOTES`], and
    /// wakes the members. Later calls in the same round change nothing and return true. False:
    /// another member may still read the previous vector in this slot.
    #[inline(always)]
    pub fn publish(&mut self, note: u32, vector: &Buffer, len: usize) -> bool {
        self.publish_with(
            note,
            len,
            #[inline(always)]
            |stores, room| stores.fill(vector, 0, room),
        )
    }

    /// Publishes a vector of `len` bytes that consists of these buffers; otherwise like
    /// [`publish`](Round::publish).
    #[inline(always)]
    pub fn publish_in_order(
        &mut self,
        note: u32,
        buffers: impl Iterator<Item = Buffer>,
        len: usize,
    ) -> bool {
        self.publish_with(
            note,
            len,
            #[inline(always)]
            |stores, room| {
                let mut rest = room;
                for buffer in buffers {
                    let (place, after) = rest.split_at_mut(buffer.len().min(rest.len()));
                    stores.fill(&buffer, 0, place);
                    rest = after;
                }
            },
        )
    }

    /// [`publish`](Round::publish) of a vector of `len` bytes that `fill` writes.
    #[inline(always)]
    fn publish_with(
        &mut self,
        note: u32,
        len: usize,
        fill: impl FnOnce(BodyStores, &mut [u8]),
    ) -> bool {
        if self.buffer.published {
            return true;
        }
        let round = self.number();
        if round > self.buffer.all_done + ROUNDS_AHEAD && !self.buffer.has_slot(round) {
            return false;
        }
        assert!(note < NOTES);
        let seen_all = u64::from(self.buffer.has_seen_all()) * SEEN_ALL;
        self.buffer.published = true;
        let buffer = &mut *self.buffer;
        if len > SHORT {
            if len >= ASKED {
                buffer.measure();
            }
            let room = buffer.vectors.place(round, len, buffer.core_each);
            // SAFETY: nobody reads there: both members of a pair have done so before a place is
            // free, and other memory is used again only after all rounds in a slot.
            let room = unsafe { std::slice::from_raw_parts_mut(room, len) };
            let Vectors { reach, moves, .. } = &mut buffer.vectors;
            let stores = reach.stores().long(moves.next(len));
            let begun = stores.begin();
            fill(stores, room);
            if let Some(begun) = begun {
                moves.compared(len, crate::now().saturating_sub(begun));
            }
        } else if len > 0 {
            let room = buffer.members[buffer.me].short(round);
            // SAFETY: within the slot, which this rank may write, as above.
            let room = unsafe { std::slice::from_raw_parts_mut(room, len) };
            fill(BodyStores::FORWARD, room);
        }
        let own = &buffer.members[buffer.me];
        spend(Primitive::Send);
        let flag = round << NOTE_BITS | seen_all | u64::from(note);
        own.flag(round).store(flag, Ordering::Release);
        buffer.ring_others();
        true
    }

    /// The vector of a member. `None`: the member has not published in this round yet.
    #[inline(always)]
    pub fn published(&mut self, member: usize) -> Option<Published<'_>> {
        let note = self.see(member)?;
        Some(self.seen(member, note))
    }

    /// The vectors of two members. `None`: not both have published in this round yet.
    #[inline(always)]
    pub fn both_published(&mut self, members: [usize; 2]) -> Option<[Published<'_>; 2]> {
        let [first, second] = members;
        let notes = [self.see(first)?, self.see(second)?];
        Some([self.seen(first, notes[0]), self.seen(second, notes[1])])
    }

    /// The note of a member. `None`: the member has not published in this round yet.
    #[inline(always)]
    fn see(&mut self, member: usize) -> Option<u32> {
        let round = self.number();
        let flag = self.buffer.members[member]
            .flag(round)
            .load(Ordering::Acquire);
        if flag >> NOTE_BITS != round << NOTE_BITS >> NOTE_BITS {
            self.buffer.missing = Missing::Vector(member);
            return None;
        }
        spend(Primitive::Line);
        if flag & SEEN_ALL != 0 {
            self.buffer.unseen = 0;
        } else if member + 1 == self.buffer.unseen {
            self.buffer.unseen = member;
        }
        Some(flag as u32 & (NOTES - 1))
    }

    /// The vector that a member has published in this round, with its `note`.
    #[inline(always)]
    fn seen(&self, member: usize, note: u32) -> Published<'_> {
        Published {
            vectors: &self.buffer.vectors,
            member: &self.buffer.members[member],
            at: member,
            round: self.number(),
            note,
        }
    }

    /// Ends the round for this rank, and wakes the members `wake`, which may sleep until then.
    #[inline(always)]
    pub fn end(self, wake: Wake) {
        let round = self.number();
        let buffer = self.buffer;
        buffer.round = round;
        let own = &buffer.members[buffer.me];
        own.done().store(round, Ordering::Release);
        if buffer.has_seen_all() {
            buffer.all_done = round - 1;
        }
        buffer.published = false;
        buffer.unseen = buffer.members.len();
        match wake {
            Wake::Nobody => {}
            Wake::Member(member) => buffer.members[member].ring(),
            Wake::Everybody => buffer.ring_others(),
        }
    }
}

#[cfg(test)]
#[path = "collective_buffer_tests.rs"]
mod tests;
