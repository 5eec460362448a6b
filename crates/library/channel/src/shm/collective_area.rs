//! The memory of one rank in one collective buffer: its slots, and the memory of its long vectors.
//!
//! Long vectors lie one after another, in a circle. Between cores with a common cache a core writes
//! slowly to lines that the other one has read, as long as they are in that core's second-level
//! cache. So the circle takes all of its memory, which exceeds such a cache, once so many bytes have
//! been published that slow lines have cost a good part of what the new pages will. (64 KiB, near
//! cores: 7.6 µs in 512 KiB of memory, 2.3 in 2 MiB; the pages take 1.1 ms. Between far cores,
//! non-temporal stores take 3.5 µs in both.)

use crate::doorbell::Doorbell;
use crate::sync::AtomicU64;

/// Number of slots of an area.
pub(super) const SLOTS: usize = 4;
/// The longest vector that a member can publish, in bytes.
pub const MOST_BYTES: usize = 128 << 10;
/// Longest vector inside the slot itself, in bytes.
pub(super) const SHORT: usize = 952;
/// Bytes of the memory for long vectors. It exceeds a second-level cache.
const LONG: usize = 2 << 20;
/// Number of vectors of the greatest length so far that the circle holds at first.
const LAP: usize = 8;
/// Bytes of vectors of [`GAINS`] or more after which the circle takes all of the memory: those of a
/// vector of 64 KiB in each call before the first contest between data paths. (Shorter ones are
/// fastest through the buffer before that, too.)
const PAYS: usize = 4 << 20;
/// The shortest vector that gains by more memory, in bytes.
const GAINS: usize = 8 << 10;
const PAGE: usize = 4096;
const LINE: usize = 64;
/// Bytes of one rank's area in one buffer.
pub(super) const AREA: usize = PAGE + LONG;

/// An area without the long vectors, which follow behind a page.
#[repr(C, align(128))]
struct Area {
    /// The last round that the rank has ended.
    done: AtomicU64,
    /// Keeps `done` two cache lines away from the flags, so that stores to it do not disturb ranks
    /// that poll a flag.
    _apart: [u64; 15],
    slots: [Slot; SLOTS],
}

#[repr(C, align(64))]
struct Slot {
    /// See [`collective_buffer`](super::collective_buffer).
    flag: AtomicU64,
    /// The vector, or the position of a longer one as a `u64`.
    short: [u8; SHORT],
}

// A long vector never reaches one of the `SLOTS` before it, although the end of the circle may stay
// empty.
const _: () = assert!(
    LAP >= SLOTS + 2
        && LAP * MOST_BYTES <= LONG
        && size_of::<Area>() <= PAGE
        && size_of::<Slot>() == SHORT + 8
        && AREA.is_multiple_of(PAGE)
);

/// The memory and the doorbell of one member of a group.
pub(super) struct Member {
    /// The member's area: [`AREA`] bytes of shared memory.
    area: *mut Area,
    doorbell: *const Doorbell,
}

// SAFETY: the pointers lead to atomics, and to bytes whose accesses the rounds order.
unsafe impl Send for Member {}
// SAFETY: as for `Send`: a shared member gives access to atomics and raw pointers only.
unsafe impl Sync for Member {}

impl Member {
    /// The member with this area and doorbell.
    ///
    /// # Safety
    /// `area` points to [`AREA`] bytes that were zero at first, that only members of groups use,
    /// and that stay valid, like the doorbell, as long as the member exists.
    pub(super) unsafe fn new(area: *mut u8, doorbell: *const Doorbell) -> Member {
        Member {
            area: area.cast(),
            doorbell,
        }
    }

    #[inline(always)]
    fn slot(&self, round: u64) -> *mut Slot {
        // SAFETY: within the area, by the remainder.
        unsafe {
            (&raw mut (*self.area).slots)
                .cast::<Slot>()
                .add(round as usize % SLOTS)
        }
    }

    #[inline(always)]
    pub(super) fn flag(&self, round: u64) -> &AtomicU64 {
        // SAFETY: within the area, and an atomic is all that is borrowed.
        unsafe { &(*self.slot(round)).flag }
    }

