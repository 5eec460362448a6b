//! The ring: one sender, one receiver, packets in order.
//!
//! A dense array of 64-byte slots, each with a flag, a head and up to [`INLINE`] bytes of body, and two arenas of bytes
//! beside it for longer bodies, a small one and a wide one. The flag of a slot holds the
//! sequence number of the packet in it, so it is the lap number too: stale contents can never look like a new packet, and
//! nothing is ever zeroed.
//!
//! Cursors are kept by each side for itself; only the flag (sender to receiver) and the tail (receiver to sender: how
//! many packets and how many lines of each arena it is done with) are shared. The sender alone hands out space, in order;
//! a packet says where its body lies, which the receiver holds against the arena's bounds. What must always hold:
//! - the sender writes a slot or a piece of an arena only once the receiver is known to be past its last use;
//! - the receiver publishes its tail at the latest when a quarter of the slots or of an arena has been consumed, so a
//!   packet of at most a quarter of its arena always finds room in the end.
//!
//! Where bytes lie decides how fast they go from core to core. Lines that both cores hold in their first cache change
//! hands quickly, and so do lines that neither holds any more; slow are those that have gone to somebody's second cache.
//! So when the peer has taken everything (it says so with what it sends), a short body goes to the start of the small arena
//! again; long ones walk through the wide one, which is larger than a second cache.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Head, Put};

/// Bodies up to this many bytes travel in the slot itself.
pub const INLINE: usize = 32;
/// Bodies shorter than this lie in the small arena.
const SHORT: usize = 2 << 10;
/// Bytes of the small arena, where there is room for a wide one beside it.
const SMALL_ARENA: usize = 256 << 10;
const LINE: usize = 64;
/// The smallest part of the wide arena in use, in bytes.
const LEAST_WIDE: usize = 32 << 10;
/// Bits of the fraction of an arena in use.
const MOST_UNUSED: u8 = 15;
/// Laps through the used part of the wide arena before it doubles.
const LAPS: u32 = 32;

/// What a slot holds beside its flag.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
// Four-byte alignment, so that flag and contents fill a line exactly.
pub struct Contents {
    pub len: u32,
    pub head: Head,
    pub inline: [u8; INLINE],
}

/// What stands in a slot in place of a body that lies in an arena.
#[derive(Clone, Copy)]
struct Elsewhere {
    which: Which,
    /// Where the body lies in its arena, in bytes.
    offset: u32,
    /// The arena's lines after it.
    lines: u16,
    /// How many packets of the other direction the sender had taken.
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
            which: match word(8) >> 16 & 1 {
                0 => Which::Small,
                _ => Which::Wide,
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
    pub fn write(&mut self, head: Head, len: usize, inline: usize, fill: impl FnOnce(&mut [u8])) {
        self.len = len as u32;
        // Word by word, so that the words need not stand in memory before.
        let [first, second, third] = head;
        self.head = [first, second, third];
        fill(&mut self.inline[..inline]);
    }
}

/// The two arenas of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Small,
    Wide,
}

/// Bytes of the two arenas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arenas {
    small: usize,
    wide: usize,
}

impl Arenas {
    /// Two arenas of so many bytes together, a multiple of eight lines.
    pub fn of(bytes: usize) -> Arenas {
        assert!(bytes.is_multiple_of(8 * LINE) && bytes / LINE < 1 << 16);
        let small = (bytes / 2).min(SMALL_ARENA);
        Arenas {
            small,
            wide: bytes - small,
        }
    }

    #[inline(always)]
    pub fn len(&self, which: Which) -> usize {
        match which {
            Which::Small => self.small,
            Which::Wide => self.wide,
        }
    }

    /// Which one a body goes to that is too long for a slot.
    #[inline(always)]
    fn of_body(&self, len: usize) -> Which {
        if len < SHORT && len <= self.small / 4 {
            Which::Small
        } else {
            Which::Wide
        }
    }

    /// Bytes of the wide arena in use, if it is one half to the power of `unused`.
    fn used(&self, unused: u8) -> usize {
        (self.wide >> unused) / LINE * LINE
    }

    /// The fraction of the wide arena that a sender uses at first.
    fn unused_at_first(&self) -> u8 {
        let halves = (0..=MOST_UNUSED).rev();
        let mut fitting = halves.filter(|unused| self.used(*unused) >= LEAST_WIDE);
        fitting.next().unwrap_or(0)
    }

    /// The longest body of one packet.
    pub fn max_body(&self) -> usize {
        self.wide / 4
    }
}

