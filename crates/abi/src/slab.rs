//! A table of objects behind user handles. A handle holds its place, the number of the place's present
//! occupant and its kind, so that a freed handle, or one of another kind, is recognised.
//!
//! A handle is `0x1000 + ((generation << 20 | index) << 4 | kind)`: above every predefined handle, and
//! a positive int, so that `toint` and `fromint` need no table.

const FIRST: usize = 0x1000;
const KIND_BITS: u32 = 4;
const INDEX_BITS: u32 = 20;
/// The largest generation whose handles all fit in 31 bits.
const GENERATIONS: u32 = 127;

pub struct Slab<T> {
    kind: usize,
    places: Vec<Place<T>>,
    free: Vec<usize>,
}

struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub const fn new(kind: usize) -> Slab<T> {
        Slab {
            kind,
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The handle of a new object, or `None` if there are a million already.
    pub fn insert(&mut self, value: T) -> Option<usize> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.places.len() < 1 << INDEX_BITS => {
                self.places.push(Place {
                    generation: 0,
                    value: None,
                });
                self.places.len() - 1
            }
            None => return None,
        };
        let place = &mut self.places[index];
        place.value = Some(value);
        let name = (place.generation as usize) << INDEX_BITS | index;
        Some(FIRST + (name << KIND_BITS | self.kind))
    }

    pub fn get(&self, handle: usize) -> Option<&T> {
        let (index, generation) = self.decode(handle)?;
        let place = self.places.get(index)?;
        place
            .value
            .as_ref()
            .filter(|_| place.generation == generation)
    }

    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        let (index, generation) = self.decode(handle)?;
        let place = self.places.get_mut(index)?;
        place
            .value
            .as_mut()
            .filter(|_| place.generation == generation)
    }

    pub fn remove(&mut self, handle: usize) -> Option<T> {
        self.get(handle)?;
        let (index, _) = self.decode(handle)?;
        let place = &mut self.places[index];
        place.generation = (place.generation + 1) % GENERATIONS;
        self.free.push(index);
        place.value.take()
    }

    fn decode(&self, handle: usize) -> Option<(usize, u32)> {
        let name = handle.checked_sub(FIRST)?;
        let generation = name >> (KIND_BITS + INDEX_BITS);
        let index = name >> KIND_BITS & ((1 << INDEX_BITS) - 1);
        let of_kind = name & ((1 << KIND_BITS) - 1) == self.kind;
        (of_kind && generation < GENERATIONS as usize).then_some((index, generation as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_is_not_that_of_the_next_object() {
        let mut slab = Slab::new(5);
        let first = slab.insert("first").unwrap();
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second").unwrap();
        assert_ne!(first, second);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"second"));
    }

    #[test]
    fn handles_are_positive_ints_above_the_predefined_ones() {
        let mut slab = Slab::new(15);
        for _ in 0..2 * GENERATIONS {
            let handle = slab.insert(()).unwrap();
            assert!((0x1000..1 << 31).contains(&handle), "{handle:#x}");
            slab.remove(handle);
        }
        let largest =
            ((GENERATIONS as usize - 1) << INDEX_BITS | ((1 << INDEX_BITS) - 1)) << KIND_BITS | 15;
        assert!(FIRST + largest < 1 << 31);
    }

    #[test]
    fn another_kind_and_nonsense_are_refused() {
        let mut infos = Slab::new(5);
        let info = infos.insert(()).unwrap();
        assert_eq!(Slab::<()>::new(3).get(info), None);
        for handle in [0, 0x130, 0xfff, info + 1, info + (1 << 24), usize::MAX] {
            assert_eq!(infos.get(handle), None, "{handle:#x}");
        }
    }
}
