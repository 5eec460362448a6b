//! The memory in which bodies lie that are too long for a slot.

use crate::cells::CellSize;

/// Bodies shorter than this lie in the small arena, or in short cells.
pub(super) const SHORT: usize = 2 << 10;
/// Bytes of the small arena, where there is room for a wide one beside it.
const SMALL_ARENA: usize = 256 << 10;
pub(super) const LINE: usize = 64;
/// The smallest part of the wide arena in use, in bytes.
const LEAST_WIDE: usize = 32 << 10;

/// Bits of the fraction of an arena in use.
pub(super) const MOST_UNUSED: u8 = 15;

/// The memory of bodies: the two arenas of a ring, and the cells of its pair of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Small,
    Wide,
    ShortCells,
    LongCells,
}

impl Which {
    /// The size of the cells, if these are cells.
    #[inline(always)]
    pub(super) fn cells(self) -> Option<CellSize> {
        match self {
            Which::Small | Which::Wide => None,
            Which::ShortCells => Some(CellSize::Short),
            Which::LongCells => Some(CellSize::Long),
        }
    }
}

/// Bytes of the memory of bodies, by [`Which`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arenas([usize; 4]);

impl Arenas {
    /// Two arenas of `bytes` bytes together, a multiple of eight lines, without cells.
    pub(crate) fn of(bytes: usize) -> Arenas {
        assert!(bytes.is_multiple_of(8 * LINE) && bytes / LINE < 1 << 16);
        let small = (bytes / 2).min(SMALL_ARENA);
        Arenas([small, bytes - small, 0, 0])
    }

    /// The arenas, and cells beside them.
    pub(crate) fn with_cells(self) -> Arenas {
        let Arenas([small, wide, ..]) = self;
        let [short, long] = [CellSize::Short, CellSize::Long].map(CellSize::bytes);
        Arenas([small, wide, short, long])
    }

    #[inline(always)]
    pub(crate) fn len(&self, which: Which) -> usize {
        self.0[which as usize]
    }

    /// The arena for a body that is too long for a slot, and the cells.
    #[inline(always)]
    pub(super) fn of_body(&self, len: usize) -> (Which, CellSize) {
        if len < SHORT && len <= self.len(Which::Small) / 4 {
            (Which::Small, CellSize::Short)
        } else {
            (Which::Wide, CellSize::Long)
        }
    }

    /// Bytes of the wide arena in use, if it is one half to the power of `unused`.
    pub(super) fn used(&self, unused: u8) -> usize {
        (self.len(Which::Wide) >> unused) / LINE * LINE
    }

    /// The fraction of the wide arena that a sender uses at first.
    pub(super) fn unused_at_first(&self) -> u8 {
        let halves = (0..=MOST_UNUSED).rev();
        let mut fitting = halves.filter(|unused| self.used(*unused) >= LEAST_WIDE);
        fitting.next().unwrap_or(0)
    }

    /// The longest body of one packet.
    pub(crate) fn max_body(&self) -> usize {
        self.len(Which::Wide) / 4
    }
}
