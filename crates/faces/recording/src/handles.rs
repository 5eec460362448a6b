//! The numbers of a trace for the handles of a rank, in each class of handles.

use std::collections::{BTreeSet, HashMap};

use trace::{FIRST_MADE, NUMBER_OF_MEMORY};

/// The numbers of the program's buffers, in the order of their first use. Addresses differ from run
/// to run, but the library can distinguish buffers.
#[derive(Default)]
pub(crate) struct Buffers(HashMap<u64, i64>);

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

/// The numbers that stand for handles in the trace, by class.
#[derive(Default)]
pub(crate) struct Handles(HashMap<String, Class>);

/// The numbers that stand for the handles of one class.
#[derive(Default)]
struct Class {
    /// The numbers of each handle. Operations that are complete at once may share one handle.
    numbers: HashMap<usize, Vec<i64>>,
    /// The numbers of objects that are gone. New objects take the lowest, so that equal steps of a
    /// program have equal numbers.
    free: BTreeSet<i64>,
    /// The number of handle numbers that have been used.
    count: i64,
}

impl Handles {
    /// The number of a handle; `None` for one that no call has made. `before`: the number of times
    /// that the handle occurs earlier in this array.
    pub(crate) fn number(&self, class: &str, handle: usize, before: usize) -> Option<i64> {
        match handle as i64 {
            predefined @ 0..FIRST_MADE => Some(predefined),
            _ => {
                let numbers = self.0.get(class)?.numbers.get(&handle)?;
                numbers.get(before).or(numbers.last()).copied()
            }
        }
    }

    /// The number of a handle that a call has returned. It is new, unless the object is known.
    pub(crate) fn returned(&mut self, class: &str, handle: usize) -> i64 {
        let known = self.number(class, handle, 0);
        if let Some(number) = known.filter(|number| class != "request" || *number < FIRST_MADE) {
            return number;
        }
        let class = self.0.entry(class.to_string()).or_default();
        let number = class.free.pop_first().unwrap_or_else(|| {
            class.count += 1;
            FIRST_MADE + class.count - 1
        });
        class.numbers.entry(handle).or_default().push(number);
        number
    }

    /// Forgets an object that is gone, with its handle and its number.
    pub(crate) fn gone(&mut self, class: &str, handle: usize, number: i64) {
        let Some(class) = self.0.get_mut(class) else {
            return;
        };
        if let Some(numbers) = class.numbers.get_mut(&handle) {
            let before = numbers.len();
            numbers.retain(|own| *own != number);
            if numbers.len() < before {
                class.free.insert(number);
            }
            if numbers.is_empty() {
                class.numbers.remove(&handle);
            }
        }
    }
}