/// Where a ring lives: shared memory, or loom's.
pub trait Memory {
    type Slot: Slot;
    /// How many slots; a power of two.
    fn slots(&self) -> u32;
    fn arenas(&self) -> Arenas;
    fn tail(&self) -> &AtomicU64;
    /// The slot of the packet after the first `packets`.
    fn slot(&self, packets: u32) -> &Self::Slot;
    /// Access to `len` bytes of an arena. The protocol of the ring decides who may be inside.
    fn arena<R>(
        &self,
        which: Which,
        offset: usize,
        len: usize,
        access: impl FnOnce(&mut [u8]) -> R,
    ) -> R;
    /// Access to a packet's body of `len` bytes, at a place in an arena or else in its slot, likewise.
    fn body<R>(
        &self,
        slot: &Self::Slot,
        at: Option<(Which, usize)>,
        len: usize,
        access: impl FnOnce(&[u8]) -> R,
    ) -> R;
}

/// One slot.
pub trait Slot {
    fn flag(&self) -> &AtomicU32;
    /// Writes the contents, of the body what stands in the slot; the protocol of the ring says when.
    fn write(&self, head: Head, len: usize, inline: usize, fill: impl FnOnce(&mut [u8]));
    /// Access to the contents, likewise.
    fn contents<R>(&self, access: impl FnOnce(&mut Contents) -> R) -> R;
    /// A hint that this slot will be written next.
    fn will_be_written(&self) {}
}

/// How an arena is handed out: in order, in lines, never across the end.
#[derive(Clone, Copy, Default)]
struct Arena {
    /// Lines handed out since the beginning, skipped ones included.
    lines: u16,
    /// Where in the arena that is, in bytes.
    offset: usize,
}

impl Arena {
    /// Where a body of `len` bytes goes, and the arena after it.
    #[inline(always)]
    fn place(self, len: usize, arena_len: usize) -> (usize, Arena) {
        let len = len.next_multiple_of(LINE);
        let (offset, skipped) = if self.offset + len > arena_len {
            (0, arena_len - self.offset)
        } else {
            (self.offset, 0)
        };
        let lines = self.lines.wrapping_add(((skipped + len) / LINE) as u16);
        let end = offset + len;
        (
            offset,
            Arena {
                lines,
                offset: if end == arena_len { 0 } else { end },
            },
        )
    }
}

/// What a receiver is done with: packets, and lines of the arenas.
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

pub struct Sender<M> {
    memory: M,
    /// How many slots.
    slots: u32,
    /// Sequence number of the last packet put.
    head: u32,
    handed_out: [Arena; 2],
    arenas: Arenas,
    /// Bytes of each arena that are in use.
    used: [usize; 2],
    /// The wide arena is used to one half to the power of this.
    unused: u8,
    /// Laps through the used part of the wide arena.
    laps: u32,
    /// What the receiver is known to be done with.
    tail: Tail,
    /// The tail as it stood when it was last looked at for its own sake.
    seen: u64,
    /// How many packets this side has taken of the other direction, as far as it has been told.
    taken: u32,
}

