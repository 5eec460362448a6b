//! The numbers of a trace for the handles of a rank, in each class of handles.

use std::collections::{BTreeSet, HashMap};

use trace::{FIRST_MADE, NUMBER_OF_MEMORY};

/// The numbers of the program's buffers, in the order of their first use. Addresses differ from run
/// to run, but the library can tell one buffer from another.
#[derive(Default)]
pub(super) struct Buffers(HashMap<u64, i64>);

impl Buffers {
    /// The number of the buffer at an address. Constants such as MPI_IN_PLACE are their own.
    pub(super) fn number(&mut self, address: u64) -> i64 {
        if address < NUMBER_OF_MEMORY as u64 {
            return address as i64;
        }
        let next = NUMBER_OF_MEMORY + self.0.len() as i64;
        *self.0.entry(address).or_insert(next)
    }
}

/// The handles of all classes.
#[derive(Default)]
pub(super) struct Handles(HashMap<String, Class>);

/// The handles of one class.
#[derive(Default)]
struct Class {
    numbers: HashMap<usize, i64>,
    /// The numbers of objects that are gone. New objects take the lowest, so that equal steps of a
    /// program have equal numbers.
    free: BTreeSet<i64>,
}

impl Handles {
    /// The number of a handle; `None` for one that no call has made.
    pub(super) fn number(&self, class: &str, handle: usize) -> Option<i64> {
        match handle as i64 {
            predefined @ 0..FIRST_MADE => Some(predefined),
            _ => self.0.get(class)?.numbers.get(&handle).copied(),
        }
    }

    /// The number of a handle that a call has returned. It is new, unless the handle is known.
    pub(super) fn returned(&mut self, class: &str, handle: usize) -> i64 {
        if let Some(number) = self.number(class, handle) {
            return number;
        }
        let class = self.0.entry(class.to_string()).or_default();
        let next = FIRST_MADE + class.numbers.len() as i64;
        let number = class.free.pop_first().unwrap_or(next);
        class.numbers.insert(handle, number);
        number
    }

    /// Forgets a handle whose object is gone.
    pub(super) fn gone(&mut self, class: &str, handle: usize) {
        if let Some(class) = self.0.get_mut(class)
            && let Some(number) = class.numbers.remove(&handle)
        {
            class.free.insert(number);
        }
    }
}
