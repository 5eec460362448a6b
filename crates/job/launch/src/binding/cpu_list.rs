//! Sets of hardware threads, identified by the kernel's numbers.

use std::collections::BTreeSet;
use std::fmt;

use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use crate::ranges::ranges;

/// A set of hardware threads, by the kernel's numbers. Its text has the kernel's form: `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CpuList(BTreeSet<usize>);

impl CpuList {
    /// Parses the kernel's form, `0-3,8`. An empty text is an empty set. `None`: the text is not a
    /// list.
    pub fn parse(text: &str) -> Option<CpuList> {
        let text = text.trim();
        let words = text.split(',').filter(|_| !text.is_empty());
        let mut numbers = BTreeSet::new();
        for word in words {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let number = |text: &str| text.parse().ok().filter(|&number| number < MOST);
            let (first, last): (usize, usize) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            numbers.extend(first..=last);
        }
        Some(CpuList(numbers))
    }

    /// The set as an affinity mask for system calls.
    pub(crate) fn mask(&self) -> CpuSet {
        let mut mask = CpuSet::new();
        let known = self.iter().filter(|&number| number < CpuSet::MAX_CPU);
        known.for_each(|number| mask.set(number));
        mask
    }

    /// The numbers of the hardware threads, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The smallest number of a hardware thread in the set.
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// The number of hardware threads in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if this hardware thread is in the set.
    pub fn contains(&self, number: usize) -> bool {
        self.0.contains(&number)
    }

    /// The hardware threads that are in this set and not in `other`.
    pub fn without(&self, other: &CpuList) -> CpuList {
        CpuList(self.0.difference(&other.0).copied().collect())
    }
}

/// The upper bound of the numbers, which limits the memory for a list like `0-9999999`.
const MOST: usize = 1 << 16;

impl From<&CpuSet> for CpuList {
    fn from(mask: &CpuSet) -> CpuList {
        (0..CpuSet::MAX_CPU)
            .filter(|&number| mask.is_set(number))
            .collect()
    }
}

impl FromIterator<usize> for CpuList {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> CpuList {
        CpuList(numbers.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<usize> = self.iter().collect();
        f.write_str(&ranges(&numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_list_is_the_kernels() {
        for (text, shown) in [
            ("", ""),
            ("0-3,8\n", "0-3,8"),
            ("5,0,1", "0-1,5"),
            ("7-7", "7"),
        ] {
            assert_eq!(CpuList::parse(text).unwrap().to_string(), shown);
        }
        for text in ["x", "1-", "3-1", "1,,2", "-1", "0-99999999", " , "] {
            assert_eq!(CpuList::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_mask_has_the_same_numbers() {
        let list = CpuList::parse("1,63-65,1023").unwrap();
        assert_eq!(CpuList::from(&list.mask()), list);
    }
}
