//! Writing a profile: a rank records into its own part of the file.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::fstat;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{
    CLASS, FINISHED, MOST_PEERS, MOST_PROCEDURES, MOST_RAILS, NAME, PART, PEER, PEERS_AT,
    PROCEDURE, PROCEDURES_AT, RUNNING, SIZES_AT, class_of, head,
};

/// A rank's own part of a job's profile. Several threads of the rank may use it.
///
/// Times are picoseconds since the rank's start.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let file = profile::create(2)?;
/// let rank = profile::RankProfile::open(&file, 1)?;
/// rank.begin("MPI_Init", 1_000);
/// rank.enter("MPI_Send", 5_000);
/// rank.sent(0, 64);
/// rank.leave(9_000, None);
/// rank.finish(9_500, None);
/// let records = profile::read(&file.into(), 2)?;
/// assert_eq!(records[1].in_mpi, 5_000);
/// assert_eq!((records[1].peers[0].rank, records[1].peers[0].sent.bytes), (0, 64));
/// # Ok(())
/// # }
/// ```
pub struct RankProfile {
    part: NonNull<AtomicU64>,
    /// The index of each known procedure in the table of procedures.
    procedures: Mutex<Vec<&'static str>>,
    /// The index of each known peer in the table of peers.
    peers: Mutex<HashMap<usize, usize, BuildHasherDefault<Spread>>>,
}

// SAFETY: the part is memory of atomic words, mapped until this value is dropped.
unsafe impl Send for RankProfile {}
// SAFETY: the words are atomic; a table gets its entries under a lock.
unsafe impl Sync for RankProfile {}

impl RankProfile {
    /// Opens the part of `rank` in a file made by [`create`](crate::create).
    ///
    /// # Errors
    /// The file is too short for this rank, or cannot be mapped.
    pub fn open(file: &OwnedFd, rank: usize) -> io::Result<RankProfile> {
        let start = rank as u64 * PART as u64 * 8;
        let ends = fstat(file)?.st_size as u64;
        if start + PART as u64 * 8 > ends {
            let why = format!("the job's profile has no part for rank {rank}");
            return Err(io::Error::other(why));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system chooses.
        let part = unsafe {
            mmap(
                null_mut(),
                PART * 8,
                protection,
                MapFlags::SHARED,
                file,
                start,
            )
        }?;
        let part = NonNull::new(part.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RankProfile {
            part,
            procedures: Mutex::default(),
            peers: Mutex::default(),
        })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < PART);
        // SAFETY: within the mapping, which is valid as long as this value. Its words are accessed
        // as atomics only.
        unsafe { self.part.add(at).as_ref() }
    }

