//! The messages of a replay, counted by their sizes.

use profile::SizeClass;

/// The number of classes: 0 bytes, each power of two, and what is beyond the last.
const CLASSES: usize = 66;

/// The messages of a replay by size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts([(u64, u64); CLASSES]);

impl Default for Counts {
    fn default() -> Counts {
        Counts([(0, 0); CLASSES])
    }
}

impl Counts {
    /// Counts a message.
    pub(crate) fn add(&mut self, bytes: u64) {
        let class = match bytes {
            0 => 0,
            bytes => 1 + (u64::BITS - (bytes - 1).leading_zeros()) as usize,
        };
        if let Some((count, sum)) = self.0.get_mut(class) {
            *count += 1;
            *sum += bytes;
        }
    }

    /// The classes that have messages, by size.
    pub(crate) fn sizes(&self) -> Vec<SizeClass> {
        let classes = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, (count, _))| *count > 0);
        let class = |(class, (count, bytes)): (usize, &(u64, u64))| SizeClass {
            up_to: match class {
                0 => 0,
                class => 1u64.checked_shl(class as u32 - 1).unwrap_or(u64::MAX),
            },
            count: *count,
            bytes: *bytes,
        };
        classes.map(class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_belongs_to_the_least_power_of_two_that_holds_it() {
        let mut counts = Counts::default();
        for bytes in [0, 1, 2, 3, 4, 1000, 1024, u64::MAX] {
            counts.add(bytes);
        }
        let sizes = counts.sizes();
        let classes: Vec<(u64, u64)> = sizes.iter().map(|one| (one.up_to, one.count)).collect();
        let wanted = [(0, 1), (1, 1), (2, 1), (4, 2), (1024, 2), (u64::MAX, 1)];
        assert_eq!(classes, wanted);
        assert_eq!(sizes[4].bytes, 2024);
    }
}