    #[inline(always)]
    pub(super) fn short(&self, round: u64) -> *mut u8 {
        // SAFETY: within the area.
        unsafe { (&raw mut (*self.slot(round)).short).cast() }
    }

    /// The memory of a long vector of `len` bytes at this position.
    fn long(&self, position: usize, len: usize) -> *mut u8 {
        assert!(len <= LONG && position <= LONG - len);
        // SAFETY: within the area, by the comparison.
        unsafe { self.area.cast::<u8>().add(PAGE + position) }
    }

    /// The memory for a long vector of `len` bytes that this rank publishes in `round`, at the
    /// next position of its circle.
    ///
    /// # Safety
    /// This rank is the member, and no member reads the slot of this round.
    pub(super) unsafe fn place(
        &self,
        round: u64,
        len: usize,
        (circle, is_near): (&mut Circle, bool),
    ) -> *mut u8 {
        let position = circle.next(len, is_near, || self.populate());
        // SAFETY: the slot is aligned to a line, so its second word is aligned; only this rank uses
        // it now.
        unsafe { self.short(round).cast::<u64>().write(position as u64) };
        self.long(position, len)
    }

    /// The memory of the vector of `len` bytes that this member has published in `round`. If it
    /// published another length, this is any memory of as many bytes within the area.
    ///
    /// # Safety
    /// The member has published, and writes the slot again only after this call.
    #[inline(always)]
    pub(super) unsafe fn published(&self, round: u64, len: usize) -> *mut u8 {
        assert!(len <= MOST_BYTES);
        if len <= SHORT {
            return self.short(round);
        }
        // SAFETY: as for `place`.
        let position = unsafe { self.short(round).cast::<u64>().read() };
        self.long((position as usize).min(LONG - len), len)
    }

    /// The number of the last round that the member has ended.
    #[inline(always)]
    pub(super) fn done(&self) -> &AtomicU64 {
        // SAFETY: within the area, and an atomic is all that is borrowed.
        unsafe { &(*self.area).done }
    }

    #[inline(always)]
    pub(super) fn ring(&self) {
        // SAFETY: the doorbell stays as long as the member.
        unsafe { &*self.doorbell }.ring();
    }

    /// Gives pages to all long vectors of this rank by one call, so that the next vectors are as fast
    /// as all later ones. A kernel that cannot do that leaves them to faults, which take as long.
    #[cold]
    fn populate(&self) {
        #[cfg(not(miri))]
        // SAFETY: the pages belong to the area; the call changes no byte of them.
        unsafe {
            libc::madvise(self.long(0, LONG).cast(), LONG, libc::MADV_POPULATE_WRITE)
        };
    }
}

/// Chooses the positions of a rank's long vectors.
pub(super) struct Circle {
    /// The position behind the last vector.
    next: usize,
    /// Bytes of the memory that are in use.
    used: usize,
    /// Bytes that are still to be published before all of the memory is used.
    until_whole: usize,
}

impl Circle {
    pub(super) const fn new() -> Circle {
        Circle {
            next: 0,
            used: 0,
            until_whole: PAYS,
        }
    }

    /// The position of the next vector, of `len` bytes. `is_near`: the other members share a cache
    /// with this rank. `populate` gives pages to all of the memory.
    fn next(&mut self, len: usize, is_near: bool, populate: impl FnOnce()) -> usize {
        assert!(len <= MOST_BYTES);
        if len >= GAINS {
            self.until_whole = self.until_whole.saturating_sub(len);
        }
        if self.until_whole == 0 && is_near && self.used < LONG {
            populate();
            self.used = LONG;
        }
        let len = len.next_multiple_of(LINE);
        self.used = self.used.max(LAP * len);
        let position = match self.next + len <= self.used {
            true => self.next,
            false => 0,
        };
        self.next = position + len;
        position
    }
}

#[cfg(test)]
#[path = "collective_area_tests.rs"]
mod tests;
