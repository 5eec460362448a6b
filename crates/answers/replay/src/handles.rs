//! The library's handles for the numbers of a trace, in each class of handles.

use std::collections::BTreeMap;

use trace::{FIRST_MADE, HANDLE_CLASSES};

/// A class of handles: its number among the classes of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(usize);

/// The class of requests.
pub(crate) const REQUEST: Class = Class(6);

impl Class {
    /// The class with this name. `None`: values of this kind are no handles.
    pub(crate) fn of(kind: &str) -> Option<Class> {
        let known = HANDLE_CLASSES.iter().position(|name| *name == kind);
        known.map(Class)
    }

    fn name(self) -> &'static str {
        HANDLE_CLASSES[self.0]
    }
}

/// The handles of one rank: for each class, those by number.
#[derive(Default)]
pub(crate) struct Handles([Made; HANDLE_CLASSES.len()]);

/// The handles of one class. Numbers are the lowest free ones, so almost all lie side by side.
#[derive(Default)]
struct Made {
    /// The handles from the number `FIRST_MADE` on.
    first: Vec<usize>,
    others: BTreeMap<i64, usize>,
}

impl Handles {
    /// The handle of a class that has this number in the trace.
    #[inline]
    pub(crate) fn get(&self, class: Class, number: i64) -> Result<usize, String> {
        if (0..FIRST_MADE).contains(&number) {
            return Ok(number as usize);
        }
        let made = &self.0[class.0];
        let place = usize::try_from(number.wrapping_sub(FIRST_MADE)).ok();
        let found = place.and_then(|place| made.first.get(place));
        let found = found.or_else(|| made.others.get(&number));
        found.copied().ok_or_else(|| missing(class, number))
    }

    /// Sets the handle with a number, after a call has made or changed it.
    #[inline]
    pub(crate) fn set(&mut self, class: Class, number: i64, handle: usize) {
        if number < FIRST_MADE {
            return;
        }
        let made = &mut self.0[class.0];
        let place = (number - FIRST_MADE) as usize;
        if let Some(known) = made.first.get_mut(place) {
            *known = handle;
        } else if place == made.first.len() {
            made.first.push(handle);
        } else {
            made.others.insert(number, handle);
        }
    }
}

#[cold]
fn missing(class: Class, number: i64) -> String {
    format!("there is no {} number {number}", class.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_numbers_of_its_own() {
        let class = |name| Class::of(name).unwrap();
        let [comm, request, win] = ["comm", "request", "win"].map(class);
        let mut all = Handles::default();
        all.set(comm, FIRST_MADE, 7);
        all.set(request, FIRST_MADE, 8);
        all.set(request, FIRST_MADE, 9);
        assert_eq!(all.get(comm, FIRST_MADE), Ok(7));
        assert_eq!(all.get(request, FIRST_MADE), Ok(9));
        assert_eq!(all.get(win, 5), Ok(5));
        let missing = "there is no win number 4096";
        assert_eq!(all.get(win, FIRST_MADE), Err(missing.into()));
        assert_eq!((Class::of("count"), REQUEST), (None, request));
    }

    #[test]
    fn numbers_may_come_in_any_order() {
        let group = Class::of("group").unwrap();
        let mut all = Handles::default();
        let numbers = [3, 0, 1, i64::MAX - FIRST_MADE, 2, 3, 4];
        for (handle, number) in numbers.into_iter().enumerate() {
            all.set(group, FIRST_MADE + number, handle);
        }
        let found =
            [0, 1, 2, 3, 4, i64::MAX - FIRST_MADE].map(|at| all.get(group, FIRST_MADE + at));
        assert_eq!(found, [1, 2, 4, 5, 6, 3].map(Ok));
        assert!(all.get(group, FIRST_MADE + 5).is_err() && all.get(group, -1).is_err());
    }
}
