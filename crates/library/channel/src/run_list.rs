//! Lists of runs: exposed memory of several runs, as its owner describes it to its readers.
//!
//! The owner keeps the list in its own memory as long as the exposure. A reader copies the list and
//! checks the copy, because the owner may be at fault or hostile.
//!
//! Invariant: the runs of a checked list have exactly the exposed length, none is empty, and no
//! address or sum overflows. So no position of a transfer lies outside of it.

use std::ops::Range;

use datatype::Buffer;

/// The greatest number of runs in a list: a call of the kernel takes as many parts (`IOV_MAX`).
pub(crate) const MOST_RUNS: usize = 1024;
/// Least mean length of the runs of a message that is read where it lies, in bytes. A call of the
/// kernel costs 0.31 µs for each run (AMD EPYC, virtual machine; `measurements/gaps`), 75 ps a byte
/// at this length; whole messages in packets cost 45 to 93 ps a byte.
pub const LEAST_RUN: usize = 4 << 10;
/// Length of one encoded run in bytes: its address and its length.
const RUN_BYTES: usize = 16;

/// The list of the runs of a buffer of this rank, in its order.
#[derive(Debug)]
pub(crate) struct RunList(Box<[[u64; 2]]>);

impl RunList {
    /// The runs of the first `len` bytes of `buffer`. `None`: they are more than `most` or
    /// [`MOST_RUNS`], or the buffer is shorter.
    pub(crate) fn of(buffer: &Buffer, len: usize, most: usize) -> Option<RunList> {
        let runs = buffer.slice(0, len).segments(0, most.min(MOST_RUNS));
        let listed: usize = runs.iter().map(|(_, len)| len).sum();
        let runs = runs.into_iter();
        let runs = runs.map(|(address, len)| [address as u64, len as u64]);
        (listed == len && len > 0).then(|| RunList(runs.collect()))
    }

    /// A list of these runs, which are not checked.
    #[cfg(test)]
    pub(crate) fn made_up(runs: &[[u64; 2]]) -> RunList {
        RunList(runs.into())
    }

    /// The runs of the list, as addresses and lengths.
    pub(crate) fn runs(&self) -> &[[u64; 2]] {
        &self.0
    }

    /// The address of the list, and its number of runs.
    pub(crate) fn place(&self) -> (usize, usize) {
        (self.0.as_ptr().expose_provenance(), self.0.len())
    }
}

/// The runs of a peer's memory, after a check of the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckedRuns(Vec<Run>);

/// A run of a peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    address: u64,
    /// Number of bytes up to the end of this run, those of the runs before it included.
    end: u64,
}

impl CheckedRuns {
    /// Takes the runs of a list that was copied from its owner, for exposed memory of `len` bytes.
    /// False: the list is invalid, and there are no runs now.
    pub(crate) fn take(&mut self, list: &[u8], len: u64) -> bool {
        self.0.clear();
        let is_valid = self.take_all(list) && self.0.last().is_some_and(|run| run.end == len);
        if !is_valid {
            self.0.clear();
        }
        is_valid
    }

    /// Takes the runs of a list up to the first invalid one. False: there is one, or the length of
    /// the list is invalid.
    fn take_all(&mut self, list: &[u8]) -> bool {
        let (list, rest) = list.as_chunks::<RUN_BYTES>();
        let mut end = 0;
        rest.is_empty()
            && list.len() <= MOST_RUNS
            && list.iter().all(|run| {
                let run = decode(run, end);
                end = run.map_or(0, |run| run.end);
                self.0.extend(run);
                run.is_some()
            })
    }

    /// The parts of memory with bytes `range` of the runs, as (address, length). Parts end with the
    /// last run.
    pub(crate) fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        let first = self.0.partition_point(|run| run.end <= range.start);
        let (before, runs) = self.0.split_at(first);
        let mut begin = before.last().map_or(0, |run| run.end);
        let mut start = range.start;
        runs.iter().map_while(move |run| {
            let end = run.end.min(range.end);
            let part = (start < end).then(|| (run.address + (start - begin), end - start));
            (start, begin) = (end, run.end);
            part
        })
    }
}

/// The runs of a peer's memory that this rank has listed last: a long message is read in several
/// steps.
#[derive(Default)]
pub(crate) struct LatestRuns {
    /// The world rank of the peer, and the number of its exposure. `None`: there are no runs.
    of: Option<(usize, u64)>,
    runs: CheckedRuns,
    /// Memory into which the peer's list of runs is copied.
    copy: Vec<u8>,
}

impl LatestRuns {
    /// The runs of this exposure of a peer. `None`: other runs were listed later.
    pub(crate) fn of(&self, peer: usize, number: u64) -> Option<&CheckedRuns> {
        (self.of == Some((peer, number))).then_some(&self.runs)
    }

    /// Copies a list whose runs are known, as [`room`](LatestRuns::room) lets its caller do.
    pub(crate) fn copy_from(&mut self, list: impl Iterator<Item = [u64; 2]>) {
        self.of = None;
        self.copy.clear();
        let words = list.flatten();
        words.for_each(|word| self.copy.extend(word.to_ne_bytes()));
    }

