//! A slot of a ring, and the memory that holds a ring.

use super::bodies::{Arenas, MOST_UNUSED, Which};
use crate::Head;
use crate::cells::Cells;
use crate::sync::{AtomicU32, AtomicU64};

/// Longest body inside the slot itself, in bytes.
pub(crate) const INLINE: usize = 32;
/// The contents of a slot of a ring, except its flag.
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
    /// Number of lines of the arena that are allocated after this body; 0 in a cell.
    pub(super) lines: u16,
    /// The number of packets of the other direction that the sender of the packet had consumed.
    pub(super) taken: u32,
    /// The part of the wide arena that the sender uses is its length divided by 2 to the power of
    /// this.
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
        // Element by element, so that the head need not be in memory before.
        let [first, second, third] = head;
        self.head = [first, second, third];
        fill(&mut self.inline[..inline]);
    }
}

/// The memory of a ring: shared memory, or that of loom's tests.
pub(crate) trait Memory {
    type Slot: Slot;
    /// The number of slots of the ring, a power of two.
    fn slots(&self) -> u32;
    fn arenas(&self) -> Arenas;
    /// The cells that the sender of the ring owns at the start.
    fn first_cells(&self) -> Cells;
    fn tail(&self) -> &AtomicU64;
    /// The slot of the packet that follows the first `packets` packets.
    fn slot(&self, packets: u32) -> &Self::Slot;
    /// The time of a monotonic clock, in nanoseconds.
    fn now() -> u64;
    /// Measures a copy within the caches of this core, in picoseconds per byte.
    fn own_copy() -> u64;
    /// Gives access to `len` bytes of an arena or of the cells. The ring's protocol orders
    /// accesses.
    fn arena<R>(
        &self,
        which: Which,
        offset: usize,
        len: usize,
        access: impl FnOnce(&mut [u8]) -> R,
    ) -> R;
    /// Gives access to a packet's body of `len` bytes: at the offset `at` in an arena or among the
    /// cells, or in its slot. The ring's protocol orders accesses.
    fn body<R>(
        &self,
        slot: &Self::Slot,
        at: Option<(Which, usize)>,
        len: usize,
        access: impl FnOnce(&[u8]) -> R,
    ) -> R;
}

/// One slot of a shared-memory ring.
pub(crate) trait Slot {
    fn flag(&self) -> &AtomicU32;
    /// Writes the contents of a packet with a body of `len` bytes; `fill` writes the first `inline`
    /// bytes of the slot's body. The ring's protocol orders accesses.
    fn write(&self, head: Head, len: usize, inline: usize, fill: impl FnOnce(&mut [u8]));
    /// Gives access to the contents. The ring's protocol orders accesses.
    fn contents<R>(&self, access: impl FnOnce(&mut Contents) -> R) -> R;
    /// Hints to the processor that this slot will be written soon.
    fn will_be_written(&self) {}
}

/// Numbers of packets, and of lines of each arena, that a receiver has consumed.
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

/// The clock of tests: it advances by the same time at each reading.
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

    /// Sets the time that the write of a body takes from now on, in this thread.
    #[cfg(not(loom))]
    pub(crate) fn set(nanoseconds: u64) {
        LOOK.set(nanoseconds);
    }
}
