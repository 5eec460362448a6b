//! The ring: a queue of packets from one sender to one receiver, in order.
//!
//! A ring has an array of 64-byte slots, each with a flag, a head and up to [`INLINE`] bytes of
//! body, and two arenas for longer bodies, a small one and a wide one. In addition the pair of
//! ranks has cells ([`cells`](crate::cells)). The flag of a slot holds the sequence number of the
//! packet in it. A slot of the previous pass over the ring has an older number, so stale contents
//! never pass for a new packet, and nothing is ever zeroed.
//!
//! Each side keeps its own cursor. They share only the flags (sender to receiver) and the tail
//! (receiver to sender: the packets, and the lines of each arena, that it has consumed). Only the
//! sender allocates space, in order; a packet contains the offset of its body, and the receiver
//! checks it against the arena's bounds. Invariants:
//! - the sender writes a slot or a piece of an arena only once the receiver is known to be past its
//!   last use;
//! - the receiver publishes its tail at the latest when a quarter of the slots or of an arena has
//!   been consumed, so there is eventually room for a packet of at most a quarter of its arena;
//! - a cell belongs to one rank, and its ownership passes to the receiver with its packet.
//!
//! The location of a body decides how fast it moves from core to core. A rank writes fast to lines
//! that it has just read, so a body goes to a cell if the rank owns one. A rank that sends more
//! than it receives owns none. Then lines that both cores hold in their first-level caches change
//! owners quickly, and so do lines that no cache holds; lines in a second-level cache are slow. So
//! once the peer has consumed everything (its packets report that), a short body goes to the start
//! of the small arena again; long bodies use successive parts of the wide arena, which is larger
//! than a second-level cache.

mod bodies;
mod places;
mod slot;

use crate::cells::{CellSize, Cells};
use crate::sync::Ordering;
use crate::{Head, Put};

use bodies::LINE;
pub(crate) use bodies::{Arenas, Which};
use places::{Place, Places};
#[cfg(all(test, not(loom)))]
pub(crate) use slot::test_clock;
pub(crate) use slot::{Contents, INLINE, Memory, Slot};
use slot::{Elsewhere, Tail};

/// The report in a received packet whose body lies in an arena or a cell. It is for this rank's
/// sender of the other direction of the pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// The number of packets of the other direction that the peer had consumed when it wrote this
    /// one.
    theirs: u32,
    /// Number of packets of this ring that this rank has consumed, including this one.
    ours: u32,
    /// The cell whose ownership passes to the receiver: its size, and the offset of the body.
    cell: Option<(CellSize, usize)>,
}

impl Heard {
    /// Adds the cell that the packet hands over, if there is one, to those that the receiver owns.
    #[inline(always)]
    pub(crate) fn gain(self, cells: &mut Cells) {
        if let Some((size, offset)) = self.cell {
            cells.gain(size, offset);
        }
    }
}

/// The sending side of a shared-memory ring.
pub(crate) struct Sender<M> {
    memory: M,
    /// The number of slots of the ring.
    slots: u32,
    /// The sequence number of the last packet that was put.
    head: u32,
    places: Places,
    /// The receiver's tail (consumed packets), as the sender knows it.
    tail: Tail,
    /// Number of packets that the peer has reported in its own packets as consumed.
    reported: u32,
    /// The packed tail when it was last read.
    seen: u64,
    /// Number of packets of the other direction that this side has consumed, as last noted.
    taken: u32,
}

