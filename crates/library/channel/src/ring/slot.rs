//! A slot of a ring, and the memory in which a ring lies.

use super::bodies::{Arenas, MOST_UNUSED, Which};
use crate::Head;
use crate::cells::Cells;
use crate::sync::{AtomicU32, AtomicU64};

/// Bodies up to this many bytes travel in the slot itself.
pub(crate) const INLINE: usize = 32;
/// The contents of a slot beside its flag.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
// Four-byte alignment, so that flag and contents fill a line exactly.
pub(crate) struct Contents {
    pub(crate) len: u32,
    pub(crate) head: Head,
    pub(crate) inline: [u8; INLINE],
}

/// The reference in a slot to a body in an arena or a cell.
#[derive(Clone, Copy)]
pub(super) struct Elsewhere {
    pub(super) which: Which,
    /// Offset of the body in its arena, or among the cells of its size, in bytes.
    pub(super) offset: u32,
    /// Lines of the arena that are allocated once this body is; 0 in a cell.
    pub(super) lines: u16,
    /// Number of packets of the other direction that the sender had taken.
    pub(super) taken: u32,
    /// The sender uses this fraction of the arena: one half to the power of `unused`.
    pub(super) unused: u8,
}

impl Elsewhere {
    pub(super) const LEN: usize = 12;

    #[inline(always)]
    pub(super) fn write(self, inline: &mut [u8]) {
        inline[..4].copy_from_slice(&self.offset.to_ne_bytes());
        inline[4..8].copy_from_slice(&self.taken.to_ne_bytes());
        let lines =
            u32::from(self.lines) | (self.which as u32) << 16 | u32::from(self.unused) << 24;
        inline[8..Self::LEN].copy_from_slice(&lines.to_ne_bytes());
    }

    #[inline(always)]
    pub(super) fn read(inline: &[u8; INLINE]) -> Elsewhere {
        let word = |at: usize| {
            u32::from_ne_bytes([inline[at], inline[at + 1], inline[at + 2], inline[at + 3]])
        };
        Elsewhere {
            which: match word(8) >> 16 & 3 {
                0 => Which::Small,
                1 => Which::Wide,
                2 => Which::ShortCells,
                _ => Which::LongCells,
            },
            offset: word(0),
            taken: word(4),
            lines: word(8) as u16,
            unused: (word(8) >> 24) as u8 & MOST_UNUSED,
        }
    }
}

impl Contents {
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        head: Head,
        len: usize,
        inline: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        self.len = len as u32;
        // Word by word, so that the words need not stand in memory before.
        let [first, second, third] = head;
        self.head = [first, second, third];
        fill(&mut self.inline[..inline]);
    }
}

/// The memory of a ring: shared memory, or loom's.
pub(crate) trait Memory {
    type Slot: Slot;
    /// Number of slots, a power of two.
    fn slots(&self) -> u32;
    fn arenas(&self) -> Arenas;
    /// The cells that the sender owns at first.
    fn first_cells(&self) -> Cells;
    fn tail(&self) -> &AtomicU64;
    /// The slot of the packet after the first `packets`.
    fn slot(&self, packets: u32) -> &Self::Slot;
    /// A clock, in nanoseconds.
    fn now() -> u64;
    /// Measures a copy within the caches of this core, in picoseconds a byte.
    fn own_copy() -> u64;
    /// Gives access to `len` bytes of an arena or of the cells. The protocol of the ring decides
    /// who may use them.
    fn arena<R>(
        &self,
        which: Which,
        offset: usize,
        len: usize,
        access: impl FnOnce(&mut [u8]) -> R,
    ) -> R;
    /// Gives access to a packet's body of `len` bytes, at `at` in an arena or a cell, or in its
    /// slot. The protocol of the ring decides who may use it.
    fn body<R>(
        &self,
        slot: &Self::Slot,
        at: Option<(Which, usize)>,
        len: usize,
        access: impl FnOnce(&[u8]) -> R,
    ) -> R;
}

/// One slot.
pub(crate) trait Slot {
    fn flag(&self) -> &AtomicU32;
    /// Writes the contents, with the first `inline` bytes of the slot's body. The protocol of the
    /// ring says when.
    fn write(&self, head: Head, len: usize, inline: usize, fill: impl FnOnce(&mut [u8]));
    /// Gives access to the contents. The protocol of the ring says when.
    fn contents<R>(&self, access: impl FnOnce(&mut Contents) -> R) -> R;
    /// A hint that this slot will be written next.
    fn will_be_written(&self) {}
}

/// The packets, and the lines of the arenas, that a receiver has consumed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) packets: u32,
    pub(super) lines: [u16; 2],
}

impl Tail {
    pub(super) fn pack(self) -> u64 {
        let [small, wide] = self.lines;
        u64::from(wide) << 48 | u64::from(small) << 32 | u64::from(self.packets)
    }

    pub(super) fn unpack(word: u64) -> Tail {
        Tail {
            packets: word as u32,
            lines: [(word >> 32) as u16, (word >> 48) as u16],
        }
    }
}

/// The clock of tests: each reading takes the same time.
#[cfg(test)]
pub(crate) mod test_clock {
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
        static LOOK: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn now() -> u64 {
        NOW.set(NOW.get() + LOOK.get());
        NOW.get()
    }

    /// From now on, a body is written in `nanoseconds`, in this thread.
    #[cfg(not(loom))]
    pub(crate) fn set(nanoseconds: u64) {
        LOOK.set(nanoseconds);
    }
}
