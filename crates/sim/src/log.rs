//! What is kept of a run for who looks at it when it is over: entries of a few words each, one after the other, in the
//! memory of the world. Who has the world's file reads them there, even if all ranks have been killed.
//!
//! What must always hold: an entry counts once it is whole; a reader believes nothing that it reads.

use std::alloc::Layout;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use allocator_api2::alloc::Allocator;

use crate::memory::{Header, ROOM, Shared};

/// Logs that a world has room for.
pub const SLOTS: usize = 4;

/// Where the header says what a log is.
#[repr(C)]
pub(crate) struct Slot {
    /// From the beginning of the memory; 0 is none.
    first: std::cell::Cell<u64>,
    lost: std::cell::Cell<u64>,
}

/// Entries are kept in pieces of so many bytes.
const CHUNK: usize = 64 << 10;
/// A piece begins with where the next one is, from the beginning of the memory, and how many entries it has.
const HEAD: usize = 2;

const fn capacity(words: usize) -> usize {
    (CHUNK / 8 - HEAD) / words
}

/// The end of a log that is written, with entries of `N` words.
pub struct Log<const N: usize> {
    memory: Shared,
    slot: usize,
    /// The piece that is being filled, from the beginning of the memory.
    last: u64,
    used: usize,
    /// How many more entries it takes.
    left: u64,
}

/// A log as it is found afterwards.
#[derive(Debug, Default, PartialEq)]
pub struct Kept<const N: usize> {
    pub entries: Vec<[u64; N]>,
    /// Entries that came when it was full.
    pub lost: u64,
}

impl<const N: usize> Log<N> {
    /// A log in one of the slots of a world, of at most so many entries.
    pub fn new(memory: Shared, slot: usize, most: u64) -> Log<N> {
        const { assert!(N > 0 && capacity(N) > 0) };
        Log {
            memory,
            slot,
            last: 0,
            used: 0,
            left: most,
        }
    }

    fn slot(&self) -> &Slot {
        &self.memory.header().logs[self.slot]
    }

    #[inline]
    pub fn push(&mut self, entry: [u64; N]) {
        if self.left == 0 || (self.last == 0 || self.used == capacity(N)) && !self.grow() {
            self.left = 0;
            let lost = &self.slot().lost;
            return lost.set(lost.get() + 1);
        }
        self.left -= 1;
        let chunk = self.memory.at(self.last);
        // SAFETY: the chunk is ours, of `CHUNK` bytes, and `used` is below its capacity.
        unsafe {
            let place = chunk.add(HEAD + self.used * N);
            place.cast::<[u64; N]>().write(entry);
            self.used += 1;
            chunk.add(1).write(self.used as u64);
        }
    }

    #[cold]
    fn grow(&mut self) -> bool {
        let Ok(layout) = Layout::from_size_align(CHUNK, 64) else {
            return false;
        };
        let Ok(piece) = self.memory.allocate(layout) else {
            return false;
        };
        let chunk = piece.cast::<u64>().as_ptr();
        let offset = self.memory.offset(chunk);
        // SAFETY: it was handed out just now, and is larger than the head.
        unsafe { chunk.cast::<[u64; HEAD]>().write([0; HEAD]) };
        match self.last {
            0 => self.slot().first.set(offset),
            // SAFETY: the last piece is ours.
            last => unsafe { self.memory.at(last).write(offset) },
        }
        (self.last, self.used) = (offset, 0);
        true
    }

    /// What it holds; it is empty from then on.
    pub fn take(&mut self) -> Kept<N> {
        let memory = self.memory;
        let slot = self.slot();
        let reader = Reader::<N, _> {
            fetch: |at: u64, into: &mut [u8]| {
                // SAFETY: the offsets are those of this log's pieces, which are as long as what is asked for.
                unsafe {
                    let from = memory.at(at).cast::<u8>();
                    std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
                }
                Ok(())
            },
            most: u64::MAX,
            words: PhantomData,
        };
        let kept = reader.read(slot.first.get(), slot.lost.get());
        slot.first.set(0);
        slot.lost.set(0);
        (self.last, self.used) = (0, 0);
        kept.unwrap_or_default()
    }
}

