//! One round of a collective buffer, as one member takes it.

use channel::shm::Shm;
use datatype::Buffer;

use crate::algorithms::Collective;
use crate::collective_buffers::{ROUNDS_AHEAD, ReadyBuffer};
use crate::{Class, Error, Result};

/// The next round of a member. It is polled: a step that must wait for another member says so, and
/// is tried again.
pub(super) struct Round<'a> {
    pub(super) buffer: &'a mut ReadyBuffer,
    pub(super) shm: &'a Shm,
    /// This rank among the members.
    pub(super) me: usize,
    pub(super) collective: Collective,
    /// Bytes of the vector.
    pub(super) len: usize,
    /// Vectors of this length or longer are written past the cache.
    pub(super) past_cache: usize,
}

impl Round<'_> {
    #[inline(always)]
    fn number(&self) -> u64 {
        self.buffer.round + 1
    }

    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.buffer.mapped.places.len()
    }

    #[inline(always)]
    fn place(&self, member: usize) -> usize {
        self.buffer
            .mapped
            .places
            .world(member)
            .expect("members are numbered up to the size")
    }

    /// What a member publishes with its vector, so that others recognize another call.
    #[inline(always)]
    fn note(&self) -> u32 {
        (self.collective as u32) << 16 | self.len as u32
    }

    /// Publishes the vector and wakes the members that sleep until they see it. False: a member may
    /// still read the slot's last vector.
    #[inline(always)]
    pub(super) fn publish(&mut self, vector: &Buffer) -> bool {
        if self.number() > self.buffer.all_done + ROUNDS_AHEAD && !self.has_slot() {
            return false;
        }
        let mapped = &self.buffer.mapped;
        mapped.memory.post(
            mapped.me,
            self.number(),
            self.note(),
            self.len,
            |room| match self.len {
                0 => {}
                len if len < self.past_cache => _ = vector.pack(0, room),
                _ => _ = vector.pack_past_cache(0, room),
            },
        );
        for member in (0..self.size()).filter(|&member| member != self.me) {
            self.shm.ring(self.place(member));
        }
        true
    }

    #[cold]
    fn has_slot(&mut self) -> bool {
        let mapped = &self.buffer.mapped;
        let places = mapped.places.iter();
        let done = places.map(|place| mapped.memory.done(place)).min();
        self.buffer.all_done = self.buffer.all_done.max(done.unwrap_or_default());
        self.number() <= self.buffer.all_done + ROUNDS_AHEAD
    }

    /// Has a member published its vector? An error if it made another call.
    #[inline(always)]
    pub(super) fn has_published(&self, member: usize) -> Result<bool> {
        let memory = &self.buffer.mapped.memory;
        match memory.posted(self.place(member), self.number()) {
            None => Ok(false),
            Some(note) if note == self.note() => Ok(true),
            Some(note) => Err(self.mismatch(member, note)),
        }
    }

    #[cold]
    fn mismatch(&self, member: usize, note: u32) -> Error {
        let theirs = Collective::ALL
            .get(note as usize >> 16)
            .map_or("something else", |of| of.name());
        let detail = format!(
            "rank {member} of the communicator called {theirs} with {} bytes where this rank called {} with {}: all \
             ranks must call the same collective with counts and datatypes that fit together",
            note & 0xffff,
            self.collective.name(),
            self.len
        );
        Error::new(Class::TRUNCATE, detail)
    }

    /// Calls `then` with the vector of a member that has published it.
    #[inline(always)]
    pub(super) fn read<R>(&self, member: usize, then: impl FnOnce(&[u8]) -> R) -> R {
        let memory = &self.buffer.mapped.memory;
        memory.read(self.place(member), self.number(), self.len, then)
    }

    /// Ends the round for this rank. `all`: every member has begun it, and so ended those before.
    #[inline(always)]
    pub(super) fn end(&mut self, all: bool) {
        let round = self.number();
        self.buffer.round = round;
        let mapped = &self.buffer.mapped;
        mapped.memory.set_done(mapped.me, round);
        if all {
            self.buffer.all_done = round - 1;
        }
    }

    /// Wakes a member that may sleep until this rank has ended the round.
    #[inline(always)]
    pub(super) fn wake(&self, member: usize) {
        self.shm.ring(self.place(member));
    }
}
