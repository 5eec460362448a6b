//! Rates of local work, as a recording stores them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::kind::{LocalWork, class};

/// The amount of work, in bytes or elements, whose time a rate is.
pub(super) const AMOUNT: u64 = 1024;
/// The class of the longest vector that a line of [`Rates::read`] may name.
const LONGEST: u32 = 62;

/// The times of 1,024 bytes or elements of work, in picoseconds, by kind of work and by class of
/// the vector's length: a long vector is not in a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates(BTreeMap<(u64, u32), u64>);

impl Rates {
    /// A table that knows no rate yet.
    pub const fn none() -> Rates {
        Rates(BTreeMap::new())
    }

    /// True if the rate of no kind is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the time of 1,024 bytes or elements, in picoseconds.
    pub fn set(&mut self, work: LocalWork, class: u32, picos: u64) {
        self.0.insert((work.encode(), class), picos);
    }

    /// Sets the rate by a measurement: `amount` bytes or elements took `picos` picoseconds.
    pub fn set_sum(&mut self, work: LocalWork, class: u32, amount: u64, picos: u64) {
        let each = u128::from(picos) * u128::from(AMOUNT) / u128::from(amount.max(1));
        self.set(work, class, u64::try_from(each).unwrap_or(u64::MAX));
    }

    /// The time in picoseconds of work on `amount` bytes or elements, a part of a vector of `of`
    /// ones, by the rate of the nearest length. `None`: no rate of this kind is known.
    pub fn time(&self, work: LocalWork, amount: usize, of: usize) -> Option<u64> {
        let (code, wanted) = (work.encode(), class(of));
        let known = self.0.range((code, 0)..=(code, u32::MAX));
        let (_, picos) = known.min_by_key(|((_, class), _)| class.abs_diff(wanted))?;
        let time = u128::from(*picos) * amount as u128 / u128::from(AMOUNT);
        Some(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// The rates of a computer that needs `thousandths` / 1000 of the time.
    pub fn scaled(&self, thousandths: u64) -> Rates {
        let scaled = |picos: u64| {
            let picos = u128::from(picos) * u128::from(thousandths) / 1000;
            u64::try_from(picos).unwrap_or(u64::MAX)
        };
        Rates(
            self.0
                .iter()
                .map(|(key, picos)| (*key, scaled(*picos)))
                .collect(),
        )
    }

    /// The median of each rate over all members of `all` that have it.
    pub fn median<'a>(all: impl IntoIterator<Item = &'a Rates>) -> Rates {
        let mut known: BTreeMap<(u64, u32), Vec<u64>> = BTreeMap::new();
        for (key, picos) in all.into_iter().flat_map(|rates| &rates.0) {
            known.entry(*key).or_default().push(*picos);
        }
        let middle = |mut picos: Vec<u64>| {
            picos.sort_unstable();
            picos[(picos.len() - 1) / 2].midpoint(picos[picos.len() / 2])
        };
        Rates(
            known
                .into_iter()
                .map(|(key, picos)| (key, middle(picos)))
                .collect(),
        )
    }

    /// The rates as lines of text: the kind, the least length of the class, the time of 1,024 bytes
    /// or elements in picoseconds.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for ((code, class), picos) in &self.0 {
            if let Some(work) = LocalWork::decode(*code) {
                // Writing to a String does not fail.
                let _ = writeln!(text, "{work} {} {picos}", 1u64 << class);
            }
        }
        text
    }

    /// Adds the rate that a line has. `None`: the line is invalid.
    pub fn read(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let (work, length, picos) = (words.next()?, words.next()?, words.next()?);
        let length: u64 = length.parse().ok()?;
        let fits = length.is_power_of_two() && length.ilog2() <= LONGEST && words.next().is_none();
        let work = LocalWork::parse(work).filter(|_| fits)?;
        self.set(work, length.ilog2(), picos.parse().ok()?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Predefined};

    const SUM: LocalWork = LocalWork::Combine(Op::Sum, Predefined::DOUBLE);

    fn rates() -> Rates {
        let mut rates = Rates::default();
        rates.set(SUM, 12, 50_000);
        rates.set(SUM, 20, 200_000);
        rates.set(LocalWork::Function(1), 3, 7_000_000);
        rates
    }

    #[test]
    fn the_rate_of_the_nearest_length_counts() {
        let rates = rates();
        assert_eq!(rates.time(SUM, 4096, 4096), Some(200_000));
        // A part of a long vector.
        assert_eq!(rates.time(SUM, 4096, 1 << 20), Some(800_000));
        assert_eq!(rates.time(SUM, 1 << 23, 1 << 23), Some(200_000 << 13));
        assert_eq!(rates.time(SUM, 8, 8), Some(390));
        assert_eq!(rates.time(LocalWork::Copy, 8, 8), None);
        assert_eq!(rates.time(LocalWork::Function(2), 8, 8), None);
    }

    #[test]
    fn rates_come_back_from_their_lines() {
        let (rates, mut read) = (rates(), Rates::default());
        for line in rates.lines().lines() {
            read.read(line).unwrap();
        }
        assert_eq!(read, rates);
        for wrong in [
            "copy 4096",
            "copy 4095 3",
            "copy 4096 3 3",
            "nothing 4096 3",
            "copy 9223372036854775808 3",
            "copy 1 -3",
        ] {
            assert_eq!(read.read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_disturbed_recording_does_not_count() {
        let mut disturbed = rates();
        disturbed.set(SUM, 20, 900_000);
        let mut other = rates();
        other.set(LocalWork::Copy, 20, 3);
        let all = [&disturbed, &rates(), &other];
        let median = Rates::median(all);
        assert_eq!(median.time(SUM, 1024, 1 << 20), Some(200_000));
        assert_eq!(median.time(LocalWork::Copy, 1024, 1024), Some(3));
        assert_eq!(median.scaled(500).time(SUM, 1024, 1 << 20), Some(100_000));
    }
}
