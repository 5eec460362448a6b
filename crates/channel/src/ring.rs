//! The ring: one sender, one receiver, packets in order.
//!
//! A ring is an array of 64-byte slots, each with a flag, a head and up to [`INLINE`] bytes of
//! body, and two arenas for longer bodies, a small one and a wide one. Beside it are the cells of
//! the pair of ranks ([`cells`](crate::cells)). The flag of a slot holds the sequence number of the
//! packet in it, and so the lap: stale contents never look like a new packet, and nothing is ever
//! zeroed.
//!
//! Each side keeps its own cursor. Shared are only the flags (sender to receiver) and the tail
//! (receiver to sender: the packets, and the lines of each arena, that it has consumed). The sender
//! alone allocates space, in order; a packet says where its body lies, and the receiver checks that
//! against the arena's bounds. Invariants:
//! - the sender writes a slot or a piece of an arena only once the receiver is known to be past its
//!   last use;
//! - the receiver publishes its tail at the latest when a quarter of the slots or of an arena has
//!   been consumed, so a packet of at most a quarter of its arena always finds room in the end;
//! - a cell belongs to one rank, and goes over to the receiver with its packet.
//!
//! The place of a body decides how fast it goes from core to core. A rank writes fast to lines that
//! it has just read, so a body goes to a cell if the rank has one. A rank that sends more than it
//! receives has none. Then lines that both cores hold in their first-level caches change hands
//! quickly, and so do lines that no cache holds; lines in a second-level cache are slow. So once
//! the peer has taken everything (its packets say so), a short body goes to the start of the small
//! arena again; long bodies walk through the wide arena, which is larger than a second-level cache.

use crate::arena_growth::{Growth, Step};
use crate::cells::{CellSize, Cells};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Head, Put};

/// Bodies up to this many bytes travel in the slot itself.
pub(crate) const INLINE: usize = 32;
/// Bodies shorter than this lie in the small arena, or in short cells.
const SHORT: usize = 2 << 10;
/// Bytes of the small arena, where there is room for a wide one beside it.
const SMALL_ARENA: usize = 256 << 10;
const LINE: usize = 64;
/// The smallest part of the wide arena in use, in bytes.
const LEAST_WIDE: usize = 32 << 10;
/// Bits of the fraction of an arena in use.
const MOST_UNUSED: u8 = 15;
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
struct Elsewhere {
    which: Which,
    /// Offset of the body in its arena, or among the cells of its size, in bytes.
    offset: u32,
    /// Lines of the arena that are allocated once this body is; 0 in a cell.
    lines: u16,
    /// Number of packets of the other direction that the sender had taken.
    taken: u32,
    /// The sender uses this fraction of the arena: one half to the power of `unused`.
    unused: u8,
}

impl Elsewhere {
    const LEN: usize = 12;

    #[inline(always)]
    fn write(self, inline: &mut [u8]) {
        inline[..4].copy_from_slice(&self.offset.to_ne_bytes());
        inline[4..8].copy_from_slice(&self.taken.to_ne_bytes());
        let lines =
            u32::from(self.lines) | (self.which as u32) << 16 | u32::from(self.unused) << 24;
        inline[8..Self::LEN].copy_from_slice(&lines.to_ne_bytes());
    }