/// The log in a slot of the world in this file, of at most so many entries. Nothing may be running in it any more.
pub fn read<const N: usize>(world: &File, slot: usize, most: u64) -> io::Result<Kept<N>> {
    let mut words = [0; 16];
    let at = offset_of!(Header, logs) + slot * size_of::<Slot>();
    world.read_exact_at(&mut words, at as u64)?;
    let [first, lost] = [0, 8].map(|at| word(&words, at));
    let reader = Reader::<N, _> {
        fetch: |at, into: &mut [u8]| world.read_exact_at(into, at),
        most,
        words: PhantomData,
    };
    reader.read(first, lost)
}

struct Reader<const N: usize, F> {
    fetch: F,
    most: u64,
    words: PhantomData<[u64; N]>,
}

impl<const N: usize, F: FnMut(u64, &mut [u8]) -> io::Result<()>> Reader<N, F> {
    fn read(mut self, first: u64, lost: u64) -> io::Result<Kept<N>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it has been written over");
        let mut entries = Vec::new();
        let mut bytes = vec![0; CHUNK];
        let mut at = first;
        while at != 0 {
            if !at.is_multiple_of(8) || at > (ROOM - CHUNK) as u64 {
                return Err(damaged());
            }
            (self.fetch)(at, &mut bytes)?;
            let [next, used] = [0, 8].map(|at| word(&bytes, at));
            // A piece before another one is full, so that a circle ends at the limit.
            let full = used == capacity(N) as u64;
            let too_many = used > self.most.saturating_sub(entries.len() as u64);
            if used > capacity(N) as u64 || next != 0 && !full || too_many {
                return Err(damaged());
            }
            entries.extend((0..used as usize).map(|entry| {
                let start = (HEAD + entry * N) * 8;
                std::array::from_fn(|number| word(&bytes, start + number * 8))
            }));
            at = next;
        }
        Ok(Kept { entries, lost })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |word| u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn what_is_pushed_is_found_up_to_the_limit() {
        let memory = Memory::private().unwrap();
        let most = 2 * capacity(3) as u64 + 5;
        let mut log = Log::<3>::new(memory.shared(), 1, most);
        assert_eq!(log.take(), Kept::default());
        let entries: Vec<[u64; 3]> = (0..most + 7).map(|n| [n, n * n, !n]).collect();
        entries.iter().for_each(|entry| log.push(*entry));
        let kept = log.take();
        assert_eq!(kept.entries, entries[..most as usize]);
        assert_eq!(kept.lost, 7);
        assert_eq!(log.take(), Kept::default());
    }

    #[test]
    fn a_file_gives_what_was_kept_and_a_damaged_one_an_error() {
        let file = Memory::create().unwrap();
        let memory = Memory::open(&file).unwrap();
        memory.shared().prepare();
        let most = 20_000;
        let mut log = Log::<2>::new(memory.shared(), 2, most);
        let entries: Vec<[u64; 2]> = (0..10_000).map(|n| [n, n + 1]).collect();
        entries.iter().for_each(|entry| log.push(*entry));
        let file = File::from(file);
        assert_eq!(read::<2>(&file, 2, most).unwrap().entries, entries);
        assert_eq!(read::<2>(&file, 3, most).unwrap(), Kept::default());
        // Its first piece follows itself, and then lies nowhere.
        let shared = memory.shared();
        let slot = &shared.header().logs[2];
        let first = slot.first.get();
        // SAFETY: the piece is this test's.
        unsafe { memory.shared().at(first).write(first) };
        assert!(read::<2>(&file, 2, most).is_err());
        slot.first.set(1 << 60);
        assert!(read::<2>(&file, 2, most).is_err());
    }
}
