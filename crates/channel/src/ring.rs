//! The ring: one sender, one receiver, packets in order.
//!
//! A dense array of 64-byte slots, each with a flag, a head and up to [`INLINE`] bytes of body, and an arena of bytes
//! beside it for longer bodies. The flag of a slot holds the sequence number of the packet in it, so it is the lap
//! number too: stale contents can never look like a new packet, and nothing is ever zeroed.
//!
//! Cursors are kept by each side for itself; only the flag (sender to receiver) and the tail (receiver to sender: how
//! many packets and how many lines of the arena it is done with) are shared. Space in the arena is handed out in order
//! by a rule that both sides apply, so no offset travels and none has to be trusted. What must always hold:
//! - the sender writes a slot or a piece of the arena only once the published tail has passed its last use;
//! - the receiver publishes its tail at the latest when a quarter of the slots or of the arena has been consumed, so a
//!   packet of at most a quarter of the arena always finds room in the end.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Head, Put};

/// Bodies up to this many bytes travel in the slot itself.
pub const INLINE: usize = 32;
const LINE: usize = 64;

/// What a slot holds beside its flag.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
// Four-byte alignment, so that flag and contents fill a line exactly.
pub struct Contents {
    pub len: u32,
    pub head: Head,
    pub inline: [u8; INLINE],
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

/// Where a ring lives: shared memory, or loom's.
pub trait Memory {
    type Slot: Slot;
    /// How many slots; a power of two.
    fn slots(&self) -> u32;
    /// Bytes of the arena; a multiple of four lines.
    fn arena_len(&self) -> usize;
    fn tail(&self) -> &AtomicU64;
    /// The slot of the packet after the first `packets`.
    fn slot(&self, packets: u32) -> &Self::Slot;
    /// Access to `len` bytes of the arena. The protocol of the ring decides who may be inside.
    fn arena<R>(&self, offset: usize, len: usize, access: impl FnOnce(&mut [u8]) -> R) -> R;
    /// Access to a packet's body of `len` bytes, at `offset` in the arena or else in its slot, likewise.
    fn body<R>(
        &self,
        slot: &Self::Slot,
        offset: Option<usize>,
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

/// The rule by which arena space is handed out: in order, in lines, never across the end.
#[derive(Clone, Copy, Default)]
struct Arena {
    /// Lines handed out since the beginning, skipped ones included.
    lines: u32,
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
        let lines = self.lines.wrapping_add(((skipped + len) / LINE) as u32);
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

/// What a receiver is done with: packets, and lines of the arena.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tail {
    packets: u32,
    lines: u32,
}

impl Tail {
    fn pack(self) -> u64 {
        u64::from(self.lines) << 32 | u64::from(self.packets)
    }

    fn unpack(word: u64) -> Tail {
        Tail {
            packets: word as u32,
            lines: (word >> 32) as u32,
        }
    }
}

/// The longest body of one packet.
pub fn max_body(arena_len: usize) -> usize {
    arena_len / 4
}

pub struct Sender<M> {
    memory: M,
    /// How many slots.
    slots: u32,
    /// Sequence number of the last packet put.
    head: u32,
    arena: Arena,
    arena_len: usize,
    /// The receiver's tail when last looked at.
    tail: Tail,
}

impl<M: Memory> Sender<M> {
    pub fn new(memory: M) -> Self {
        let slots = memory.slots();
        assert!(slots.is_power_of_two());
        Sender {
            slots,
            head: 0,
            arena: Arena::default(),
            arena_len: memory.arena_len(),
            tail: Tail::default(),
            memory,
        }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Puts a packet if there is room for it now.
    #[inline(always)]
    pub fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) -> Put {
        let mut put = Put::Taken;
        let packets = self.head;
        if packets.wrapping_sub(self.tail.packets) >= self.slots {
            put = self.look_at_tail(self.arena.lines);
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
            assert!(len <= max_body(self.arena_len), "a body of {len} bytes");
            let (offset, after) = self.arena.place(len, self.arena_len);
            if after.lines.wrapping_sub(self.tail.lines) as usize > self.arena_len / LINE {
                put = self.look_at_tail(after.lines);
                if put == Put::Full {
                    return put;
                }
            }
            (slot, next) = (self.memory.slot(packets), self.memory.slot(sequence));
            self.memory.arena(offset, len, fill);
            slot.write(head, len, 0, |_| ());
            self.arena = after;
        }
        self.head = sequence;
        slot.flag().store(sequence, Ordering::Release);
        next.will_be_written();
        put
    }

    /// Reads the receiver's tail: is there now a slot, and arena space up to `lines`?
    #[cold]
    #[inline(never)]
    fn look_at_tail(&mut self, lines: u32) -> Put {
        let tail = Tail::unpack(self.memory.tail().load(Ordering::Acquire));
        let arena_lines = (self.arena_len / LINE) as u32;
        let packets_in_flight = self.head.wrapping_sub(tail.packets);
        let lines_in_flight = self.arena.lines.wrapping_sub(tail.lines);
        if tail == self.tail || packets_in_flight > self.slots || lines_in_flight > arena_lines {
            // A tail from beyond our head is a broken peer: it then simply never frees anything.
            return Put::Full;
        }
        self.tail = tail;
        if packets_in_flight < self.slots && lines.wrapping_sub(tail.lines) <= arena_lines {
            Put::TakenLap
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
    arena: Arena,
    arena_len: usize,
    /// What the sender was last told.
    published: Tail,
}

/// A packet whose announced length cannot be.
#[derive(Debug)]
pub struct BadLength(pub u32);

impl<M: Memory> Receiver<M> {
    pub fn new(memory: M) -> Self {
        Receiver {
            head: 0,
            quarter: memory.slots() / 4,
            arena: Arena::default(),
            arena_len: memory.arena_len(),
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

    /// Hands the next packet to `handler`; gives its answer, and whether the tail was published, so that a sender that
    /// sleeps for want of room must be woken. To be called only while the ring is not empty.
    #[inline(always)]
    pub fn take<R>(
        &mut self,
        handler: impl FnOnce(Head, &[u8]) -> R,
    ) -> Result<(R, Published), BadLength> {
        let slot = self.memory.slot(self.head);
        let sequence = self.head.wrapping_add(1);
        let len = slot.contents(|contents| contents.len as usize);
        let [first, second, third] = slot.contents(|contents| contents.head);
        let mut publish = sequence.wrapping_sub(self.published.packets) >= self.quarter;
        let offset = if len <= INLINE {
            None
        } else if len > max_body(self.arena_len) {
            return Err(BadLength(len as u32));
        } else {
            let (offset, after) = self.arena.place(len, self.arena_len);
            self.arena = after;
            publish |= after.lines.wrapping_sub(self.published.lines) as usize
                >= self.arena_len / (4 * LINE);
            Some(offset)
        };
        let answer = self.memory.body(
            slot,
            offset,
            len,
            #[inline(always)]
            |body| handler([first, second, third], body),
        );
        self.head = sequence;
        if publish {
            self.publish();
        }
        Ok((answer, Published(publish)))
    }

    #[inline(never)]
    fn publish(&mut self) {
        self.published = Tail {
            packets: self.head,
            lines: self.arena.lines,
        };
        self.memory
            .tail()
            .store(self.published.pack(), Ordering::Release);
    }
}

/// Has the sender been told of free space?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published(pub bool);
