//! The library's handles for the numbers of a trace, in each class of handles.

use std::collections::HashMap;

use trace::FIRST_MADE;

/// The handles of one rank.
#[derive(Default)]
pub(crate) struct Handles(HashMap<(String, i64), usize>);

impl Handles {
    /// The handle of a class that has this number in the trace.
    pub(crate) fn get(&self, class: &str, number: i64) -> Result<usize, String> {
        match number {
            0..FIRST_MADE => Ok(number as usize),
            _ => {
                let found = self.0.get(&(class.to_string(), number)).copied();
                found.ok_or_else(|| format!("there is no {class} number {number}"))
            }
        }
    }

    /// Sets the handle with a number, after a call has made or changed it.
    pub(crate) fn set(&mut self, class: &str, number: i64, handle: usize) {
        if number >= FIRST_MADE {
            self.0.insert((class.to_string(), number), handle);
        }
    }
}
