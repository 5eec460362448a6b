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
    free: Vec<u32>,
}

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub const fn new(kind: Kind) -> Slab<T> {
        Slab {
            kind,
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Stores an object. `None` when there are a million of them already.
    #[inline]
    pub fn insert(&mut self, value: T) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[index as usize].value = Some(value);
                index
            }
            None => self.grow(value)?,
        };
        Some(self.handle(index))
    }

    #[cold]
    fn grow(&mut self, value: T) -> Option<u32> {
        let index = u32::try_from(self.entries.len())
            .ok()
            .filter(|&index| index <= INDEX_MASK)?;
        self.entries.push(Entry {
            generation: 0,
            value: Some(value),
        });
        Some(index)
    }

    fn handle(&self, index: u32) -> u32 {
        let generation = self.entries[index as usize].generation;
        FIRST + ((generation << INDEX_BITS | index) << 4 | self.kind as u32)
    }

    /// The index that a handle names, if it is of our kind and of the current generation.
    #[inline(always)]
    fn index(&self, handle: u32) -> Option<usize> {
        let bits = handle.wrapping_sub(FIRST);
        let index = (bits >> 4 & INDEX_MASK) as usize;
        let entry = self.entries.get(index)?;
        (bits & 15 == self.kind as u32 && bits >> (4 + INDEX_BITS) == entry.generation)
            .then_some(index)
    }

    #[inline(always)]
    pub fn get(&self, handle: u32) -> Option<&T> {
        let index = self.index(handle)?;
        self.entries[index].value.as_ref()
    }

    #[inline(always)]
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut T> {
        let index = self.index(handle)?;
        self.entries[index].value.as_mut()
    }

    /// Takes the object out; its handle, and every copy of it, is invalid from now on.
    #[inline]
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        let index = self.index(handle)?;
        let entry = &mut self.entries[index];
        let value = entry.value.take()?;
        entry.generation = (entry.generation + 1) % GENERATIONS;
        self.free.push(index as u32);
        Some(value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = (0..).zip(&self.entries);
        numbered.filter_map(|(index, entry)| Some((self.handle(index), entry.value.as_ref()?)))
    }

    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
