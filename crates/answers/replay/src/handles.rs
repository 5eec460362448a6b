//! The library's handles for the numbers of a trace, in each class of handles.

use std::collections::BTreeMap;

use trace::FIRST_MADE;

/// The handles of one rank: for each class, which are few, those by number.
#[derive(Default)]
pub(crate) struct Handles(Vec<(Box<str>, BTreeMap<i64, usize>)>);

impl Handles {
    /// The handle of a class that has this number in the trace.
    pub(crate) fn get(&self, class: &str, number: i64) -> Result<usize, String> {
        match number {
            0..FIRST_MADE => Ok(number as usize),
            _ => {
                let mut classes = self.0.iter();
                let known = classes.find(|(name, _)| **name == *class);
                let found = known.and_then(|(_, handles)| handles.get(&number));
                found
                    .copied()
                    .ok_or_else(|| format!("there is no {class} number {number}"))
            }
        }
    }

    /// Sets the handle with a number, after a call has made or changed it.
    pub(crate) fn set(&mut self, class: &str, number: i64, handle: usize) {
        if number < FIRST_MADE {
            return;
        }
        let known = self.0.iter().position(|(name, _)| **name == *class);
        let at = known.unwrap_or_else(|| {
            self.0.push((class.into(), BTreeMap::new()));
            self.0.len() - 1
        });
        self.0[at].1.insert(number, handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_numbers_of_its_own() {
        let mut all = Handles::default();
        all.set("comm", FIRST_MADE, 7);
        all.set("request", FIRST_MADE, 8);
        all.set("request", FIRST_MADE, 9);
        assert_eq!(all.get("comm", FIRST_MADE), Ok(7));
        assert_eq!(all.get("request", FIRST_MADE), Ok(9));
        assert_eq!(all.get("win", 5), Ok(5));
        let missing = "there is no win number 4096";
        assert_eq!(all.get("win", FIRST_MADE), Err(missing.into()));
    }
}
