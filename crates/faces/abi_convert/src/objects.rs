//! The table of the objects of a class. It has an index, which the program's handle contains, for
//! every handle of the standard ABI that is not predefined.
//!
//! Reading an entry takes no lock. Entries lie in buckets that never move, and are reused.

use crate::library::own_name;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The number of bits of a handle that contain an index.
pub(crate) const INDEX_BITS: u32 = 26;

/// The number of entries of the first bucket, as a power of two. Each further bucket has twice as
/// many.
const FIRST_BUCKET_BITS: u32 = 6;

const BUCKETS: usize = (INDEX_BITS - FIRST_BUCKET_BITS + 1) as usize;

/// An entry of the table: one object. A zeroed entry is unused.
pub(crate) struct Entry {
    /// The handle of the standard ABI; 0 while the entry is unused.
    pub(crate) standard: AtomicUsize,
    /// The number of the program's handles for the object, or a mark of the class.
    pub(crate) references: AtomicU32,
    /// The next entry in the list of unused ones, as its index plus one.
    next: AtomicU32,
}

pub(crate) struct Objects {
    buckets: [AtomicPtr<Entry>; BUCKETS],
    /// The upper half is the number of changes; the lower half is the first unused entry, as the
    /// index plus one.
    unused: AtomicU64,
    /// The first index that no entry has used.
    fresh: AtomicU32,
}

impl Objects {
    /// A table whose first index is `first`.
    pub(crate) const fn new(first: u32) -> Objects {
        Objects {
            buckets: [const { AtomicPtr::new(null_mut()) }; BUCKETS],
            unused: AtomicU64::new(0),
            fresh: AtomicU32::new(first),
        }
    }

    /// The entry with an index; `None` if it never existed.
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&Entry> {
        let (bucket, offset) = position(index);
        let first = self.buckets[bucket].load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: the bucket has as many entries as `position` counts for it, and is never freed.
        Some(unsafe { &*first.add(offset) })
    }

    /// Stores a handle of the standard ABI in an entry, and returns the entry's index.
    pub(crate) fn insert(&self, standard: usize) -> u32 {
        let index = self.reused().unwrap_or_else(|| self.grown());
        let entry = self.get(index).expect("the bucket exists");
        entry.references.store(0, Ordering::Relaxed);
        entry.standard.store(standard, Ordering::Release);
        index
    }

    /// Removes the entry with an index, which can be used again.
    pub(crate) fn remove(&self, index: u32) {
        let Some(entry) = self.get(index) else { return };
        entry.standard.store(0, Ordering::Relaxed);
        let mut head = self.unused.load(Ordering::Relaxed);
        loop {
            entry.next.store(head as u32, Ordering::Relaxed);
            let new = changed(head) | u64::from(index + 1);
            match self
                .unused
                .compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn reused(&self) -> Option<u32> {
        let mut head = self.unused.load(Ordering::Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            let next = self.get(index)?.next.load(Ordering::Relaxed);
            // The compare-and-swap fails if another thread has taken the entry meanwhile, because
            // then the number of changes differs.
            let new = changed(head) | u64::from(next);
            match self
                .unused
                .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
    }

    #[cold]
    fn grown(&self) -> u32 {
        let index = self.fresh.fetch_add(1, Ordering::Relaxed);
        if index >= (1 << INDEX_BITS) - (1 << FIRST_BUCKET_BITS) {
            eprintln!(
                "fishplate: {}: the program has 67 million MPI objects of one class, more than its handles can name",
                own_name()
            );
            std::process::abort();
        }
        let (bucket, _) = position(index);
        if self.buckets[bucket].load(Ordering::Acquire).is_null() {
            self.add_bucket(bucket);
        }
        index
    }

    fn add_bucket(&self, bucket: usize) {
        let layout = Layout::array::<Entry>(1 << (bucket as u32 + FIRST_BUCKET_BITS))
            .expect("a bucket fits into memory");
        // SAFETY: the layout is not empty, and zero is a valid Entry.
        let memory = unsafe { alloc_zeroed(layout) }.cast::<Entry>();
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let slot = &self.buckets[bucket];
        if slot
            .compare_exchange(null_mut(), memory, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: another thread was first, so this memory was never shared.
            unsafe { std::alloc::dealloc(memory.cast(), layout) };
        }
    }
}

/// The bucket of an index, and the offset of its entry in the bucket.
#[inline(always)]
fn position(index: u32) -> (usize, usize) {
    let place = (index & ((1 << INDEX_BITS) - 1)) + (1 << FIRST_BUCKET_BITS);
    let bits = place.ilog2();
    // An index has at most 26 bits, so its bucket exists: the limit only spares a bounds check.
    let bucket = ((bits - FIRST_BUCKET_BITS) as usize).min(BUCKETS - 1);
    (bucket, (place - (1 << bits)) as usize)
}

/// The upper half of a head of the unused entries, incremented.
fn changed(head: u64) -> u64 {
    ((head >> 32).wrapping_add(1) & 0xffff_ffff) << 32
}
