//! Handles: integers that name an object of a rank, and are recognized as invalid after it has been
//! freed.
//!
//! A predefined handle has the ABI's value, below 4096. A user's handle is `0x1000 + ((generation
//! << 20 | index) << 4 | kind)`. It fits a positive `int`, so the ABI's conversions to and from
//! integers change nothing. A freed index is used again with the next generation, so a handle of
//! another kind or generation never equals a valid one.

/// The kind of object that a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ObjectKind {
    /// A communicator.
    Comm = 1,
    /// A datatype.
    Datatype = 2,
    /// A group.
    Group = 3,
    /// An operation of reductions.
    Op = 4,
    /// An info object.
    Info = 5,
    /// An error handler.
    Errhandler = 6,
    /// A request.
    Request = 7,
    /// A message that a matched probe has claimed.
    Message = 8,
    /// A key of attributes.
    Keyval = 9,
    /// A window.
    Window = 10,
    /// A file.
    File = 11,
}

const FIRST: u32 = 0x1000;
const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// The largest number of generations whose handles all fit in 31 bits.
const GENERATIONS: u32 = 127;

/// The objects of one kind, by handle.
pub struct Slab<T> {
    kind: ObjectKind,
    entries: Vec<Entry<T>>,
    /// The index of the first free entry of the slab, or [`NONE`].
    free: u32,
    len: usize,
}

struct Entry<T> {
    /// The handle of the object in this entry. Of a free entry: the handle of the object that will
    /// be stored in it next.
    handle: u32,
    contents: Contents<T>,
}

enum Contents<T> {
    Free { next: u32 },
    Taken(T),
}

const NONE: u32 = u32::MAX;

/// Number of entries allocated at first; each later allocation doubles it.
const SMALLEST: u32 = 32;

impl<T> Slab<T> {
    /// An empty slab for objects of this kind.
    pub const fn new(kind: ObjectKind) -> Slab<T> {
        Slab {
            kind,
            entries: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// Stores an object and returns its handle. `None` if there are a million already.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Option<u32> {
        self.insert_with(|| value)
    }

    /// Stores an object that is made in the memory of the table, and returns its handle. `None` if
    /// there are a million already.
    #[inline(always)]
    pub fn insert_with(&mut self, value: impl FnOnce() -> T) -> Option<u32> {
        if self.free == NONE {
            self.grow()?;
        }
        let entry = self.entries.get_mut(self.free as usize)?;
        let Contents::Free { next } = entry.contents else {
            return None;
        };
        // A free entry has nothing to drop.
        std::mem::forget(std::mem::replace(
            &mut entry.contents,
            Contents::Taken(value()),
        ));
        self.free = next;
        self.len += 1;
        Some(entry.handle)
    }

    /// True if another object can be stored.
    pub fn has_room(&self) -> bool {
        self.free != NONE || self.entries.len() <= INDEX_MASK as usize
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Option<()> {
        let index = u32::try_from(self.entries.len())
            .ok()
            .filter(|&index| index <= INDEX_MASK)?;
        let end = (2 * index).clamp(SMALLEST, INDEX_MASK + 1);
        let kind = self.kind as u32;
        self.entries.reserve_exact((end - index) as usize);
        self.entries.extend((index..end).map(|at| Entry {
            handle: FIRST + (at << 4 | kind),
            contents: Contents::Free {
                next: if at + 1 < end { at + 1 } else { NONE },
            },
        }));
        self.free = index;
        Some(())
    }

    /// The index that a handle names. The entry's own handle differs if the kind or the generation
    /// differs.
    #[inline(always)]
    fn index(handle: u32) -> usize {
        (handle.wrapping_sub(FIRST) >> 4 & INDEX_MASK) as usize
    }

    /// The object with this handle.
    #[inline(always)]
    pub fn get(&self, handle: u32) -> Option<&T> {
        match self.entries.get(Self::index(handle))? {
            Entry {
                handle: here,
                contents: Contents::Taken(value),
            } if *here == handle => Some(value),
            _ => None,
        }
    }

    /// The object with this handle, as a mutable reference.
    #[inline(always)]
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        match self.entries.get_mut(Self::index(handle))? {
            Entry {
                handle: here,
                contents: Contents::Taken(value),
            } if *here == handle => Some(value),
            _ => None,
        }
    }

    /// Removes the object with this handle, and returns it. The handle becomes invalid.
    #[inline]
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        self.get(handle)?;
        let (contents, next) = self.leave(handle)?;
        match std::mem::replace(contents, Contents::Free { next }) {
            Contents::Taken(value) => Some(value),
            Contents::Free { .. } => None,
        }
    }

    /// Drops the object with this handle without a move. The handle becomes invalid.
    #[inline(always)]
    pub fn discard(&mut self, handle: u32) {
        if self.get(handle).is_some()
            && let Some((contents, next)) = self.leave(handle)
        {
            *contents = Contents::Free { next };
        }
    }

    /// Puts the entry of a valid handle at the head of the free list. Returns its contents, and the
    /// next free entry, which the caller stores there.
    #[inline(always)]
    fn leave(&mut self, handle: u32) -> Option<(&mut Contents<T>, u32)> {
        let index = Self::index(handle);
        let entry = self.entries.get_mut(index)?;
        let generation = (handle - FIRST) >> (4 + INDEX_BITS);
        entry.handle = match generation + 1 {
            GENERATIONS => handle - (generation << (4 + INDEX_BITS)),
            _ => handle + (1 << (4 + INDEX_BITS)),
        };
        self.len -= 1;
        let next = std::mem::replace(&mut self.free, index as u32);
        Some((&mut entry.contents, next))
    }

    /// All objects with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries
            .iter()
            .filter_map(|entry| match &entry.contents {
                Contents::Taken(value) => Some((entry.handle, value)),
                Contents::Free { .. } => None,
            })
    }

    /// The number of objects of this kind.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no objects of this kind.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_is_recognised_though_its_index_is_used_again() {
        let mut slab = Slab::new(ObjectKind::Comm);
        let first = slab.insert("first").unwrap();
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second").unwrap();
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&"second")));
        assert_eq!(slab.remove(first), None);
    }

    #[test]
    fn handles_of_other_kinds_and_wild_values_name_nothing() {
        let mut comms = Slab::new(ObjectKind::Comm);
        let mut types = Slab::new(ObjectKind::Datatype);
        let comm = comms.insert(()).unwrap();
        types.insert(()).unwrap();
        assert!(types.get(comm).is_none());
        for wild in [0, 1, 0x101, 0x1000, u32::MAX, i32::MAX as u32] {
            assert!(comms.get(wild).is_none(), "{wild:#x}");
        }
        assert!(comm >= 0x1000 && comm <= i32::MAX as u32);
    }
}
