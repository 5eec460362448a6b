//! The cells of a pair of ranks: memory for bodies whose owner changes with each message.
//!
//! A core writes fast to lines that it has just read: they lie in its own caches. It writes slowly
//! to lines that the other core has read last (64 KiB between near cores: 1.9 µs for the former,
//! 7.7 for the latter). So the body of an answer goes to the memory in which the last body arrived.
//!
//! Each cell belongs to one of the two ranks, the only one that may write to it. A packet whose
//! body lies in a cell hands the cell over to its receiver. Each rank begins with one half of the
//! cells. A rank that sends and does not receive runs out of cells: its bodies go to the arenas of
//! its ring. A rank first uses the cell that it received last, so alternating messages touch few
//! pages.

/// The two sizes of cells, the memory that holds one body each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellSize {
    Short,
    Long,
}

/// Number of cells of each size, those of both ranks together.
const COUNT: usize = 16;
/// The longest body in a short cell, in bytes.
const SHORT: usize = 2 << 10;
/// Distance between the starts of two short cells, in bytes. It has one line more than the body, so
/// that the first lines of all cells do not share one set of a first-level cache.
const SHORT_STRIDE: usize = SHORT + 64;
/// The longest body in a long cell, in bytes: a piece of a long message.
pub(crate) const LONG: usize = 16 << 10;

impl CellSize {
    /// The longest body in a cell of this size, in bytes.
    #[inline(always)]
    pub(crate) const fn longest(self) -> usize {
        match self {
            CellSize::Short => SHORT,
            CellSize::Long => LONG,
        }
    }

    #[inline(always)]
    const fn stride(self) -> usize {
        match self {
            CellSize::Short => SHORT_STRIDE,
            CellSize::Long => LONG,
        }
    }

    /// Bytes of all cells of this size together.
    pub(crate) const fn bytes(self) -> usize {
        COUNT * self.stride()
    }
}

/// The half of a pair's cells that a rank owns at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    First,
    Second,
}

/// The cells that one rank of a pair owns, by size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cells {
    short: Stack,
    long: Stack,
}

impl Cells {
    /// The cells that the rank with this half owns at the start.
    pub(crate) fn of(half: Half) -> Cells {
        let stack = Stack::of(half);
        Cells {
            short: stack,
            long: stack,
        }
    }

    pub(crate) fn has(&self, size: CellSize) -> bool {
        match size {
            CellSize::Short => self.short.count > 0,
            CellSize::Long => self.long.count > 0,
        }
    }

    #[inline(always)]
    fn stack(&mut self, size: CellSize) -> &mut Stack {
        match size {
            CellSize::Short => &mut self.short,
            CellSize::Long => &mut self.long,
        }
    }

    /// Removes the cell for the next body, which the caller hands over with the body, and returns
    /// its offset. `None`: this rank owns no cell of this size.
    #[inline(always)]
    pub(crate) fn take(&mut self, size: CellSize) -> Option<usize> {
        Some(self.stack(size).pop()? * size.stride())
    }

    /// Adds the cell at this offset, which a packet has handed over.
    #[inline(always)]
    pub(crate) fn gain(&mut self, size: CellSize, offset: usize) {
        // Equivalent to a division by the stride, which is hardly longer, but by a power of two.
        self.stack(size).push(offset / size.longest());
    }

    /// Adds the cells that a peer handed over before this rank had a ring to it.
    pub(crate) fn append(&mut self, cells: Cells) {
        self.short.append(cells.short);
        self.long.append(cells.long);
    }
}

/// A stack of indices of cells, four bits each.
#[derive(Clone, Copy, Debug, Default)]
struct Stack {
    cells: u64,
    count: u32,
}

const _: () = assert!(COUNT <= 1 << 4 && 4 * COUNT <= u64::BITS as usize);

impl Stack {
    fn of(half: Half) -> Stack {
        let cells = match half {
            Half::First => 0..COUNT / 2,
            Half::Second => COUNT / 2..COUNT,
        };
        let mut stack = Stack::default();
        cells.rev().for_each(|cell| stack.push(cell));
        stack
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let cell = self.cells as usize % COUNT;
        self.cells >>= 4;
        Some(cell)
    }

    /// Adds a cell. The count is limited, in case a peer hands over more cells than exist.
    #[inline(always)]
    fn push(&mut self, cell: usize) {
        self.cells = self.cells << 4 | (cell % COUNT) as u64;
        self.count = (self.count + 1).min(COUNT as u32);
    }

    fn append(&mut self, other: Stack) {
        for at in (0..other.count).rev() {
            self.push((other.cells >> (4 * at)) as usize % COUNT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [CellSize; 2] = [CellSize::Short, CellSize::Long];

    fn all(mut cells: Cells, size: CellSize) -> Vec<usize> {
        std::iter::from_fn(|| cells.take(size)).collect()
    }

    #[test]
    fn the_halves_are_all_cells_once() {
        for size in SIZES {
            let halves = [Half::First, Half::Second].map(|half| all(Cells::of(half), size));
            let mut cells = halves.concat();
            cells.sort();
            let expected: Vec<_> = (0..COUNT).map(|cell| cell * size.stride()).collect();
            assert_eq!(cells, expected);
            assert!(cells.iter().all(|at| at + size.longest() <= size.bytes()));
        }
    }

    #[test]
    fn the_cell_that_came_last_goes_first() {
        for size in SIZES {
            let mut cells = Cells::of(Half::First);
            let other = all(Cells::of(Half::Second), size)[3];
            cells.gain(size, other);
            assert_eq!(cells.take(size), Some(other));
            assert_eq!(cells.take(size), Some(0));
        }
    }

    #[test]
    fn cells_that_came_before_keep_their_order() {
        let mut early = Cells::default();
        let (mut cells, mut expected) = (Cells::of(Half::First), Cells::of(Half::First));
        for offset in [9, 8].map(|cell| cell * LONG) {
            early.gain(CellSize::Long, offset);
            expected.gain(CellSize::Long, offset);
        }
        cells.append(early);
        for size in SIZES {
            assert_eq!(all(cells, size), all(expected, size));
        }
    }

    #[test]
    fn a_peer_that_gives_too_much_is_no_harm() {
        let mut cells = Cells::of(Half::First);
        for offset in 0..100 * LONG {
            cells.gain(CellSize::Long, offset);
        }
        let given = all(cells, CellSize::Long);
        assert_eq!(given.len(), COUNT);
        assert!(given.iter().all(|at| at + LONG <= CellSize::Long.bytes()));
    }
}
