//! Vectors that members have published in the current round.

use super::{CollectiveBuffer, Member, SHORT};

/// A vector that a member has published in the current round of this rank.
pub struct Published<'a> {
    pub(super) buffer: &'a CollectiveBuffer,
    /// The member, and its number.
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

    /// The first `len` bytes of the vector. If the member published another number of bytes, their
    /// values are arbitrary.
    #[inline(always)]
    pub fn bytes(self, len: usize) -> &'a [u8] {
        let vector = match len {
            0..=SHORT => self.member.short(self.round),
            _ => self.buffer.long_vector(self.at, self.round, len),
        };
        // SAFETY: within an area. The member has set this round's flag, and the memory is written
        // again only after this rank has ended the round, for which it needs the `Round` that `'a`
        // borrows.
        unsafe { std::slice::from_raw_parts(vector, len) }
    }
}
