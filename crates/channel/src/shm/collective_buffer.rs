//! Lanes: memory in which each member of a group of ranks shows something to all others, for small collective
//! operations without packets.
//!
//! In a lane every rank that shares the memory has an area of its own, by its place, which it alone writes: a few slots,
//! used in turn, each a flag with the number of the turn and some bytes, and the last turn with which the rank is done.
//! Who may use a lane, and from which turn on, is agreed elsewhere. What must always hold:
//! - a rank posts a turn only once all who look at its slots are done with the turn that was in the slot before;
//! - numbers of turns only grow, whatever group a lane belongs to.

use super::Shm;
use super::segment::Mapping;
use crate::Result;
use crate::sync::{AtomicU64, Ordering};

/// Lanes of a job. Each is memory only once it is used.
pub const LANES: usize = 64;
/// Turns that a rank can be ahead of the slowest.
pub const SLOTS: u64 = 4;
/// The most that a rank can show in a turn, in bytes.
pub const BODY: usize = 16 << 10;
/// What fits into the slot itself; longer bodies have pages of their own, so that those who never use them have none.
const SHORT: usize = 952;
const PAGE: usize = 4096;
/// Room for one rank's area, and the bodies behind it.
const AREA: usize = PAGE + SLOTS as usize * BODY;
/// Bits of a note.
const NOTE: u32 = 24;

/// The file's bytes for the lanes of so many ranks.
pub(super) fn room(ranks: usize) -> usize {
    LANES * ranks * AREA
}

#[repr(C, align(128))]
struct Area {
    done: AtomicU64,
    /// So that who waits for the flag is not disturbed by `done`, nor by the line that comes with it.
    _apart: [u64; 15],
    slots: [Slot; SLOTS as usize],
}

#[repr(C, align(64))]
struct Slot {
    /// The turn, as far as it fits, and a note of 24 bits.
    flag: AtomicU64,
    body: [u8; SHORT],
}

const _: () = assert!(
    size_of::<Area>() <= PAGE && size_of::<Slot>() == SHORT + 8 && AREA.is_multiple_of(PAGE)
);

pub struct CollectiveBuffer {
    mapping: Mapping,
    places: usize,
}

impl Shm {
    /// Maps a lane.
    pub fn lane(&self, index: usize) -> Result<CollectiveBuffer> {
        assert!(index < LANES);
        let mapping = self
            .segment
            .lane(index * self.segment.ranks * AREA, self.segment.ranks * AREA)?;
        Ok(CollectiveBuffer {
            mapping,
            places: self.segment.ranks,
        })
    }

    /// Wakes the rank at a place, which may sleep until it is shown something.
    #[inline(always)]
    pub fn ring(&self, place: usize) {
        self.segment.board(place).doorbell.ring();
    }
}

impl CollectiveBuffer {
    #[inline(always)]
    fn area(&self, place: usize) -> *mut Area {
        assert!(place < self.places);
        // SAFETY: the mapping holds an area for each place.
        unsafe { self.mapping.base().add(place * AREA).cast() }
    }

    #[inline(always)]
    fn slot(&self, place: usize, turn: u64) -> *mut Slot {
        // SAFETY: in bounds, by the remainder.
        unsafe {
            (&raw mut (*self.area(place)).slots)
                .cast::<Slot>()
                .add((turn % SLOTS) as usize)
        }
    }

    #[inline(always)]
    fn flag(&self, place: usize, turn: u64) -> &AtomicU64 {
        // SAFETY: in bounds, and an atomic is all that is borrowed.
        unsafe { &(*self.slot(place, turn)).flag }
    }

    /// Where a body of this length lies.
    #[inline(always)]
    fn body(&self, place: usize, turn: u64, len: usize) -> *mut u8 {
        assert!(len <= BODY);
        // SAFETY: in bounds, by the lengths and the remainder.
        unsafe {
            match len {
                0..=SHORT => (&raw mut (*self.slot(place, turn)).body).cast(),
                _ => self
                    .area(place)
                    .cast::<u8>()
                    .add(PAGE + (turn % SLOTS) as usize * BODY),
            }
        }
    }

    /// Shows `len` bytes, which `fill` writes, as that of this place in this turn. The note has 24 bits.
    #[inline(always)]
    pub fn post(
        &self,
        place: usize,
        turn: u64,
        note: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        // SAFETY: in bounds; nobody reads the slot before its flag is set, nor writes to it but its owner, by the rules
        // above.
        fill(unsafe { std::slice::from_raw_parts_mut(self.body(place, turn, len), len) });
        self.flag(place, turn)
            .store(turn << NOTE | u64::from(note), Ordering::Release);
    }

    /// The note of that place's turn, if it has come.
    #[inline(always)]
    pub fn posted(&self, place: usize, turn: u64) -> Option<u32> {
        let flag = self.flag(place, turn).load(Ordering::Acquire);
        (flag >> NOTE == turn << NOTE >> NOTE).then_some((flag & ((1 << NOTE) - 1)) as u32)
    }

    /// What a place shows in a turn that has come and that this rank is not done with.
    #[inline(always)]
    pub fn read<R>(&self, place: usize, turn: u64, len: usize, then: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: in bounds; the owner leaves the slot alone until all are done with it, by the rules above.
        then(unsafe { std::slice::from_raw_parts(self.body(place, turn, len), len) })
    }

    /// The last turn with which the rank at a place is done.
    #[inline(always)]
    pub fn done(&self, place: usize) -> u64 {
        // SAFETY: in bounds, and an atomic is all that is borrowed.
        unsafe { &(*self.area(place)).done }.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub fn set_done(&self, place: usize, turn: u64) {
        // SAFETY: as above.
        unsafe { &(*self.area(place)).done }.store(turn, Ordering::Release);
    }
}