    fn set(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    fn get(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    fn add(&self, at: usize, value: u64) {
        self.word(at).fetch_add(value, Ordering::Relaxed);
    }

    /// Records the end of the starting call `procedure`, such as MPI_Init: it has taken all the
    /// time from the rank's start until `now`.
    pub fn begin(&self, procedure: &'static str, now: u64) {
        self.enter(procedure, 0);
        self.leave(now, None);
        self.set(head::STARTED, now);
        self.set(head::STATE, RUNNING);
    }

    /// Records that the program calls a procedure at the time `now`.
    pub fn enter(&self, procedure: &'static str, now: u64) {
        let place = self.place_of(procedure);
        self.set(head::SINCE, now);
        self.set(head::TIME, now);
        self.set(head::CURRENT, place.map_or(0, |place| place as u64 + 1));
        if let Some(place) = place {
            self.add(PROCEDURES_AT + place * PROCEDURE + NAME, 1);
        }
    }

    /// Records that the running procedure returns at the time `now`. `waited` is the time for which
    /// the rank has been idle in MPI since its start, if that is known.
    pub fn leave(&self, now: u64, waited: Option<u64>) {
        let time = now.saturating_sub(self.get(head::SINCE));
        self.add(head::IN_MPI, time);
        if let Some(procedure) = self.current() {
            self.add(procedure + NAME + 1, time);
        }
        self.set(head::TIME, now);
        self.set(head::WAITED, waited.map_or(0, |time| time + 1));
        self.set(head::CURRENT, 0);
    }

    /// Records that the last procedure, such as MPI_Finalize, returns.
    pub fn finish(&self, now: u64, waited: Option<u64>) {
        if self.get(head::CURRENT) != 0 {
            self.leave(now, waited);
        }
        self.set(head::TIME, now);
        self.set(head::STATE, FINISHED);
    }

    /// Records that a message of `bytes` bytes to `peer` has begun.
    pub fn sent(&self, peer: usize, bytes: usize) {
        let len = bytes as u64;
        let count = |at: usize| {
            self.add(at, 1);
            self.add(at + 1, len);
        };
        count(SIZES_AT + class_of(bytes) * CLASS);
        if let Some(procedure) = self.current() {
            self.add(procedure + NAME + 2, len);
        }
        count(match self.place_of_peer(peer) {
            Some(place) => PEERS_AT + place * PEER + 1,
            None => head::OTHERS,
        });
    }

    /// Records the number of connections to a rail from processes outside the job, since the start
    /// of the rank. Rails from [`MOST_RAILS`] on have no counter.
    pub fn strangers(&self, rail: usize, count: u64) {
        if rail < MOST_RAILS {
            self.set(head::STRANGERS + rail, count);
        }
    }

    /// Records the outages since the start of the rank: the number of times that it had no path to
    /// a peer, and their duration in nanoseconds.
    pub fn outages(&self, count: u64, nanos: u64) {
        self.set(head::OUTAGES, count);
        self.set(head::OUTAGES + 1, nanos.saturating_mul(1000));
    }

    /// Records the computing of the rank: its time in nanoseconds, the number of involuntary
    /// context switches during it, and the greatest number of threads that computed at once.
    pub fn computed(&self, switches: u64, nanos: u64, threads: usize) {
        self.set(head::SWITCHES, switches.saturating_add(1));
        self.set(head::SWITCHES + 1, nanos.saturating_mul(1000));
        self.set(head::SWITCHES + 2, threads as u64);
    }

    /// Records the picoseconds that the rank has worked inside MPI on its own memory, since its
    /// start.
    pub fn worked(&self, picos: u64) {
        self.set(head::WORKED, picos);
    }

    /// Records the picoseconds by which the progress thread has made computing longer, since the
    /// rank's start.
    pub fn delayed(&self, picos: u64) {
        self.set(head::DELAYED, picos);
    }

    /// Adds to the bytes that were read from files, and written to them, in no virtual time.
    pub fn free_files(&self, read: u64, written: u64) {
        self.add(head::FREE_FILES, read);
        self.add(head::FREE_FILES + 1, written);
    }

    /// Records that the rank requested MPI_THREAD_MULTIPLE, and got less.
    pub fn lacks_threads(&self) {
        self.set(head::LACKS_THREADS, 1);
    }

    /// Writes a text into `words` words from `at` on. A longer text is cut off.
    fn set_text(&self, at: usize, words: usize, text: &str) {
        let mut bytes = text.bytes().chain(std::iter::repeat(0));
        for word in at..at + words {
            let next = std::array::from_fn(|_| bytes.next().unwrap_or(0));
            self.set(word, u64::from_ne_bytes(next));
        }
    }

    /// The position of the running procedure's entry, in words.
    fn current(&self) -> Option<usize> {
        let number = self.get(head::CURRENT).checked_sub(1)?;
        Some(PROCEDURES_AT + number as usize * PROCEDURE)
    }

    fn place_of(&self, procedure: &'static str) -> Option<usize> {
        let mut known = lock(&self.procedures);
        // A name mostly comes from one place in the program.
        let is_it = |one: &&str| std::ptr::eq(*one, procedure);
        let place = known.iter().position(is_it);
        let place = place.or_else(|| known.iter().position(|one| *one == procedure));
        if place.is_some() {
            return place;
        }
        let place = known.len();
        if place == MOST_PROCEDURES {
            return None;
        }
        known.push(procedure);
        self.set_text(PROCEDURES_AT + place * PROCEDURE, NAME, procedure);
        // The reader sees the entry only once it is complete.
        let number = self.word(head::PROCEDURES);
        number.store(known.len() as u64, Ordering::Release);
        Some(place)
    }

    fn place_of_peer(&self, peer: usize) -> Option<usize> {
        let mut known = lock(&self.peers);
        if let Some(place) = known.get(&peer) {
            return Some(*place);
        }
        let place = known.len();
        if place >= MOST_PEERS {
            return None;
        }
        known.insert(peer, place);
        self.set(PEERS_AT + place * PEER, peer as u64);
        let number = self.word(head::PEERS);
        number.store(known.len() as u64, Ordering::Release);
        Some(place)
    }
}

impl Drop for RankProfile {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and no reference to it is left.
        let _ = unsafe { munmap(self.part.as_ptr().cast(), PART * 8) };
    }
}

/// The hash of a rank's number, which need not resist anybody.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_usize((*byte).into()));
    }

    fn write_usize(&mut self, number: usize) {
        // An odd number, so that different numbers stay different, with bits all over the word.
        self.0 = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c55);
    }
}

/// Locks a mutex, also a poisoned one: its contents are always consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
