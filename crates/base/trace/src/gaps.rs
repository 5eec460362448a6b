//! The computing before each call of a rank, in nanoseconds, as runs of equal times.

use crate::bytes::{Bytes, Result, put};

/// The computing times between the calls of a rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gaps {
    /// Each time with the number of calls in a row that have it.
    runs: Vec<(u64, u64)>,
}

impl Gaps {
    /// Adds the computing time before each of the next `calls` calls.
    pub fn push(&mut self, nanos: u64, calls: u64) {
        match self.runs.last_mut() {
            Some((last, run)) if *last == nanos => *run += calls,
            _ if calls > 0 => self.runs.push((nanos, calls)),
            _ => (),
        }
    }

    /// The computing times in the order of the calls.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let times = self.runs.iter();
        times.flat_map(|&(nanos, run)| (0..run).map(move |_| nanos))
    }

    /// The computing times in runs: a time, and the number of calls in a row that have it.
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.runs
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, self.runs.len() as u64);
        for &(nanos, run) in &self.runs {
            put(to, nanos);
            put(to, run);
        }
    }

    /// Reads the computing times of all calls, of which there are at most `most`.
    pub(crate) fn read(from: &mut Bytes, most: u64) -> Result<Gaps> {
        let (mut gaps, mut left) = (Gaps::default(), most);
        for _ in 0..from.count()? {
            let (nanos, run) = (from.number()?, from.number()?);
            if run == 0 || run > left {
                return from.wrong("times of other calls than the rank makes");
            }
            left -= run;
            gaps.push(nanos, run);
        }
        Ok(gaps)
    }

    /// The number of calls that have a computing time.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|(_, run)| run).sum()
    }
}
