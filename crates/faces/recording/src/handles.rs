//! The numbers of a trace for the handles of a rank, in each class of handles.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trace::{FIRST_MADE, HANDLE_CLASSES, NUMBER_OF_MEMORY};

/// The numbers of the program's buffers, in the order of their first use. Addresses differ from run
/// to run, but the library can distinguish buffers.
#[derive(Default)]
pub(crate) struct Buffers(FxHashMap<u64, i64>);

impl Buffers {
    /// The number of the buffer at an address. Constants such as MPI_IN_PLACE are numbers of their
    /// own.
    pub(crate) fn number(&mut self, address: u64) -> i64 {
        if address < NUMBER_OF_MEMORY as u64 {
            return address as i64;
        }
        let next = NUMBER_OF_MEMORY + self.0.len() as i64;
        *self.0.entry(address).or_insert(next)
    }
}

/// The classes of which several objects may have one handle: operations that are complete at once,
/// or a group that the program gets and frees more than once.
const SHARED: [&str; 3] = ["datatype", "group", "request"];

/// A class of handles that have numbers in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(usize);

impl Class {
    pub(crate) const REQUEST: Class = Class(6);

    /// The class of a kind of parameters.
    pub(crate) fn of(kind: &str) -> Option<Class> {
        let known = HANDLE_CLASSES.iter().position(|class| *class == kind);
        known.map(Class)
    }

    /// True if several objects of the class may have one handle.
    fn is_shared(self) -> bool {
        SHARED.contains(&HANDLE_CLASSES[self.0])
    }
}

/// The numbers that stand for handles in the trace, by class.
#[derive(Default)]
pub(crate) struct Handles {
    classes: [Numbers; HANDLE_CLASSES.len()],
    /// The number of times that a handle other than a request was made or freed.
    generation: u64,
}

/// The numbers that stand for the handles of one class.
#[derive(Default)]
struct Numbers {
    /// The first number of each handle.
    first: FxHashMap<usize, i64>,
    /// The further numbers of handles. A handle that had some keeps its place: operations that are
    /// complete at once come again.
    further: FxHashMap<usize, Vec<i64>>,
    /// The numbers of objects that are gone. New objects take the lowest, so that equal steps of a
    /// program have equal numbers.
    free: BinaryHeap<Reverse<i64>>,
    /// The number of handle numbers that have been used.
    count: i64,
}

impl Handles {
    /// A number that changes when a handle other than a request is made or freed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of a handle; `None` for one that no call has made. `before`: the number of times
    /// that the handle occurs earlier in this array.
    pub(crate) fn number(&self, class: Class, handle: usize, before: usize) -> Option<i64> {
        if let predefined @ 0..FIRST_MADE = handle as i64 {
            return Some(predefined);
        }
        let numbers = &self.classes[class.0];
        let first = numbers.first.get(&handle).copied()?;
        if before == 0 || numbers.further.is_empty() {
            return Some(first);
        }
        let further = numbers.further.get(&handle);
        let further = further.and_then(|all| all.get(before - 1).or(all.last()));
        Some(further.copied().unwrap_or(first))
    }

    /// True if a handle of the class has stood for several objects at once.
    pub(crate) fn shares(&self, class: Class) -> bool {
        !self.classes[class.0].further.is_empty()
    }

    /// The number of a handle that a call has returned. It is new, unless the object is known and
    /// has a handle of its own.
    pub(crate) fn returned(&mut self, class: Class, handle: usize) -> i64 {
        let known = self.number(class, handle, 0);
        let is_known = |number: &i64| !class.is_shared() || *number < FIRST_MADE;
        if let Some(number) = known.filter(is_known) {
            return number;
        }
        self.generation += u64::from(class != Class::REQUEST);
        let numbers = &mut self.classes[class.0];
        let number = numbers.free.pop().map_or_else(
            || {
                numbers.count += 1;
                FIRST_MADE + numbers.count - 1
            },
            |Reverse(number)| number,
        );
        match known {
            None => {
                numbers.first.insert(handle, number);
            }
            Some(_) => numbers.further.entry(handle).or_default().push(number),
        }
        number
    }

    /// Forgets an object that is gone, with its handle and its number.
    pub(crate) fn gone(&mut self, class: Class, handle: usize, number: i64) {
        self.generation += u64::from(class != Class::REQUEST);
        let Numbers {
            first,
            further,
            free,
            ..
        } = &mut self.classes[class.0];
        let is_first = first.get(&handle) == Some(&number);
        let others = further.get_mut(&handle).filter(|all| !all.is_empty());
        let known = match others {
            None if is_first => first.remove(&handle).is_some(),
            None => false,
            Some(all) if is_first => first.insert(handle, all.remove(0)).is_some(),
            Some(all) => {
                let before = all.len();
                all.retain(|own| *own != number);
                all.len() < before
            }
        };
        if known {
            free.push(Reverse(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_with_one_handle_have_numbers_of_their_own() {
        let mut handles = Handles::default();
        let request = Class::of("request").unwrap();
        assert_eq!(request, Class::REQUEST);
        let numbers = [5000, 5000, 6000, 5000].map(|handle| handles.returned(request, handle));
        assert_eq!(numbers, [4096, 4097, 4098, 4099]);
        let in_order = [0, 1, 2, 3].map(|before| handles.number(request, 5000, before));
        assert_eq!(in_order, [4096, 4097, 4099, 4099].map(Some));
        assert!(handles.shares(request) && !handles.shares(Class::of("group").unwrap()));
        handles.gone(request, 5000, 4096);
        handles.gone(request, 5000, 4099);
        assert_eq!(handles.number(request, 5000, 0), Some(4097));
        assert_eq!(handles.number(request, 5000, 1), Some(4097));
        handles.gone(request, 5000, 4097);
        handles.gone(request, 5000, 4097);
        assert_eq!(handles.number(request, 5000, 0), None);
        // The lowest free numbers come first.
        let again = [7000, 8000, 9000].map(|handle| handles.returned(request, handle));
        assert_eq!(again, [4096, 4097, 4099]);
    }

    #[test]
    fn a_group_that_is_got_twice_is_freed_twice() {
        let mut handles = Handles::default();
        let group = Class::of("group").unwrap();
        assert_eq!(
            [700_000; 2].map(|handle| handles.returned(group, handle)),
            [4096, 4097]
        );
        handles.gone(group, 700_000, 4096);
        assert_eq!(handles.number(group, 700_000, 0), Some(4097));
    }

    #[test]
    fn other_objects_keep_their_numbers_and_predefined_ones_are_their_own() {
        let mut handles = Handles::default();
        let comm = Class::of("comm").unwrap();
        assert_eq!(
            [9000, 9000].map(|handle| handles.returned(comm, handle)),
            [4096; 2]
        );
        assert_eq!(handles.number(comm, 0x101, 0), Some(0x101));
        assert_eq!(handles.number(Class::REQUEST, 9000, 0), None);
    }
}