impl<M: Memory> Sender<M> {
    pub(crate) fn new(memory: M) -> Self {
        let slots = memory.slots();
        assert!(slots.is_power_of_two());
        Sender {
            slots,
            head: 0,
            places: Places::new(memory.arenas(), memory.first_cells()),
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

    /// Puts a packet if there is room for it, and otherwise returns [`Put::Full`].
    #[inline(always)]
    pub(crate) fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) -> Put {
        let mut put = Put::Accepted;
        let packets = self.head;
        if packets.wrapping_sub(self.tail.packets) >= self.slots {
            put = self.poll_tail(None);
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
            let (arena, size) = self.places.arenas.of_body(len);
            let cell = match len <= size.longest() {
                true => self.places.cells.take(size),
                false => None,
            };
            let place = match cell {
                Some(offset) => self.places.in_cell(size, offset, len),
                None => match self.place_in_arena(arena, len, &mut put) {
                    Some(place) => place,
                    None => return put,
                },
            };
            self.memory.arena(place.which, place.offset, len, fill);
            if place.begun != 0 {
                self.places.first_of_lap_written::<M>(len, place.begun);
            }
            (slot, next) = (self.memory.slot(packets), self.memory.slot(sequence));
            let elsewhere = Elsewhere {
                which: place.which,
                offset: place.offset as u32,
                lines: place.lines,
                taken: self.taken,
                unused: self.places.unused,
            };
            slot.write(head, len, Elsewhere::LEN, |inline| elsewhere.write(inline));
        }
        self.head = sequence;
        slot.flag().store(sequence, Ordering::Release);
        next.will_be_written();
        put
    }

    /// Allocates space for a body of `len` bytes in an arena. `None`: there is no room.
    #[inline(always)]
    fn place_in_arena(&mut self, which: Which, len: usize, put: &mut Put) -> Option<Place> {
        if which == Which::Small && self.tail.packets == self.head {
            self.places.start_again(which);
        }
        let mut begun = 0;
        if !self.places.continues(which, len) {
            begun = self.end_lap(which, len);
        }
        let (mut offset, mut after) = self.places.next(which, len);
        if !self.places.has_room(self.tail, which, after.lines) {
            *put = self.poll_tail(Some((which, after.lines)));
            if *put == Put::Full {
                if which == Which::Small || !self.places.grow() {
                    return None;
                }
                (offset, after) = self.places.next(which, len);
                *put = Put::AcceptedPollNow;
            }
        }
        self.places.handed_out[which as usize] = after;
        Some(Place {
            which,
            offset,
            lines: after.lines,
            begun,
        })
    }

    /// Ends a lap of an arena: the next body, of `len` bytes, does not fit behind the last one.
    /// Returns the time at which its writing begins if that is to be timed, otherwise 0.
    #[cold]
    #[inline(never)]
    fn end_lap(&mut self, which: Which, len: usize) -> u64 {
        match which {
            Which::Wide => self.places.end_lap::<M>(len, self.in_flight()),
            _ => 0,
        }
    }

    /// True if long bodies move as fast as they ever will.
    pub(crate) fn is_settled(&self) -> bool {
        self.places.is_settled()
    }

    /// True if a body of `len` bytes would go to a cell.
    pub(crate) fn has_cell(&self, len: usize) -> bool {
        len > INLINE && self.places.has_cell(len)
    }

    /// Adds the cells that the peer handed over before this ring was open.
    pub(crate) fn gain(&mut self, cells: Cells) {
        self.places.cells.append(cells);
    }

    /// Number of packets that the peer is not known to have consumed.
    fn in_flight(&self) -> u32 {
        let taken = [self.tail.packets, self.reported];
        let [by_tail, by_report] = taken.map(|taken| self.head.wrapping_sub(taken));
        by_tail.min(by_report)
    }

    /// Records what a packet from the peer reports: the tail of this ring, and the cell that the
    /// packet hands over.
    #[inline(always)]
    pub(crate) fn on_report(&mut self, heard: Heard) {
        self.taken = heard.ours;
        self.reported = heard.theirs;
        if heard.theirs == self.head {
            // The peer has consumed everything, so all lines are free too.
            self.tail = Tail {
                packets: heard.theirs,
                lines: self.places.lines(),
            };
        }
        heard.gain(&mut self.places.cells);
    }

    /// True if the receiver has published a tail since the last call.
    #[inline]
    pub(crate) fn tail_has_changed(&mut self) -> bool {
        let tail = self.memory.tail().load(Ordering::Acquire);
        std::mem::replace(&mut self.seen, tail) != tail
    }

    /// Reads the receiver's tail. [`Put::AcceptedPollNow`]: a slot is free, and the arena has room
    /// up to the number of lines in `wanted`; otherwise [`Put::Full`].
    #[cold]
    #[inline(never)]
    fn poll_tail(&mut self, wanted: Option<(Which, u16)>) -> Put {
        self.seen = self.memory.tail().load(Ordering::Acquire);
        let tail = Tail::unpack(self.seen);
        let in_flight = self.head.wrapping_sub(tail.packets);
        // The peer's packets may already have reported more than this tail.
        let news = tail.packets.wrapping_sub(self.tail.packets) as i32 > 0;
        let possible = self.places.can_follow(tail);
        if !news || in_flight > self.slots || !possible {
            // A tail that is ahead of our head, or older, frees nothing: a broken peer harms
            // nobody.
            return Put::Full;
        }
        self.tail = tail;
        let room = wanted.is_none_or(|(which, lines)| self.places.has_room(tail, which, lines));
        if in_flight < self.slots && room {
            Put::AcceptedPollNow
        } else {
            Put::Full
        }
    }
}

/// The receiving side of a shared-memory ring.
pub(crate) struct Receiver<M> {
    memory: M,
    /// The sequence number of the last packet that was consumed.
    head: u32,
    /// Greatest number of packets consumed between two published tails.
    quarter: u32,
    arenas: Arenas,
    /// Allocated lines of each arena up to the last consumed packet.
    lines: [u16; 2],
    /// The tail (consumed packets) that was published last.
    published: Tail,
}

/// The reason why a packet is invalid.
#[derive(Debug)]
pub(crate) enum Bad {
    /// The length of the body exceeds that of the longest one.
    Length(u32),
    /// The body at this offset would end beyond its arena or the cells.
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

    /// The head of the next packet. Undefined while the ring is empty.
    #[inline(always)]
    pub(crate) fn next_head(&self) -> Head {
        self.memory
            .slot(self.head)
            .contents(|contents| contents.head)
    }

    /// Passes the next packet to `handler` and consumes it. Returns the handler's result and
    /// whether the tail was published; if so, the sender must be woken, which may sleep for lack of
    /// room. `on_report` gets the packet's report, if it has one. From then on the sender of the
    /// other direction may reuse the body's cell, so `handler` must be done with the body before
    /// anything is put into the other direction. The ring must not be empty.
    #[inline(always)]
    pub(crate) fn take<R>(
        &mut self,
        on_report: impl FnOnce(Heard),
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
            on_report(Heard {
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

    /// The length of the next packet's body if it lies in its slot. The ring must not be empty.
    #[inline(always)]
    pub(crate) fn next_inline(&self) -> Option<usize> {
        let slot = self.memory.slot(self.head);
        let len = slot.contents(|contents| contents.len as usize);
        (len <= INLINE).then_some(len)
    }

    /// [`take`](Receiver::take) of a packet whose body, of `len` bytes, lies in its slot. Such a
    /// packet has no report.
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

/// True if the tail has been published, so that the sender must be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Published(pub bool);

#[cfg(all(test, not(loom)))]
mod tests;
