//! Collective buffers: memory in which each member of a group publishes a vector to the others, for
//! small collective operations without packets.
//!
//! In a buffer each rank of the host has an area, at the index of its local rank. The area holds
//! the last round that the rank has ended, and a few slots that successive rounds use cyclically.
//! A slot holds a flag, with the round's number and a note, and a vector; vectors too long for a
//! slot have memory of their own. The group and its first round are agreed elsewhere
//! ([`super::buffer_pool`]).
//!
//! Two members exchange their memory for long vectors after each pass over it, because a core
//! writes fast to lines that it has read itself (see [`crate::cells`]).
//!
//! Invariants:
//! - a member publishes in a slot only once all members have ended the previous round in that slot;
//! - a member reads vectors of the current round only, each only after it has seen the round's
//!   flag;
//! - the numbers of rounds only grow, whatever group uses a buffer.

mod published;

use std::cell::Cell;
use std::sync::Arc;

use datatype::double::{Primitive, spend};
use datatype::{Buffer, Direction};

pub use published::Published;

use crate::doorbell::Doorbell;
use crate::sync::{AtomicU64, Ordering};

/// Number of collective buffers of a host. A buffer takes memory once it is used.
pub const BUFFERS: usize = 64;
// A collective operation that copies directly exposes two users' buffers while it uses a collective
// buffer.
const _: () = assert!(2 * BUFFERS <= super::exposures::FOR_COLLECTIVES as usize);
/// The greatest number of rounds by which a member may be ahead of the slowest.
pub const ROUNDS_AHEAD: u64 = SLOTS as u64;
/// The longest vector that a member can publish, in bytes.
pub const MOST_BYTES: usize = 128 << 10;
/// Number of different notes: a note is less than this.
pub const NOTES: u32 = 1 << 23;

const SLOTS: usize = 4;
/// Number of slots for long vectors in an area. It exceeds `SLOTS`, so that those of a few members
/// exceed a second-level cache: lines in another core's cache are slow to change owners.
const LONG_SLOTS: usize = 8;
/// Longest vector inside the slot itself, in bytes. Longer ones have pages of their own.
const SHORT: usize = 952;
const PAGE: usize = 4096;
/// Bytes of one rank's area in one buffer, including its long vectors.
pub(super) const AREA: usize = PAGE + LONG_SLOTS * MOST_BYTES;
/// Fruitless polls for a vector from one check that its member is still in the round to the next:
/// each check takes the cache line with the member's round number from that member.
const LOOKS: u32 = 16;
/// Bits of a flag below the round's number: the note, and [`SEEN_ALL`].
const NOTE_BITS: u32 = 24;
/// Bit of a flag: the publisher had already seen the vectors of all other members.
const SEEN_ALL: u64 = NOTES as u64;

/// Bytes of the file for the collective buffers of `ranks` ranks.
pub(super) fn file_bytes(ranks: usize) -> usize {
    BUFFERS * ranks * AREA
}

/// The collective buffers that a rank offers to a group. The default offer has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferOffer {
    /// Bit `n` is set if buffer `n` is free.
    pub free: u64,
    /// The first round that this rank has used in no buffer.
    pub first_round: u64,
}

/// The memory of one rank in one buffer, except its long vectors.
#[repr(C, align(128))]
pub(super) struct Area {
    /// The last round that the rank has ended.
    done: AtomicU64,
    /// Keeps `done` two cache lines away from the flags, so that stores to it do not disturb ranks
    /// that poll a flag.
    _apart: [u64; 15],
    slots: [Slot; SLOTS],
}

#[repr(C, align(64))]
struct Slot {
    /// The lowest bits of the round's number above [`NOTE_BITS`] bits: [`SEEN_ALL`] and the note.
    flag: AtomicU64,
    short: [u8; SHORT],
}

const _: () = assert!(
    LONG_SLOTS >= SLOTS
        && size_of::<Area>() <= PAGE
        && size_of::<Slot>() == SHORT + 8
        && AREA.is_multiple_of(PAGE)
);

/// The memory and the doorbell of one member of a group.
pub(super) struct Member {
    /// The member's area: [`AREA`] bytes of shared memory.
    area: *mut Area,
    doorbell: *const Doorbell,
}

// SAFETY: the pointers lead to atomics, and to bytes whose accesses the rounds order.
unsafe impl Send for Member {}
// SAFETY: as for `Send`: a shared member gives access to atomics and raw pointers only.
unsafe impl Sync for Member {}

impl Member {
    /// The member with this area and doorbell.
    ///
    /// # Safety
    /// `area` points to [`AREA`] bytes that were zero at first, that only members of groups use,
    /// and that stay valid, like the doorbell, as long as the member exists.
    pub(super) unsafe fn new(area: *mut u8, doorbell: *const Doorbell) -> Member {
        Member {
            area: area.cast(),
            doorbell,
        }
    }

    #[inline(always)]
    fn slot(&self, round: u64) -> *mut Slot {
        // SAFETY: within the area, by the remainder.
        unsafe {
            (&raw mut (*self.area).slots)
                .cast::<Slot>()
                .add(round as usize % SLOTS)
        }
    }

    #[inline(always)]
    fn flag(&self, round: u64) -> &AtomicU64 {
        // SAFETY: within the area, and an atomic is all that is borrowed.
        unsafe { &(*self.slot(round)).flag }
    }

    /// The memory of the slot of `round` for a short vector.
    #[inline(always)]
    fn short(&self, round: u64) -> *mut u8 {
        // SAFETY: within the area, since the slot is.
        unsafe { (&raw mut (*self.slot(round)).short).cast() }
    }

