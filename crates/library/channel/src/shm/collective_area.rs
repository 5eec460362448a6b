//! The memory of one rank in one collective buffer: its slots, and the memory of its long vectors.
//!
//! Long vectors take a few places in turn, far apart, so that a reader does not prefetch the place
//! that is written next. Between cores with a common cache a core writes slowly to lines that the
//! other one has read, as long as they are in that core's second-level cache. So the vectors lie
//! one after another in all of the memory, which exceeds such a cache, once some of them have been
//! published. (64 KiB, near cores: 7.6 µs in 512 KiB of memory, 2.3 in 2 MiB; the pages take
//! 1.1 ms, once. Between far cores, non-temporal stores take 3.5 µs in both.) They do not where
//! that cache is as large as the memory, or where members share cores: there, lines that are used
//! again are in the cache. (Second-level caches of 2 MiB: a reduce of 32 KiB took two ranks 15 µs
//! in place of 5 in a job of 110 calls, and reduce, allreduce and allgather of 8 to 64 KiB took
//! four ranks on two cores 2 to 7 times as long.)

use std::sync::OnceLock;

use crate::doorbell::Doorbell;
use crate::sync::AtomicU64;

/// The number of slots of a member's area.
pub(super) const SLOTS: usize = 4;
/// The longest vector that a member can publish, in bytes.
pub const MOST_BYTES: usize = 128 << 10;
/// Longest vector inside the slot itself, in bytes.
pub(super) const SHORT: usize = 952;
/// Bytes of the memory for long vectors. It exceeds a second-level cache.
const LONG: usize = 2 << 20;
/// Number of places that long vectors take in turn at first.
const PLACES: usize = 8;
/// The number of bytes of vectors of [`GAINS`] or more after which vectors use all of the memory,
/// one part after the other: so many that the first contest between data paths, after 64 calls,
/// times this.
const PAYS: usize = 64 * GAINS;
/// The shortest vector that gains by more memory, in bytes.
const GAINS: usize = 8 << 10;
/// Number of places of a pair in each of the two areas.
const PLACES_EACH: usize = 2;
const PAGE: usize = 4096;
/// The number by which `sysconf` of glibc knows the size of the second-level cache.
const SECOND_LEVEL_CACHE: libc::c_int = 191;
const LINE: usize = 64;
/// Bytes of one rank's area in one buffer.
pub(super) const AREA: usize = PAGE + LONG + PLACES_EACH * MOST_BYTES;

/// A member's area, up to the page behind which its long vectors follow.
#[repr(C, align(128))]
struct Area {
    /// The last round that the rank which owns the area has ended.
    done: AtomicU64,
    /// Keeps `done` two cache lines away from the flags, so that stores to it do not disturb ranks
    /// that poll a flag.
    _apart: [u64; 15],
    slots: [Slot; SLOTS],
}

#[repr(C, align(64))]
struct Slot {
    /// The flag by which readers find the vector; see
    /// [`collective_buffer`](super::collective_buffer).
    flag: AtomicU64,
    /// The vector, or the position of a longer one as a `u64`.
    short: [u8; SHORT],
}

// A long vector never reaches one of the `SLOTS` before it: the walk begins behind the places, and
// may leave its end empty.
const _: () = assert!(
    PLACES >= SLOTS + 2
        && 2 * PLACES * MOST_BYTES <= LONG
        && size_of::<Area>() <= PAGE
        && size_of::<Slot>() == SHORT + 8
        && AREA.is_multiple_of(PAGE)
);

/// The area and the doorbell of one member of a group.
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
    /// next of its positions.
    ///
    /// # Safety
    /// As for [`set_position`](Member::set_position).
    pub(super) unsafe fn place(
        &self,
        round: u64,
        len: usize,
        (positions, walks): (&mut Positions, bool),
    ) -> *mut u8 {
        let position = positions.next(round, len, walks, || self.populate());
        // SAFETY: by the caller's promise.
        unsafe { self.set_position(round, position as u64) };
        self.long(position, len)
    }

    /// Says in the slot of `round` where this rank's long vector lies.
    ///
    /// # Safety
    /// This rank is the member, and no member reads the slot of this round.
    pub(super) unsafe fn set_position(&self, round: u64, word: u64) {
        // SAFETY: the slot is aligned to a line, so its second word is aligned; only this rank uses
        // it now.
        unsafe { self.short(round).cast::<u64>().write(word) };
    }

    /// The word that says where the long vector of `round` lies.
    ///
    /// # Safety
    /// The member has published in this round, and writes the slot again only after this call.
    pub(super) unsafe fn position(&self, round: u64) -> u64 {
        // SAFETY: as for `set_position`.
        unsafe { self.short(round).cast::<u64>().read() }
    }

    /// The memory of a vector of `len` bytes at a position of this member. If it published another
    /// length, this is any memory of as many bytes within the area.
    pub(super) fn published(&self, position: u64, len: usize) -> *mut u8 {
        assert!(len <= MOST_BYTES);
        self.long((position as usize).min(LONG - len), len)
    }

    /// The memory of one of a pair's places, which lies in this member's area.
    pub(super) fn at(&self, place: Place) -> *mut u8 {
        let number = usize::from(place.0) % PLACES_EACH;
        // SAFETY: within the area, by the remainder.
        unsafe {
            self.area
                .cast::<u8>()
                .add(PAGE + LONG + number * MOST_BYTES)
        }
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

    /// Gives pages to all long vectors of this rank by one call, so that the next vectors are as
    /// fast as all later ones. A kernel that cannot do that leaves them to faults, which take as
    /// long.
    #[cold]
    fn populate(&self) {
        #[cfg(not(miri))]
        // SAFETY: the pages belong to the area; the call changes no byte of them.
        unsafe {
            libc::madvise(self.long(0, LONG).cast(), LONG, libc::MADV_POPULATE_WRITE)
        };
    }
}

