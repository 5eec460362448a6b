//! Vectors that members have published in the current round.

use datatype::Buffer;

use super::CollectiveBuffer;
use crate::shm::collective_area::SHORT;

/// A vector that a member has published in the current round of this rank.
pub struct Published<'a> {
    pub(super) buffer: &'a CollectiveBuffer,
    pub(super) member: usize,
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
        let reach = &self.buffer.reach;
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
            0..=SHORT => self.buffer.members[self.member].short(self.round),
            _ => self.buffer.long_vector(self.member, self.round, len),
        };
        // SAFETY: within an area. The member has set this round's flag, and the memory is written
        // again only after this rank has ended the round, for which it needs the `Round` that `'a`
        // borrows.
        unsafe { std::slice::from_raw_parts(vector, len) }
    }
}
