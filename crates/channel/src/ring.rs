//! The ring: one sender, one receiver, packets in order.
//!
//! A dense array of 64-byte slots, each with a flag, a head and up to [`INLINE`] bytes of body, and an arena of bytes
//! beside it for longer bodies. The flag of a slot holds the sequence number of the packet in it, so it is the lap
//! number too: stale contents can never look like a new packet, and nothing is ever zeroed.
//!
//! Cursors are kept by each side for itself; only the flag (sender to receiver) and the tail (receiver to sender) are
//! shared. Space in the arena is handed out in order by a rule that both sides apply, so no offset travels and none
//! has to be trusted. What must always hold:
//! - the sender writes a slot or a piece of the arena only once the published tail has passed its last use;
//! - the receiver publishes its tail at the latest when a quarter of the slots or of the arena has been consumed, so a
//!   packet of at most a quarter of the arena always finds room in the end.

use crate::sync::{AtomicU32, Ordering};
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
        self.head = head;
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
    fn tail(&self) -> &AtomicU32;
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
    /// Bytes handed out since the beginning, skipped ones included.
    position: u64,
    /// Where that is in the arena.
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
        let position = self.position + (skipped + len) as u64;
        let end = offset + len;
        (
            offset,
            Arena {
                position,
                offset: if end == arena_len { 0 } else { end },
            },
        )
    }
}

/// The longest body of one packet.
pub fn max_body(arena_len: usize) -> usize {
    arena_len / 4
}

pub struct Sender<M> {
    memory: M,
    /// One less than the slots.
    mask: u32,
    /// Sequence number of the last packet put.
    head: u32,
    /// The receiver's tail when last looked at.
    tail: u32,
    arena: Arena,
    /// The arena is free up to here (a position, one arena length behind the receiver's).
    arena_free: u64,
    /// For each slot the arena position after its packet.
    ends: Box<[u64]>,
}

impl<M: Memory> Sender<M> {
    pub fn new(memory: M) -> Self {
        let slots = memory.slots();
        assert!(slots.is_power_of_two());
        let arena_free = memory.arena_len() as u64;
        Sender {
            memory,
            mask: slots - 1,
            head: 0,
            tail: 0,
            arena: Arena::default(),
            arena_free,
            ends: vec![0; slots as usize].into(),
        }
    }

    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Puts a packet if there is room for it now.
    #[inline(always)]
    pub fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) -> Put {
        let mut put = Put::Taken;
        if self.head.wrapping_sub(self.tail) > self.mask {
            put = self.look_at_tail(self.arena.position);
            if put == Put::Full {
                return put;
            }
        }
        let sequence = self.head.wrapping_add(1);
        if len <= INLINE {
            self.memory.slot(self.head).write(head, len, len, fill);
        } else {
            assert!(
                len <= max_body(self.memory.arena_len()),
                "a body of {len} bytes"
            );
            let (offset, after) = self.arena.place(len, self.memory.arena_len());
            if after.position > self.arena_free {
                put = self.look_at_tail(after.position);
                if put == Put::Full {
                    return put;
                }
            }
            self.memory.arena(offset, len, fill);
            self.memory.slot(self.head).write(head, len, 0, |_| ());
            self.arena = after;
        }
        self.ends[(self.head & self.mask) as usize] = self.arena.position;
        self.memory
            .slot(self.head)
            .flag()
            .store(sequence, Ordering::Release);
        self.head = sequence;
        self.memory.slot(sequence).will_be_written();
        put
    }

    /// Reads the receiver's tail: is there now a slot, and arena space up to `position`?
    #[cold]
    #[inline(never)]
    fn look_at_tail(&mut self, position: u64) -> Put {
        let mask = self.mask;
        let tail = self.memory.tail().load(Ordering::Acquire);
        let in_flight = self.head.wrapping_sub(tail);
        if in_flight > mask + 1 || tail == self.tail {
            // A tail from beyond our head is a broken peer: it then simply never frees anything.
            return Put::Full;
        }
        self.tail = tail;
        let consumed = self.ends[(tail.wrapping_sub(1) & mask) as usize];
        self.arena_free = consumed + self.memory.arena_len() as u64;
        if in_flight <= mask && position <= self.arena_free {
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
    arena: Arena,
    /// What the sender was last told.
    published: u32,
    arena_published: u64,
}

/// A packet whose announced length cannot be.
#[derive(Debug)]
pub struct BadLength(pub u32);

impl<M: Memory> Receiver<M> {
    pub fn new(memory: M) -> Self {
        Receiver {
            memory,
            head: 0,
            arena: Arena::default(),
            published: 0,
            arena_published: 0,
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

    /// Hands the next packet to `handler`, if there is one; gives its answer, and whether the tail was published, so
    /// that a sender that sleeps for want of room must be woken.
    #[inline(always)]
    pub fn get<R>(
        &mut self,
        handler: impl FnOnce(Head, &[u8]) -> R,
    ) -> Result<Option<(R, Published)>, BadLength> {
        if self.is_empty() {
            return Ok(None);
        }
        let memory = &self.memory;
        let slot = memory.slot(self.head);
        let (len, head) = slot.contents(|contents| (contents.len as usize, contents.head));
        let offset = if len <= INLINE {
            None
        } else if len > max_body(memory.arena_len()) {
            return Err(BadLength(len as u32));
        } else {
            let (offset, after) = self.arena.place(len, memory.arena_len());
            self.arena = after;
            Some(offset)
        };
        let answer = memory.body(slot, offset, len, |body| handler(head, body));
        self.head = self.head.wrapping_add(1);
        let quarter = self.head.wrapping_sub(self.published) >= memory.slots() / 4
            || self.arena.position - self.arena_published >= (memory.arena_len() / 4) as u64;
        if quarter {
            self.memory.tail().store(self.head, Ordering::Release);
            self.published = self.head;
            self.arena_published = self.arena.position;
        }
        Ok(Some((answer, Published(quarter))))
    }
}

/// Has the sender been told of free space?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published(pub bool);
