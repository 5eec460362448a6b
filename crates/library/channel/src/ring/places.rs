//! The memory for the bodies of a sender's packets: the arenas of its ring, and the cells that it
//! owns.

use super::bodies::{Arenas, LINE, Which};
use super::slot::{Memory, Tail};
use crate::arena_growth::{Growth, Step};
use crate::cells::{CellSize, Cells};

/// The allocation state of an arena. Space is allocated in order, in lines, never across the end.
#[derive(Clone, Copy, Default)]
pub(super) struct Arena {
    /// Number of lines allocated since the ring was opened, including skipped ones. It wraps.
    pub(super) lines: u16,
    /// The offset of the next free line in the arena, in bytes.
    pub(super) offset: usize,
}

impl Arena {
    /// The offset for a body of `len` bytes, and the state after its allocation. `arena_len`: the
    /// bytes of the arena in use.
    #[inline(always)]
    fn place(self, len: usize, arena_len: usize) -> (usize, Arena) {
        let len = len.next_multiple_of(LINE);
        let (offset, skipped) = if self.offset + len > arena_len {
            (0, arena_len - self.offset)
        } else {
            (self.offset, 0)
        };
        let lines = self.lines.wrapping_add(((skipped + len) / LINE) as u16);
        let end = Arena {
            lines,
            offset: offset + len,
        };
        (offset, end)
    }
}

/// The location of a body that is to be written: which memory, and its offset.
pub(super) struct Place {
    pub(super) which: Which,
    pub(super) offset: usize,
    /// Number of lines of the arena that are allocated after this body; 0 in a cell.
    pub(super) lines: u16,
    /// The time at which the writing begins if it is to be timed, otherwise 0.
    pub(super) begun: u64,
}

/// The memory in which one sender places bodies.
pub(super) struct Places {
    pub(super) handed_out: [Arena; 2],
    /// The cells of the pair that this sender owns.
    pub(super) cells: Cells,
    /// Bytes of long bodies that went to cells since the last long body that did not.
    in_cells: usize,
    pub(super) arenas: Arenas,
    /// Number of bytes of each arena that are in use.
    pub(super) used: [usize; 2],
    /// The used part of the wide arena is its length divided by 2 to the power of this.
    pub(super) unused: u8,
    growth: Growth,
    /// The time of a copy within the caches of this core, in picoseconds per byte; 0: not yet
    /// known.
    pub(super) own_copy: u64,
}

impl Places {
    pub(super) fn new(arenas: Arenas, cells: Cells) -> Places {
        let unused = arenas.unused_at_first();
        Places {
            handed_out: Default::default(),
            cells,
            in_cells: 0,
            arenas,
            used: [arenas.len(Which::Small), arenas.used(unused)],
            unused,
            growth: Growth::default(),
            own_copy: 0,
        }
    }

    /// The location of a body of `len` bytes in the cell at `offset`.
    #[inline(always)]
    pub(super) fn in_cell(&mut self, size: CellSize, offset: usize, len: usize) -> Place {
        let which = match size {
            CellSize::Short => Which::ShortCells,
            CellSize::Long => {
                self.in_cells = self.in_cells.saturating_add(len);
                Which::LongCells
            }
        };
        Place {
            which,
            offset,
            lines: 0,
            begun: 0,
        }
    }

    /// Continues at the start of an arena of which nothing is in use.
    #[inline(always)]
    pub(super) fn start_again(&mut self, which: Which) {
        self.handed_out[which as usize].offset = 0;
    }

    /// True if a body of `len` bytes in an arena fits behind the last one.
    #[inline(always)]
    pub(super) fn continues(&mut self, which: Which, len: usize) -> bool {
        assert!(len <= self.arenas.len(which) / 4, "a body of {len} bytes");
        if which == Which::Wide {
            self.in_cells = 0;
        }
        self.handed_out[which as usize].offset + len <= self.used[which as usize]
    }

    /// Records that the first body of a lap has been written; its writing began at time `begun`.
    #[cold]
    #[inline(never)]
    pub(super) fn first_of_lap_written<M: Memory>(&mut self, len: usize, begun: u64) {
        let took = M::now().saturating_sub(begun);
        if self.own_copy == 0 {
            self.own_copy = M::own_copy().max(1);
        }
        let copy = len as u64 * self.own_copy / 1000;
        self.growth
            .written(self.used[Which::Wide as usize], len, took, copy);
    }

    /// True if long bodies move as fast as the ring permits: there are cells for them, or the wide
    /// arena does not grow any more.
    pub(super) fn is_settled(&self) -> bool {
        let used = self.used[Which::Wide as usize];
        let unused = self.arenas.len(Which::Wide) - used;
        self.in_cells >= 2 * CellSize::Long.bytes() || self.growth.is_settled(used, unused)
    }

    /// True if a body of `len` bytes would go to a cell.
    pub(super) fn has_cell(&self, len: usize) -> bool {
        let (_, size) = self.arenas.of_body(len);
        len <= size.longest() && self.cells.has(size)
    }

    /// The offset for a body of `len` bytes in an arena, and the arena's state after its
    /// allocation.
    #[inline(always)]
    pub(super) fn next(&self, which: Which, len: usize) -> (usize, Arena) {
        self.handed_out[which as usize].place(len, self.used[which as usize])
    }

    /// Ends a lap of the wide arena: the next body, of `len` bytes, does not fit into its rest.
    /// `in_flight` packets are not known to be consumed. Returns the time at which the writing
    /// begins if that is to be timed, otherwise 0.
    #[inline(always)]
    pub(super) fn end_lap<M: Memory>(&mut self, len: usize, in_flight: u32) -> u64 {
        let used = self.used[Which::Wide as usize];
        let unused = self.arenas.len(Which::Wide) - used;
        match self.growth.end_lap(used, unused, len, in_flight) {
            Step::Stay => {}
            Step::Double => _ = self.grow(),
            Step::All => while self.grow() {},
        }
        while len > self.used[Which::Wide as usize] && self.grow() {}
        match self.unused > 0 && Growth::is_timed(len) {
            true => M::now().max(1),
            false => 0,
        }
    }

    /// Doubles the used part of the wide arena. False: all of it is in use.
    ///
    /// The next body goes to the new half, so nothing that the receiver may still read is
    /// overwritten: the skipped bytes count as allocated.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(&mut self) -> bool {
        if self.unused == 0 {
            return false;
        }
        let wide = Which::Wide as usize;
        let arena = &mut self.handed_out[wide];
        let skipped = self.used[wide] - arena.offset;
        arena.lines = arena.lines.wrapping_add((skipped / LINE) as u16);
        arena.offset = self.used[wide];
        self.unused -= 1;
        self.growth.grown();
        self.used[wide] = self.arenas.used(self.unused);
        true
    }

    /// True if, with this tail, the arena has room for a total of `lines` allocated lines.
    #[inline(always)]
    pub(super) fn has_room(&self, tail: Tail, which: Which, lines: u16) -> bool {
        let in_flight = lines.wrapping_sub(tail.lines[which as usize]);
        usize::from(in_flight) <= self.used[which as usize] / LINE
    }

    /// True if the tail is possible: no lines are consumed that were not allocated.
    pub(super) fn can_follow(&self, tail: Tail) -> bool {
        let arenas = [Which::Small, Which::Wide];
        arenas
            .into_iter()
            .all(|which| self.has_room(tail, which, self.handed_out[which as usize].lines))
    }

    /// The number of allocated lines of each of the two arenas.
    #[inline(always)]
    pub(super) fn lines(&self) -> [u16; 2] {
        self.handed_out.map(|arena| arena.lines)
    }
}
