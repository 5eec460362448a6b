//! Sets of ranks that count their members.

use std::ops::Range;

/// A set of ranks of a job.
#[derive(Debug, Clone)]
pub(super) struct Members {
    is_in: Vec<bool>,
    count: usize,
}

impl Members {
    pub(super) fn new(ranks: usize) -> Self {
        Members {
            is_in: vec![false; ranks],
            count: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a rank, if it is not in the set.
    pub(super) fn insert(&mut self, rank: usize) {
        let is_new = !std::mem::replace(&mut self.is_in[rank], true);
        self.count += usize::from(is_new);
    }

    /// Adds ranks.
    pub(super) fn extend(&mut self, ranks: impl Iterator<Item = usize>) {
        ranks.for_each(|rank| self.insert(rank));
    }

    pub(super) fn clear(&mut self) {
        self.is_in.fill(false);
        self.count = 0;
    }

    /// Keeps only members of this range.
    pub(super) fn keep(&mut self, range: &Range<usize>) {
        for (rank, is_in) in self.is_in.iter_mut().enumerate() {
            *is_in &= range.contains(&rank);
        }
        self.count = self.is_in.iter().filter(|&&is_in| is_in).count();
    }
}

/// Whether a range lies in one of these.
pub(super) fn covers(ranges: &[Range<usize>], part: &Range<usize>) -> bool {
    part.start <= part.end
        && ranges
            .iter()
            .any(|range| range.start <= part.start && part.end <= range.end)
}

/// Whether all parts lie in these ranges, and do not name a rank over and over.
pub(super) fn covers_all(ranges: &[Range<usize>], parts: &[Range<usize>]) -> bool {
    let size = |ranges: &[Range<usize>]| -> usize { ranges.iter().map(Range::len).sum() };
    parts.iter().all(|part| covers(ranges, part)) && size(parts) <= size(ranges)
}
