//! Logs of a run: entries of a few 64-bit words each, in the memory of the world. A reader with the
//! world's file finds them after the run, even if all ranks were killed.
//!
//! Invariant: an entry is counted only once it is complete; a reader checks every value that it
//! reads.

use std::alloc::Layout;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use allocator_api2::alloc::Allocator;

use crate::memory::{Header, ROOM, WorldMemory};

/// The number of logs that a world has.
pub const SLOTS: usize = 8;

/// The entry of one log in the table of logs at the beginning of a world's memory.
#[repr(C)]
pub(crate) struct Slot {
    /// The offset of the first chunk from the beginning of the memory; 0: the log has no chunk.
    first: std::cell::Cell<u64>,
    lost: std::cell::Cell<u64>,
}

/// The size of a chunk of log entries, in bytes.
const CHUNK: usize = 64 << 10;
/// The 64-bit words at the start of a chunk: the offset of the next chunk from the beginning of the
/// memory, and the number of entries in this one.
const HEAD: usize = 2;

const fn capacity(words: usize) -> usize {
    (CHUNK / 8 - HEAD) / words
}

/// The writing end of a log. An entry has `N` words of 64 bits.
pub struct Log<const N: usize> {
    memory: WorldMemory,
    slot: usize,
    /// The offset of the chunk that is being filled, from the beginning of the memory.
    last: u64,
    used: usize,
    /// The number of further entries for which the log has room.
    left: u64,
}

/// The contents of a log, as a reader gets them.
#[derive(Debug, Default, PartialEq)]
pub struct LogContents<const N: usize> {
    /// The entries, in the order in which they were appended.
    pub entries: Vec<[u64; N]>,
    /// The number of log entries for which there was no room.
    pub lost: u64,
}

impl<const N: usize> Log<N> {
    /// Opens the log in slot `slot` of a world, for at most `most` entries.
    pub fn new(memory: WorldMemory, slot: usize, most: u64) -> Log<N> {
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

    /// Appends an entry, or counts it as lost if the log is full.
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
        // SAFETY: just allocated, and larger than the head.
        unsafe { chunk.cast::<[u64; HEAD]>().write([0; HEAD]) };
        match self.last {
            0 => self.slot().first.set(offset),
            // SAFETY: the last chunk belongs to this log.
            last => unsafe { self.memory.at(last).write(offset) },
        }
        (self.last, self.used) = (offset, 0);
        true
    }

    /// Takes all entries out of the log, which is empty afterwards.
    pub fn take(&mut self) -> LogContents<N> {
        let memory = self.memory;
        let slot = self.slot();
        let reader = Reader::<N, _> {
            fetch: |at: u64, into: &mut [u8]| {
                // SAFETY: the offsets are those of this log's chunks, and no more than the length
                // of a chunk is read.
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

/// Reads a log of at most `most` entries from slot `slot` of the world in the file `world`. No rank
/// may be running in the world.
pub fn read<const N: usize>(world: &File, slot: usize, most: u64) -> io::Result<LogContents<N>> {
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
    fn read(mut self, first: u64, lost: u64) -> io::Result<LogContents<N>> {
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
            // Every chunk but the last is full, so that a cycle ends at the limit.
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
        Ok(LogContents { entries, lost })
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
        assert_eq!(log.take(), LogContents::default());
        let entries: Vec<[u64; 3]> = (0..most + 7).map(|n| [n, n * n, !n]).collect();
        entries.iter().for_each(|entry| log.push(*entry));
        let kept = log.take();
        assert_eq!(kept.entries, entries[..most as usize]);
        assert_eq!(kept.lost, 7);
        assert_eq!(log.take(), LogContents::default());
    }

    #[test]
    fn a_file_gives_what_was_kept_and_a_damaged_one_an_error() {
        let file = memory_file::of_length("test", Memory::BYTES).unwrap();
        let memory = Memory::open(&file).unwrap();
        memory.shared().prepare();
        let most = 20_000;
        let mut log = Log::<2>::new(memory.shared(), 2, most);
        let entries: Vec<[u64; 2]> = (0..10_000).map(|n| [n, n + 1]).collect();
        entries.iter().for_each(|entry| log.push(*entry));
        let file = File::from(file);
        assert_eq!(read::<2>(&file, 2, most).unwrap().entries, entries);
        assert_eq!(read::<2>(&file, 3, most).unwrap(), LogContents::default());
        // The first chunk is followed by itself, and then by an offset outside the memory.
        let shared = memory.shared();
        let slot = &shared.header().logs[2];
        let first = slot.first.get();
        // SAFETY: the chunk belongs to this test.
        unsafe { memory.shared().at(first).write(first) };
        assert!(read::<2>(&file, 2, most).is_err());
        slot.first.set(1 << 60);
        assert!(read::<2>(&file, 2, most).is_err());
    }
}