    /// Memory for the copy of a list of `count` runs. `None`: no list may be so long.
    pub(crate) fn room(&mut self, count: u64) -> Option<&mut [u8]> {
        self.of = None;
        let count = usize::try_from(count).ok()?;
        (count <= MOST_RUNS).then(|| {
            self.copy.resize(count * RUN_BYTES, 0);
            &mut self.copy[..]
        })
    }

    /// Takes the runs of the copied list, for this exposure of `len` bytes. False: the list is
    /// invalid.
    pub(crate) fn take_copy(&mut self, peer: usize, number: u64, len: u64) -> bool {
        let is_valid = self.runs.take(&self.copy, len);
        self.of = is_valid.then_some((peer, number));
        is_valid
    }
}

/// The run with this encoding, behind runs of `before` bytes. `None`: it is invalid.
fn decode(run: &[u8; RUN_BYTES], before: u64) -> Option<Run> {
    let ([address, len], _) = run.as_chunks::<8>() else {
        return None;
    };
    let (address, len) = (u64::from_ne_bytes(*address), u64::from_ne_bytes(*len));
    address.checked_add(len)?;
    let end = before.checked_add(len)?;
    (len > 0).then_some(Run { address, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(runs: &[(u64, u64)]) -> Vec<u8> {
        let words = runs.iter().flat_map(|(address, len)| [*address, *len]);
        words.flat_map(u64::to_ne_bytes).collect()
    }

    fn checked(runs: &[(u64, u64)], len: u64) -> Option<CheckedRuns> {
        let mut checked = CheckedRuns::default();
        checked.take(&list(&[(1, 9)]), 9);
        checked.take(&list(runs), len).then_some(checked)
    }

    #[test]
    fn a_list_is_taken_only_if_it_is_what_is_exposed() {
        let good = [(5000, 10), (100, 1), (5010, 20)];
        assert!(checked(&good, 31).is_some());
        for len in [0, 30, 32, u64::MAX] {
            assert_eq!(checked(&good, len), None, "{len}");
        }
        assert_eq!(checked(&[], 0), None);
        // Empty runs, and sums or addresses that overflow.
        assert_eq!(checked(&[(5000, 10), (6000, 0)], 10), None);
        assert_eq!(checked(&[(5000, 0)], 0), None);
        assert_eq!(checked(&[(0, u64::MAX), (0, 11)], 10), None);
        assert_eq!(checked(&[(0, u64::MAX - 9), (0, 20)], 10), None);
        assert_eq!(checked(&[(u64::MAX - 9, 10), (100, 1)], 11), None);
        assert!(checked(&[(u64::MAX - 10, 10), (100, 1)], 11).is_some());
        // Half a run, and too many of them.
        let mut runs = CheckedRuns::default();
        assert!(!runs.take(&list(&good)[1..], 31) && !runs.take(&list(&good)[..40], 11));
        assert!(checked(&[(7, 1); MOST_RUNS], MOST_RUNS as u64).is_some());
        assert_eq!(checked(&[(7, 1); MOST_RUNS + 1], MOST_RUNS as u64), None);
        assert_eq!(
            checked(&[(7, 1); MOST_RUNS + 1], MOST_RUNS as u64 + 1),
            None
        );
    }

    #[test]
    fn any_range_is_found_in_its_runs() {
        let runs = [(5000u64, 10), (100, 1), (7000, 20), (7020, 3)];
        let all: Vec<u64> = runs
            .iter()
            .flat_map(|(address, len)| *address..address + len)
            .collect();
        let checked = checked(&runs, 34).unwrap();
        for start in 0..=34 {
            for end in start..=34 {
                let parts: Vec<_> = checked.parts(start..end).collect();
                assert!(parts.iter().all(|(_, len)| *len > 0) && parts.len() <= 4);
                let bytes = parts.iter().flat_map(|(at, len)| *at..at + len);
                let wanted = &all[start as usize..end as usize];
                assert!(bytes.eq(wanted.iter().copied()), "{start}..{end}");
            }
        }
    }

    #[test]
    fn a_buffer_has_a_list_if_its_runs_are_few() {
        let bytes = [0u8; 64];
        let ty = datatype::Type::vector(8, 4, 8, &datatype::Predefined::BYTE.into()).unwrap();
        // SAFETY: the bytes stay in place, and nothing writes to them.
        let buffer = unsafe { Buffer::new(bytes.as_ptr().cast_mut(), 1, &ty) };
        let list = RunList::of(&buffer, 32, 8).unwrap();
        let start = bytes.as_ptr() as u64;
        assert!((0..8).all(|run| list.0[run] == [start + 8 * run as u64, 4]));
        assert_eq!(list.place(), (list.0.as_ptr() as usize, 8));
        let part = RunList::of(&buffer, 9, 8).unwrap();
        assert_eq!((part.0.len(), part.0[2][1]), (3, 1));
        assert!(RunList::of(&buffer, 32, 7).is_none() && RunList::of(&buffer, 33, 8).is_none());
        assert!(RunList::of(&buffer, 0, 8).is_none());
        assert_eq!((buffer.runs(8), buffer.runs(7)), (Some(8), None));
        assert_eq!(buffer.slice(5, 6).runs(9), Some(2));
    }
}
