//! Handles: small integers that name an object of a rank and know when it has been freed.
//!
//! A predefined handle has the ABI's value, below 4096. A user's handle is
//! `0x1000 + ((generation << 20 | index) << 4 | kind)`, which fits a positive `int`, so that the ABI's conversions to
//! and from integers change nothing. A freed index comes back with the next generation, and a handle of another kind or
//! generation is recognised.

/// Which kind of object a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    Comm = 1,
    Datatype = 2,
    Group = 3,
    Op = 4,
    Info = 5,
    Errhandler = 6,
    Request = 7,
    Message = 8,
    Keyval = 9,
}

const FIRST: u32 = 0x1000;
const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// The largest number of generations whose handles all fit in 31 bits.
const GENERATIONS: u32 = 127;

/// The objects of one kind.
pub struct Slab<T> {
    kind: Kind,
    entries: Vec<Entry<T>>,
    /// The first free entry, [`NONE`] if there is none.
    free: u32,
    len: usize,
}

struct Entry<T> {
    /// The handle of the object that is here, or of the next one that will be.
    handle: u32,
    place: Place<T>,
}

enum Place<T> {
    Free { next: u32 },
    Taken(T),
}

const NONE: u32 = u32::MAX;

/// Room for so many objects is made at first, and then for as many again each time.
const SMALLEST: u32 = 32;

impl<T> Slab<T> {
    pub const fn new(kind: Kind) -> Slab<T> {
        Slab {
            kind,
            entries: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// Stores an object. `None` when there are a million of them already.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Option<u32> {
        self.insert_with(|| value)
    }

    /// The same for an object that is made where it will be.
    #[inline(always)]
    pub fn insert_with(&mut self, value: impl FnOnce() -> T) -> Option<u32> {
        if self.free == NONE {
            self.grow()?;
        }
        let entry = self.entries.get_mut(self.free as usize)?;
        let Place::Free { next } = entry.place else {
            return None;
        };
        // A free place has nothing to drop.
        std::mem::forget(std::mem::replace(&mut entry.place, Place::Taken(value())));
        self.free = next;
        self.len += 1;
        Some(entry.handle)
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
            place: Place::Free {
                next: if at + 1 < end { at + 1 } else { NONE },
            },
        }));
        self.free = index;
        Some(())
    }

    /// Where the object of a handle stands if there is one: a handle of another kind or generation has another value.
    #[inline(always)]
    fn index(handle: u32) -> usize {
        (handle.wrapping_sub(FIRST) >> 4 & INDEX_MASK) as usize
    }

    #[inline(always)]
    pub fn get(&self, handle: u32) -> Option<&T> {
        match self.entries.get(Self::index(handle))? {
            Entry {
                handle: here,
                place: Place::Taken(value),
            } if *here == handle => Some(value),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        match self.entries.get_mut(Self::index(handle))? {
            Entry {
                handle: here,
                place: Place::Taken(value),
            } if *here == handle => Some(value),
            _ => None,
        }
    }

    /// Takes the object out; its handle, and every copy of it, is invalid from now on.
    #[inline]
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        self.get(handle)?;
        let (place, next) = self.leave(handle)?;
        match std::mem::replace(place, Place::Free { next }) {
            Place::Taken(value) => Some(value),
            Place::Free { .. } => None,
        }
    }

    /// Drops the object where it is.
    #[inline(always)]
    pub fn discard(&mut self, handle: u32) {
        if self.get(handle).is_some()
            && let Some((place, next)) = self.leave(handle)
        {
            *place = Place::Free { next };
        }
    }

    /// Makes the place of a valid handle the first free one; gives the place, and the free one to be noted in it.
    #[inline(always)]
    fn leave(&mut self, handle: u32) -> Option<(&mut Place<T>, u32)> {
        let index = Self::index(handle);
        let entry = self.entries.get_mut(index)?;
        let generation = (handle - FIRST) >> (4 + INDEX_BITS);
        entry.handle = match generation + 1 {
            GENERATIONS => handle - (generation << (4 + INDEX_BITS)),
            _ => handle + (1 << (4 + INDEX_BITS)),
        };
        self.len -= 1;
        let next = std::mem::replace(&mut self.free, index as u32);
        Some((&mut entry.place, next))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().filter_map(|entry| match &entry.place {
            Place::Taken(value) => Some((entry.handle, value)),
            Place::Free { .. } => None,
        })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_is_recognised_though_its_place_is_taken_again() {
        let mut slab = Slab::new(Kind::Comm);
        let first = slab.insert("first").unwrap();
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second").unwrap();
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&"second")));
        assert_eq!(slab.remove(first), None);
    }

    #[test]
    fn handles_of_other_kinds_and_wild_values_name_nothing() {
        let mut comms = Slab::new(Kind::Comm);
        let mut types = Slab::new(Kind::Datatype);
        let comm = comms.insert(()).unwrap();
        types.insert(()).unwrap();
        assert!(types.get(comm).is_none());
        for wild in [0, 1, 0x101, 0x1000, u32::MAX, i32::MAX as u32] {
            assert!(comms.get(wild).is_none(), "{wild:#x}");
        }
        assert!(comm >= 0x1000 && comm <= i32::MAX as u32);
    }
}