impl<M: Memory> Sender<M> {
    pub fn new(memory: M) -> Self {
        let slots = memory.slots();
        assert!(slots.is_power_of_two());
        let arenas = memory.arenas();
        let unused = arenas.unused_at_first();
        Sender {
            slots,
            head: 0,
            handed_out: Default::default(),
            arenas,
            used: [arenas.small, arenas.used(unused)],
            unused,
            laps: 0,
            tail: Tail::default(),
            seen: 0,
            taken: 0,
            memory,
        }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Puts a packet if there is room for it now.
    #[inline(always)]
    pub fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) -> Put {
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
            let afresh = self.tail.packets == packets;
            let which = self.arenas.of_body(len);
            assert!(len <= self.arenas.len(which) / 4, "a body of {len} bytes");
            if which == Which::Small && afresh {
                self.handed_out[which as usize].offset = 0;
            }
            let arena = self.handed_out[which as usize];
            if arena.offset + len > self.used[which as usize] {
                self.end_lap(which, len);
            }
            let (mut offset, mut after) = self.place(which, len);
            if !self.has_room(self.tail, which, after.lines) {
                put = self.look_at_tail(Some((which, after.lines)));
                if put == Put::Full {
                    if which == Which::Small || !self.grow() {
                        return put;
                    }
                    (offset, after) = self.place(which, len);
                    put = Put::AcceptedPollNow;
                }
            }
            (slot, next) = (self.memory.slot(packets), self.memory.slot(sequence));
            self.memory.arena(which, offset, len, fill);
            let elsewhere = Elsewhere {
                which,
                offset: offset as u32,
                lines: after.lines,
                taken: self.taken,
                unused: self.unused,
            };
            slot.write(head, len, Elsewhere::LEN, |inline| elsewhere.write(inline));
            self.handed_out[which as usize] = after;
        }
        self.head = sequence;
        slot.flag().store(sequence, Ordering::Release);
        next.will_be_written();
        put
    }

    /// The place of a body of `len` bytes, and its arena after it.
    #[inline(always)]
    fn place(&self, which: Which, len: usize) -> (usize, Arena) {
        self.handed_out[which as usize].place(len, self.used[which as usize])
    }

    /// The next body does not fit behind the last one.
    #[cold]
    #[inline(never)]
    fn end_lap(&mut self, which: Which, len: usize) {
        if which == Which::Small {
            return;
        }
        self.laps += 1;
        if self.laps.is_multiple_of(LAPS) {
            self.grow();
        }
        while len > self.used[Which::Wide as usize] && self.grow() {}
    }

    /// Doubles the used part of the wide arena. False: all of it is in use.
    ///
    /// The next body goes to the new half, so nothing that the receiver may still read is written to: the bytes that are
    /// skipped count as handed out.
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
        self.used[wide] = self.arenas.used(self.unused);
        true
    }

    /// The other direction of this pair has heard that the peer had taken `theirs` packets of ours, and has itself taken
    /// `ours` of the peer's.
    #[inline(always)]
    pub fn hear(&mut self, theirs: u32, ours: u32) {
        self.taken = ours;
        if theirs == self.head {
            // Everything: so all lines are free too.
            self.tail = Tail {
                packets: theirs,
                lines: self.handed_out.map(|arena| arena.lines),
            };
        }
    }

    /// Has the receiver published a tail since this was last asked?
    #[inline]
    pub fn tail_has_changed(&mut self) -> bool {
        let tail = self.memory.tail().load(Ordering::Acquire);
        std::mem::replace(&mut self.seen, tail) != tail
    }

    /// Would an arena have room up to so many lines, with this tail?
    #[inline(always)]
    fn has_room(&self, tail: Tail, which: Which, lines: u16) -> bool {
        let in_flight = lines.wrapping_sub(tail.lines[which as usize]);
        usize::from(in_flight) <= self.used[which as usize] / LINE
    }

    /// Reads the receiver's tail: is there now a slot, and room in the arena up to so many lines?
    #[cold]
    #[inline(never)]
    fn look_at_tail(&mut self, wanted: Option<(Which, u16)>) -> Put {
        self.seen = self.memory.tail().load(Ordering::Acquire);
        let tail = Tail::unpack(self.seen);
        let in_flight = self.head.wrapping_sub(tail.packets);
        // What the peer has sent may have told of more than this.
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

pub struct Receiver<M> {
    memory: M,
    /// Sequence number of the last packet taken.
    head: u32,
    /// How many packets may be taken before the sender is told.
    quarter: u32,
    arenas: Arenas,
    /// The lines of the arenas up to there.
    lines: [u16; 2],
    /// What the sender was last told.
    published: Tail,
}

/// A packet that cannot be.
#[derive(Debug)]
pub enum Bad {
    /// Its length is beyond what a ring can hold.
    Length(u32),
    /// Its body would lie here, beyond its arena.
    Place(u32),
}

impl<M: Memory> Receiver<M> {
    pub fn new(memory: M) -> Self {
        Receiver {
            head: 0,
            quarter: memory.slots() / 4,
            arenas: memory.arenas(),
            lines: [0; 2],
            published: Tail::default(),
            memory,
        }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        let flag = self.memory.slot(self.head).flag();
        flag.load(Ordering::Acquire) != self.head.wrapping_add(1)
    }

    /// The head of the next packet. Means nothing while the ring is empty.
    #[inline(always)]
    pub fn next_head(&self) -> Head {
        self.memory
            .slot(self.head)
            .contents(|contents| contents.head)
    }

    /// Hands the next packet to `handler`; gives its answer, and whether the sender was told of free space, so that it must
    /// be woken if it sleeps for want of room. Where the packet says how many of the other direction its sender had taken,
    /// `hear` is told that, and how many have been taken of this one; so `handler` must be done with the body before anything
    /// is put the other way. To be called only while the ring is not empty.
    #[inline(always)]
    pub fn take<R>(
        &mut self,
        hear: impl FnOnce(u32, u32),
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
            let before = self.published.lines[which as usize];
            self.lines[which as usize] = elsewhere.lines;
            published |= usize::from(elsewhere.lines.wrapping_sub(before))
                >= (arena_len >> elsewhere.unused) / (4 * LINE);
            at = Some((which, offset));
            hear(elsewhere.taken, sequence);
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

/// Has the sender been told of free space?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published(pub bool);

#[cfg(all(test, not(loom)))]
#[path = "ring_tests.rs"]
mod tests;