    /// The memory in this member's area for a long vector of `round`.
    #[inline(always)]
    fn long(&self, round: u64) -> *mut u8 {
        // SAFETY: within the area, by the remainder.
        unsafe {
            self.area
                .cast::<u8>()
                .add(PAGE + round as usize % LONG_SLOTS * MOST_BYTES)
        }
    }

    /// The number of the last round that the member has ended.
    #[inline(always)]
    pub(super) fn done(&self) -> &AtomicU64 {
        // SAFETY: within the area, and an atomic is all that is borrowed.
        unsafe { &(*self.area).done }
    }

    #[inline(always)]
    fn ring(&self) {
        // SAFETY: the doorbell stays as long as the member.
        unsafe { &*self.doorbell }.ring();
    }
}

/// A member's handle of a collective buffer; [`begin`](CollectiveBuffer::begin) gives access.
pub struct CollectiveBuffer {
    members: Arc<[Member]>,
    /// This rank's number among the members.
    me: usize,
    /// The last round that this rank has ended.
    round: u64,
    /// The latest round that all members are known to have ended.
    all_done: u64,
    /// True if this rank has published its vector in the current round.
    published: bool,
    /// From this member number on, all members are known to have published in the current round.
    unseen: usize,
    /// Vectors of this length or longer are written with non-temporal stores.
    non_temporal_from: usize,
    /// True if the members have agreed that each of them has a core.
    pub core_each: bool,
    /// The event that the last unsuccessful step waits for.
    missing: Missing,
    /// Number of fruitless polls for vectors, except polls that found a member gone.
    looks: Cell<u32>,
    /// Keeps the areas and the doorbells mapped.
    _memory: Arc<dyn Send + Sync>,
}

/// An event without which a step of a round cannot succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// The step needs no event.
    Nothing,
    /// The end of this round by this member.
    End(usize, u64),
    /// The publication of this member's vector in the current round.
    Vector(usize),
}

/// The members that the end of a round wakes: those that may sleep until this rank has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Wakes no member.
    Nobody,
    /// Wakes one member.
    Member(usize),
    /// Wakes all other members.
    Everybody,
}

impl CollectiveBuffer {
    /// The handle of member number `me` of `members`, whose next round is `first`. `memory` keeps
    /// the members' areas and doorbells mapped.
    pub(super) fn new(
        members: Arc<[Member]>,
        me: usize,
        first: u64,
        non_temporal_from: usize,
        memory: Arc<dyn Send + Sync>,
    ) -> CollectiveBuffer {
        CollectiveBuffer {
            me,
            round: first - 1,
            all_done: first - 1,
            published: false,
            unseen: members.len(),
            members,
            non_temporal_from,
            core_each: false,
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
    /// one: the vector never comes. `None` may also mean that this was not checked.
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

    /// True if every other member has ended this rank's last round.
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
        self.members[member].done().load(Ordering::Acquire) >= round
    }

    /// Begins the next round, or resumes it if the last token for it was dropped.
    #[inline(always)]
    pub fn begin(&mut self) -> Round<'_> {
        Round { buffer: self }
    }

    /// Gives up the current round after an error. The others are woken: some may wait for its end.
    #[cold]
    pub fn abandon(&mut self) {
        self.begin().end(Wake::Everybody);
    }

    /// Rings the doorbells of the other members.
    #[inline(always)]
    fn ring_others(&self) {
        for (member, peer) in self.members.iter().enumerate() {
            if member != self.me {
                peer.ring();
            }
        }
    }

    /// The memory for a long vector of `len` bytes that a member publishes in `round`.
    #[inline(never)]
    fn long_vector(&self, member: usize, round: u64, len: usize) -> *mut u8 {
        assert!(len <= MOST_BYTES);
        let owner = match self.members.len() {
            2 => (member + round as usize / LONG_SLOTS) % 2,
            _ => member,
        };
        self.members[owner].long(round)
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
        let done = |(at, member): (usize, &Member)| (member.done().load(Ordering::Acquire), at);
        let slowest = self.members.iter().enumerate().map(done).min();
        let (ended, member) = slowest.unwrap_or_default();
        self.all_done = self.all_done.max(ended);
        let has_slot = round <= self.all_done + ROUNDS_AHEAD;
        if !has_slot {
            self.missing = Missing::End(member, round - ROUNDS_AHEAD);
        }
        has_slot
    }
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

    /// Number of members.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.buffer.members.len()
    }

    /// This rank's number among the members.
    #[inline(always)]
    pub fn me(&self) -> usize {
        self.buffer.me
    }

    /// Publishes the first `len` bytes of `vector` with a note, which is less than [`NOTES`], and
    /// wakes the members. Later calls in the same round change nothing and return true. False:
    /// another member may still read the previous vector in this slot.
    #[inline(always)]
    pub fn publish(&mut self, note: u32, vector: &Buffer, len: usize) -> bool {
        let non_temporal = len >= self.buffer.non_temporal_from;
        self.publish_with(note, len, |room| {
            if non_temporal {
                vector.pack_past_cache(0, room);
            } else {
                vector.hand_over(Direction::Forward, 0, room);
            }
        })
    }

    /// [`publish`](Round::publish) of a vector of `len` bytes that `fill` writes.
    #[inline(always)]
    pub fn publish_with(&mut self, note: u32, len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
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
        let buffer = &*self.buffer;
        let own = &buffer.members[buffer.me];
        if len > 0 {
            let room = match len {
                0..=SHORT => own.short(round),
                _ => buffer.long_vector(buffer.me, round, len),
            };
            // SAFETY: within an area, where only this rank writes in this round; all members have
            // ended the previous round there, and none reads in this round before the flag is set.
            fill(unsafe { std::slice::from_raw_parts_mut(room, len) });
        }
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
            buffer: self.buffer,
            at: member,
            member: &self.buffer.members[member],
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