    #[inline(always)]
    fn read(inline: &[u8; INLINE]) -> Elsewhere {
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
    fn cells(self) -> Option<CellSize> {
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
    fn of_body(&self, len: usize) -> (Which, CellSize) {
        if len < SHORT && len <= self.len(Which::Small) / 4 {
            (Which::Small, CellSize::Short)
        } else {
            (Which::Wide, CellSize::Long)
        }
    }

    /// Bytes of the wide arena in use, if it is one half to the power of `unused`.
    fn used(&self, unused: u8) -> usize {
        (self.len(Which::Wide) >> unused) / LINE * LINE
    }

    /// The fraction of the wide arena that a sender uses at first.
    fn unused_at_first(&self) -> u8 {
        let halves = (0..=MOST_UNUSED).rev();
        let mut fitting = halves.filter(|unused| self.used(*unused) >= LEAST_WIDE);
        fitting.next().unwrap_or(0)
    }

    /// The longest body of one packet.
    pub(crate) fn max_body(&self) -> usize {
        self.len(Which::Wide) / 4
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

/// The allocation of an arena: in order, in lines, never across the end.
#[derive(Clone, Copy, Default)]
struct Arena {
    /// Lines allocated since the beginning, skipped ones included.
    lines: u16,
    /// Offset of the next free line, in bytes.
    offset: usize,
}

impl Arena {
    /// The offset for a body of `len` bytes, and the arena once it is allocated.
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

/// The packets, and the lines of the arenas, that a receiver has consumed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tail {
    packets: u32,
    lines: [u16; 2],
}

impl Tail {
    fn pack(self) -> u64 {
        let [small, wide] = self.lines;
        u64::from(wide) << 48 | u64::from(small) << 32 | u64::from(self.packets)
    }

    fn unpack(word: u64) -> Tail {
        Tail {
            packets: word as u32,
            lines: [(word >> 32) as u16, (word >> 48) as u16],
        }
    }
}

/// The place of a body that is about to be written.
struct Place {
    which: Which,
    offset: usize,
    /// See [`Elsewhere`].
    lines: u16,
    /// The time at which the writing begins, if it is to be timed, otherwise 0.
    begun: u64,
}

/// The report of a packet whose body lies in an arena or a cell, to the other direction of the
/// pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Packets of the other direction that the sender had taken.
    theirs: u32,
    /// Packets taken of this ring.
    ours: u32,
    /// The cell that goes over to the receiver: its size, and the offset of the body.
    cell: Option<(CellSize, usize)>,
}

impl Heard {
    /// Adds the cell to those that the receiver owns.
    #[inline(always)]
    pub(crate) fn gain(self, cells: &mut Cells) {
        if let Some((size, offset)) = self.cell {
            cells.gain(size, offset);
        }
    }
}

/// The sending side of a ring.
pub(crate) struct Sender<M> {
    memory: M,
    /// Number of slots.
    slots: u32,
    /// Sequence number of the last packet put.
    head: u32,
    handed_out: [Arena; 2],
    /// The cells of the pair that this side owns.
    cells: Cells,
    /// Bytes of long bodies that went to cells since the last one that did not.
    in_cells: usize,
    arenas: Arenas,
    /// Bytes of each arena that are in use.
    used: [usize; 2],
    /// The wide arena is used to one half to the power of this.
    unused: u8,
    growth: Growth,
    /// The time of a copy within the caches of this core, in picoseconds a byte; 0: not yet known.
    own_copy: u64,
    /// The receiver's tail, as far as it is known.
    tail: Tail,
    /// Number of packets that the peer has reported to have taken, beside its tail.
    reported: u32,
    /// The tail's word when it was last read.
    seen: u64,
    /// Number of packets of the other direction that this side has taken, as far as it is known.
    taken: u32,
}

impl<M: Memory> Sender<M> {
    pub(crate) fn new(memory: M) -> Self {
        let slots = memory.slots();
        assert!(slots.is_power_of_two());
        let arenas = memory.arenas();
        let unused = arenas.unused_at_first();
        Sender {
            slots,
            head: 0,
            handed_out: Default::default(),
            cells: memory.first_cells(),
            in_cells: 0,
            arenas,
            used: [arenas.len(Which::Small), arenas.used(unused)],
            unused,
            growth: Growth::default(),
            own_copy: 0,
            tail: Tail::default(),
            reported: 0,
            seen: 0,
            taken: 0,
            memory,
        }
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Puts a packet if there is room for it.
    #[inline(always)]
    pub(crate) fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) -> Put {
        let mut put = Put::Accepted;
        let packets = self.head;
        if packets.wrapping_sub(self.tail.packets) >= self.slots {
            put = self.look_at_tail(None);
            if put == Put::Full {
                return put;
            }
        }
        let sequence = packets.wrapping_add(1);
        let (slot, next);
        if len <= INLINE {
            (slot, next) = (self.memory.slot(packets), self.memory.slot(sequence));
            slot.write(head, len, len, fill);
        } else {
            let (arena, size) = self.arenas.of_body(len);
            let cell = match len <= size.longest() {
                true => self.cells.take(size),
                false => None,
            };
            let place = match cell {
                Some(offset) => self.place_in_cell(size, offset, len),
                None => match self.place_in_arena(arena, len, &mut put) {
                    Some(place) => place,
                    None => return put,
                },
            };
            self.memory.arena(place.which, place.offset, len, fill);
            if place.begun != 0 {
                self.first_of_lap_written(place.which, len, place.begun);
            }
            (slot, next) = (self.memory.slot(packets), self.memory.slot(sequence));
            let elsewhere = Elsewhere {
                which: place.which,
                offset: place.offset as u32,
                lines: place.lines,
                taken: self.taken,
                unused: self.unused,
            };
            slot.write(head, len, Elsewhere::LEN, |inline| elsewhere.write(inline));
        }
        self.head = sequence;
        slot.flag().store(sequence, Ordering::Release);
        next.will_be_written();
        put
    }

    /// The place of a body of `len` bytes in the cell at `offset`.
    #[inline(always)]
    fn place_in_cell(&mut self, size: CellSize, offset: usize, len: usize) -> Place {
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

    /// Allocates the place of a body of `len` bytes in an arena. None: there is no room.
    #[inline(always)]
    fn place_in_arena(&mut self, which: Which, len: usize, put: &mut Put) -> Option<Place> {
        assert!(len <= self.arenas.len(which) / 4, "a body of {len} bytes");
        if which == Which::Wide {
            self.in_cells = 0;
        } else if self.tail.packets == self.head {
            self.handed_out[which as usize].offset = 0;
        }
        let arena = self.handed_out[which as usize];
        let mut begun = 0;
        if arena.offset + len > self.used[which as usize] {
            begun = self.end_lap(which, len);
        }
        let (mut offset, mut after) = self.place(which, len);
        if !self.has_room(self.tail, which, after.lines) {
            *put = self.look_at_tail(Some((which, after.lines)));
            if *put == Put::Full {
                if which == Which::Small || !self.grow() {
                    return None;
                }
                (offset, after) = self.place(which, len);
                *put = Put::AcceptedPollNow;
            }
        }
        self.handed_out[which as usize] = after;
        Some(Place {
            which,
            offset,
            lines: after.lines,
            begun,
        })
    }

    /// The first body of a lap has been written, which began at this time.
    #[cold]
    #[inline(never)]
    fn first_of_lap_written(&mut self, which: Which, len: usize, begun: u64) {
        let took = M::now().saturating_sub(begun);
        if self.own_copy == 0 {
            self.own_copy = M::own_copy().max(1);
        }
        let copy = len as u64 * self.own_copy / 1000;
        self.growth
            .written(self.used[which as usize], len, took, copy);
    }

    /// Long bodies go as fast as they will: they find cells, or the wide arena does not grow any
    /// more.
    pub(crate) fn is_settled(&self) -> bool {
        let used = self.used[Which::Wide as usize];
        let unused = self.arenas.len(Which::Wide) - used;
        self.in_cells >= 2 * CellSize::Long.bytes() || self.growth.is_settled(used, unused)
    }

    /// A body of `len` bytes would go to a cell.
    pub(crate) fn has_cell(&self, len: usize) -> bool {
        let (_, size) = self.arenas.of_body(len);
        len > INLINE && len <= size.longest() && self.cells.has(size)
    }

    /// Adds cells that the peer gave before this ring was open.
    pub(crate) fn gain(&mut self, cells: Cells) {
        self.cells.append(cells);
    }

    /// The offset for a body of `len` bytes in an arena, and the arena after it.
    #[inline(always)]
    fn place(&self, which: Which, len: usize) -> (usize, Arena) {
        self.handed_out[which as usize].place(len, self.used[which as usize])
    }

    /// The next body does not fit behind the last one. Returns the time at which its writing begins
    /// if that is to be timed, otherwise 0.
    #[cold]
    #[inline(never)]
    fn end_lap(&mut self, which: Which, len: usize) -> u64 {
        if which == Which::Small {
            return 0;
        }
        let taken = [self.tail.packets, self.reported];
        let in_flight = taken.map(|taken| self.head.wrapping_sub(taken));
        let in_flight = in_flight[0].min(in_flight[1]);
        let used = self.used[which as usize];
        let unused = self.arenas.len(which) - used;
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
    /// The next body goes to the new half, so nothing that the receiver may still read is written
    /// to: the bytes that are skipped count as handed out.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> bool {
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

    /// A packet of the other direction of this pair has a body elsewhere.
    #[inline(always)]
    pub(crate) fn hear(&mut self, heard: Heard) {
        self.taken = heard.ours;
        self.reported = heard.theirs;
        if heard.theirs == self.head {
            // The peer has taken everything, so all lines are free too.
            self.tail = Tail {
                packets: heard.theirs,
                lines: self.handed_out.map(|arena| arena.lines),
            };
        }
        heard.gain(&mut self.cells);
    }

    /// The receiver has published a tail since the last call.
    #[inline]
    pub(crate) fn tail_has_changed(&mut self) -> bool {
        let tail = self.memory.tail().load(Ordering::Acquire);
        std::mem::replace(&mut self.seen, tail) != tail
    }

    /// With this tail, the arena has room up to `lines` allocated lines.
    #[inline(always)]
    fn has_room(&self, tail: Tail, which: Which, lines: u16) -> bool {
        let in_flight = lines.wrapping_sub(tail.lines[which as usize]);
        usize::from(in_flight) <= self.used[which as usize] / LINE
    }

    /// Reads the receiver's tail: accepted if a slot is free, and the arena has room up to the
    /// wanted lines.
    #[cold]
    #[inline(never)]
    fn look_at_tail(&mut self, wanted: Option<(Which, u16)>) -> Put {
        self.seen = self.memory.tail().load(Ordering::Acquire);
        let tail = Tail::unpack(self.seen);
        let in_flight = self.head.wrapping_sub(tail.packets);
        // The peer's packets may have reported more than this.
        let news = tail.packets.wrapping_sub(self.tail.packets) as i32 > 0;
        let possible = [Which::Small, Which::Wide]
            .iter()
            .all(|&which| self.has_room(tail, which, self.handed_out[which as usize].lines));
        if !news || in_flight > self.slots || !possible {
            // A tail from beyond our head is a broken peer: it then simply never frees anything.
            return Put::Full;
        }
        self.tail = tail;
        let room = wanted.is_none_or(|(which, lines)| self.has_room(tail, which, lines));
        if in_flight < self.slots && room {
            Put::AcceptedPollNow
        } else {
            Put::Full
        }
    }
}

/// The receiving side of a ring.
pub(crate) struct Receiver<M> {
    memory: M,
    /// Sequence number of the last packet taken.
    head: u32,
    /// Packets taken between two published tails, at most.
    quarter: u32,
    arenas: Arenas,
    /// Lines of the arenas up to that packet.
    lines: [u16; 2],
    /// The tail that was last published.
    published: Tail,
}

/// The fault of an impossible packet.
#[derive(Debug)]
pub(crate) enum Bad {
    /// The length is beyond the longest body.
    Length(u32),
    /// The body would begin at this offset and end beyond its arena or the cells.
    Place(u32),
}

impl<M: Memory> Receiver<M> {
    pub(crate) fn new(memory: M) -> Self {
        Receiver {
            head: 0,
            quarter: memory.slots() / 4,
            arenas: memory.arenas(),
            lines: [0; 2],
            published: Tail::default(),
            memory,
        }
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        let flag = self.memory.slot(self.head).flag();
        flag.load(Ordering::Acquire) != self.head.wrapping_add(1)
    }

    /// The head of the next packet. Means nothing while the ring is empty.
    #[inline(always)]
    pub(crate) fn next_head(&self) -> Head {
        self.memory
            .slot(self.head)
            .contents(|contents| contents.head)
    }

    /// Hands the next packet to `handler`, and returns the handler's answer and whether the tail
    /// was published; if so, the sender must be woken, which may sleep for want of room. `hear`
    /// gets the packet's report, if it has one. From then on the sender of the other direction may
    /// reuse the body's cell, so `handler` must be done with the body before anything is put into
    /// the other direction. The ring must not be empty.
    #[inline(always)]
    pub(crate) fn take<R>(
        &mut self,
        hear: impl FnOnce(Heard),
        handler: impl FnOnce(Head, &[u8]) -> R,
    ) -> Result<(R, Published), Bad> {
        let slot = self.memory.slot(self.head);
        let sequence = self.head.wrapping_add(1);
        let len = slot.contents(|contents| contents.len as usize);
        let [first, second, third] = slot.contents(|contents| contents.head);
        let mut published = sequence.wrapping_sub(self.published.packets) >= self.quarter;
        let mut at = None;
        if len > INLINE {
            let elsewhere = slot.contents(|contents| Elsewhere::read(&contents.inline));
            let which = elsewhere.which;
            let arena_len = self.arenas.len(which);
            if len > arena_len / 4 {
                return Err(Bad::Length(len as u32));
            }
            let offset = elsewhere.offset as usize;
            if offset > arena_len - len {
                return Err(Bad::Place(elsewhere.offset));
            }
            let cell = which.cells().map(|size| (size, offset));
            if cell.is_none() {
                let before = self.published.lines[which as usize];
                self.lines[which as usize] = elsewhere.lines;
                published |= usize::from(elsewhere.lines.wrapping_sub(before))
                    >= (arena_len >> elsewhere.unused) / (4 * LINE);
            }
            at = Some((which, offset));
            hear(Heard {
                theirs: elsewhere.taken,
                ours: sequence,
                cell,
            });
        }
        let answer = self.memory.body(
            slot,
            at,
            len,
            #[inline(always)]
            |body| handler([first, second, third], body),
        );
        self.head = sequence;
        if published {
            self.publish();
        }
        Ok((answer, Published(published)))
    }

    /// The length of the next packet's body if it lies in its slot; the ring must not be empty.
    #[inline(always)]
    pub(crate) fn next_inline(&self) -> Option<usize> {
        let slot = self.memory.slot(self.head);
        let len = slot.contents(|contents| contents.len as usize);
        (len <= INLINE).then_some(len)
    }

    /// [`take`](Receiver::take) of a packet whose body of this length lies in its slot: there is no
    /// report.
    #[inline(always)]
    pub(crate) fn take_inline<R>(
        &mut self,
        len: usize,
        handler: impl FnOnce(Head, &[u8]) -> R,
    ) -> (R, Published) {
        let slot = self.memory.slot(self.head);
        let sequence = self.head.wrapping_add(1);
        let head = slot.contents(|contents| contents.head);
        let published = sequence.wrapping_sub(self.published.packets) >= self.quarter;
        let answer = self.memory.body(
            slot,
            None,
            len,
            #[inline(always)]
            |body| handler(head, body),
        );
        self.head = sequence;
        if published {
            self.publish();
        }
        (answer, Published(published))
    }

    #[inline(never)]
    fn publish(&mut self) {
        self.published = Tail {
            packets: self.head,
            lines: self.lines,
        };
        self.memory
            .tail()
            .store(self.published.pack(), Ordering::Release);
    }
}

/// The tail has been published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Published(pub bool);

/// The clock of tests: each look at it takes the same time.
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

#[cfg(all(test, not(loom)))]
#[path = "ring_tests.rs"]
mod tests;