/// A place for the long vectors of a pair of members, in either area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place(u8);

/// The bit of a slot's word for a vector in a place, whose number is in the other bits.
const IN_PLACE: u64 = 1 << 63;

impl Place {
    /// The place that the word of a slot names; `None` if the word is a position.
    pub(super) fn of(word: u64) -> Option<Place> {
        let number = word as u8 % (2 * PLACES_EACH) as u8;
        (word & IN_PLACE != 0).then_some(Place(number))
    }

    /// The word that names the place.
    pub(super) fn word(self) -> u64 {
        IN_PLACE | u64::from(self.0)
    }

    /// The member in whose area the place lies.
    pub(super) fn owner(self) -> usize {
        usize::from(self.0) / PLACES_EACH
    }
}

/// The places that a member of a pair may write to, while its core is near that of the other. A
/// core writes fast to lines that it has read, so a vector goes to a place that this member has
/// read, and its reader owns that place from then on. Where vectors go in one direction only, the
/// places are soon given away, and vectors take positions.
///
/// The member that has published a vector may read it, too, until it ends its round: only its next
/// vector shows that it has.
#[derive(Clone, Copy)]
pub(super) struct Places {
    free: [Place; 2 * PLACES_EACH],
    count: usize,
    /// The place that was read last, with the round of the read.
    read: Option<(u64, Place)>,
}

impl Places {
    /// The places of member `me` of a pair before the first round.
    pub(super) fn of(me: usize) -> Places {
        let first = me % 2 * PLACES_EACH;
        let own = |at| Place((first + at % PLACES_EACH) as u8);
        Places {
            free: std::array::from_fn(own),
            count: PLACES_EACH,
            read: None,
        }
    }

    /// Records that this member reads a vector in a place in `round`. This frees the place that it
    /// has read before.
    pub(super) fn read(&mut self, round: u64, place: Place) {
        if let Some((_, before)) = self.read.take_if(|(before, _)| *before < round)
            && let Some(free) = self.free.get_mut(self.count)
        {
            *free = before;
            self.count += 1;
        }
        self.read = Some((round, place));
    }

    /// The place of a vector that this member publishes; `None` if it has none.
    pub(super) fn next(&mut self) -> Option<Place> {
        self.count = self.count.checked_sub(1)?;
        Some(self.free[self.count])
    }
}

/// True if the memory exceeds the second-level cache of a core. A cache of unknown size counts as
/// small.
pub(super) fn exceeds_cache() -> bool {
    static EXCEEDS: OnceLock<bool> = OnceLock::new();
    *EXCEEDS.get_or_init(|| {
        // SAFETY: the function reads no memory of the program.
        let size = unsafe { libc::sysconf(SECOND_LEVEL_CACHE) };
        usize::try_from(size).map_or(true, |size| size < LONG)
    })
}

/// Chooses the positions of a rank's long vectors.
pub(super) struct Positions {
    /// Bytes that are still to be published before vectors use all of the memory.
    until_walk: usize,
    /// The position behind the last vector of the walk, once it has begun.
    walk: Option<usize>,
}

impl Positions {
    pub(super) const fn new() -> Positions {
        Positions {
            until_walk: PAYS,
            walk: None,
        }
    }

    /// The position of the vector of `len` bytes in `round`. `walks`: vectors gain by all of the
    /// memory. `populate` gives pages to all of it.
    fn next(&mut self, round: u64, len: usize, walks: bool, populate: impl FnOnce()) -> usize {
        assert!(len <= MOST_BYTES);
        if len >= GAINS {
            self.until_walk = self.until_walk.saturating_sub(len);
        }
        let next = match self.walk {
            Some(next) => next,
            None if self.until_walk == 0 && walks => {
                populate();
                PLACES * MOST_BYTES
            }
            None => return round as usize % PLACES * MOST_BYTES,
        };
        let position = match next + len <= LONG {
            true => next,
            false => 0,
        };
        self.walk = Some((position + len).next_multiple_of(LINE));
        position
    }
}

#[cfg(test)]
#[path = "collective_area_tests.rs"]
mod tests;
