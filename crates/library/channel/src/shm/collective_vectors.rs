//! The vectors of one collective buffer as one member sees them: where its own ones go, and where
//! those of others lie.

use std::cell::Cell;
use std::sync::Arc;

use datatype::Buffer;

use super::cache_distance::CacheDistance;
use super::collective_area::{MOST_BYTES, Member, Place, Places, Positions, SHORT, exceeds_cache};
use crate::string_moves::StringMoves;

/// The memory in which the members of a group publish vectors.
pub(super) struct Vectors {
    members: Arc<[Member]>,
    /// This rank's number among the members of the buffer.
    me: usize,
    /// The positions at which this rank publishes long vectors.
    positions: Positions,
    /// The places that this rank may write to, if there are two members.
    places: Cell<Places>,
    /// The cache distance of the other members, one of which is measured at a time.
    pub(super) reach: CacheDistance,
    /// The kind of copies that moves long vectors.
    pub(super) moves: StringMoves,
}

impl Vectors {
    pub(super) fn new(members: Arc<[Member]>, me: usize, reach: CacheDistance) -> Vectors {
        Vectors {
            members,
            me,
            positions: Positions::new(),
            places: Cell::new(Places::of(me)),
            reach,
            moves: StringMoves::new(),
        }
    }

    /// The memory for a long vector of `len` bytes that this rank publishes in `round`.
    /// `core_each`: each member has a core.
    #[inline(never)]
    pub(super) fn place(&mut self, round: u64, len: usize, core_each: bool) -> *mut u8 {
        let (is_near, own) = (self.reach.is_near(), &self.members[self.me]);
        if self.members.len() == 2
            && is_near
            && let Some(place) = self.places.get_mut().next()
        {
            // SAFETY: this rank's slot; all members have ended the previous round in it, and none
            // reads it in this round before the flag is set.
            unsafe { own.set_position(round, place.word()) };
            return self.members[place.owner()].at(place);
        }
        let walks = is_near && core_each && exceeds_cache();
        // SAFETY: as above.
        unsafe { own.place(round, len, (&mut self.positions, walks)) }
    }

    /// The memory of the long vector of `len` bytes that a member has published in `round`.
    #[inline(never)]
    fn long(&self, member: usize, round: u64, len: usize) -> *mut u8 {
        assert!(len <= MOST_BYTES);
        // SAFETY: the caller has seen the flag of this round, which the slot keeps until this rank
        // has ended the round.
        let word = unsafe { self.members[member].position(round) };
        let Some(place) = Place::of(word) else {
            return self.members[member].published(word, len);
        };
        if member != self.me {
            let mut places = self.places.get();
            places.read(round, place);
            self.places.set(places);
        }
        self.members[place.owner() % self.members.len()].at(place)
    }
}

/// A vector that a member has published in the current round of this rank.
pub struct Published<'a> {
    pub(super) vectors: &'a Vectors,
    /// The member that published the vector, and its number.
    pub(super) member: &'a Member,
    pub(super) at: usize,
    pub(super) round: u64,
    pub(super) note: u32,
}

impl<'a> Published<'a> {
    /// The note that the member published with its vector.
    #[inline(always)]
    pub fn note(&self) -> u32 {
        self.note
    }

    /// Copies the vector, of `len` bytes, from byte `at` on to `to`. If the member published
    /// another number of bytes, their values are arbitrary.
    #[inline(always)]
    pub fn copy_to(self, to: &Buffer, at: usize, len: usize) {
        let reach = &self.vectors.reach;
        let bytes = &self.bytes(len)[at..];
        if len <= SHORT {
            to.unpack(0, bytes);
        } else {
            let count = to.len().min(bytes.len());
            reach.stores().copy_long_out(to, &bytes[..count]);
        }
    }

    /// The first `len` bytes of the vector. If the member published another number of bytes, their
    /// values are arbitrary.
    #[inline(always)]
    pub fn bytes(self, len: usize) -> &'a [u8] {
        let vector = match len {
            0..=SHORT => self.member.short(self.round),
            _ => self.vectors.long(self.at, self.round, len),
        };
        // SAFETY: within an area. The member has set this round's flag, and the memory is written
        // again only after this rank has ended the round, for which it needs the `Round` that `'a`
        // borrows.
        unsafe { std::slice::from_raw_parts(vector, len) }
    }
}
