//! The sizes of the memories for bodies that are too long for a slot of a ring: two arenas, and
//! cells.

use crate::cells::CellSize;

/// Bodies shorter than this, in bytes, lie in the small arena or in short cells.
pub(super) const SHORT: usize = 2 << 10;
/// Greatest size of the small arena, in bytes; in a small ring it is half of both arenas.
const SMALL_ARENA: usize = 256 << 10;
pub(super) const LINE: usize = 64;
/// Least used part of the wide arena, in bytes, if the arena is as large as that.
const LEAST_WIDE: usize = 32 << 10;

/// The greatest exponent `unused` (see [`used`](Arenas::used)), and the mask of its bits.
pub(super) const MOST_UNUSED: u8 = 15;

/// The memories for bodies: the two arenas of a ring, and the cells of its pair of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Small,
    Wide,
    ShortCells,
    LongCells,
}

impl Which {
    /// The size of the cells for bodies; `None`: the bodies are in arenas.
    #[inline(always)]
    pub(super) fn cells(self) -> Option<CellSize> {
        match self {
            Which::Small | Which::Wide => None,
            Which::ShortCells => Some(CellSize::Short),
            Which::LongCells => Some(CellSize::Long),
        }
    }
}

/// The sizes in bytes of the memories for bodies, indexed by [`Which`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arenas([usize; 4]);

impl Arenas {
    /// The sizes of two arenas of `bytes` bytes together, a multiple of eight cache lines, without
    /// cells.
    pub(crate) fn of(bytes: usize) -> Arenas {
        assert!(bytes.is_multiple_of(8 * LINE) && bytes / LINE < 1 << 16);
        let small = (bytes / 2).min(SMALL_ARENA);
        Arenas([small, bytes - small, 0, 0])
    }

    /// These arenas, with cells in addition.
    pub(crate) fn with_cells(self) -> Arenas {
        let Arenas([small, wide, ..]) = self;
        let [short, long] = [CellSize::Short, CellSize::Long].map(CellSize::bytes);
        Arenas([small, wide, short, long])
    }

    #[inline(always)]
    pub(crate) fn len(&self, which: Which) -> usize {
        self.0[which as usize]
    }

    /// The arena and the size of cell for a body of `len` bytes, which is too long for a slot.
    #[inline(always)]
    pub(super) fn of_body(&self, len: usize) -> (Which, CellSize) {
        if len < SHORT && len <= self.len(Which::Small) / 4 {
            (Which::Small, CellSize::Short)
        } else {
            (Which::Wide, CellSize::Long)
        }
    }

    /// Bytes of the wide arena in use if the arena's size is divided by 2 to the power of `unused`.
    pub(super) fn used(&self, unused: u8) -> usize {
        (self.len(Which::Wide) >> unused) / LINE * LINE
    }

    /// The exponent `unused` (see [`used`](Arenas::used)) with which a sender begins.
    pub(super) fn unused_at_first(&self) -> u8 {
        let halves = (0..=MOST_UNUSED).rev();
        let mut fitting = halves.filter(|unused| self.used(*unused) >= LEAST_WIDE);
        fitting.next().unwrap_or(0)
    }

    /// The longest body that one packet can have, in bytes.
    pub(crate) fn max_body(&self) -> usize {
        self.len(Which::Wide) / 4
    }
}
