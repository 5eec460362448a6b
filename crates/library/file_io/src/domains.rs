//! The division of a file among the processes that access it for all others.

use std::ops::Range;

/// Domains of a file start at multiples of this many bytes: the pages of the system's cache.
const ALIGNMENT: u64 = 4096;

/// A range of a file, divided evenly into the domains of aggregators. Each aggregator accesses its
/// domain in rounds, one window in each round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domains {
    range: Range<u64>,
    /// Length of a domain in bytes; the last may have fewer.
    each: u64,
    window: u64,
}

impl Domains {
    /// Divides a range among `count` aggregators whose windows have at most `window` bytes.
    pub fn new(range: Range<u64>, count: usize, window: u64) -> Domains {
        let first = range.start / ALIGNMENT * ALIGNMENT;
        let len = range.end.saturating_sub(first);
        let each = len.div_ceil(count.max(1) as u64);
        Domains {
            range,
            each: each.next_multiple_of(ALIGNMENT),
            window: window.max(1),
        }
    }

    /// The number of rounds that the aggregator of the longest domain needs.
    pub fn rounds(&self) -> u64 {
        let len = self.range.end.saturating_sub(self.range.start);
        self.each.min(len).div_ceil(self.window)
    }

    /// The range of the file that an aggregator accesses in a round. Empty: it has no window then.
    pub fn window(&self, aggregator: usize, round: u64) -> Range<u64> {
        let rest = self.rest(aggregator, round);
        rest.start..rest.start.saturating_add(self.window).min(rest.end)
    }

    /// The range of the file that an aggregator accesses in a round and all later ones.
    pub fn rest(&self, aggregator: usize, round: u64) -> Range<u64> {
        // Inner bounds are aligned, so that no page belongs to two aggregators.
        let bound = |at: u64| match at {
            0 => self.range.start,
            _ => {
                let first = self.range.start / ALIGNMENT * ALIGNMENT;
                let bound = first.saturating_add(at.saturating_mul(self.each));
                bound.min(self.range.end)
            }
        };
        let (start, end) = (bound(aggregator as u64), bound(aggregator as u64 + 1));
        let skipped = round.saturating_mul(self.window);
        start.saturating_add(skipped).min(end)..end
    }

    /// The first round, not before `round`, in which an aggregator's window has the byte at this
    /// offset of its domain.
    pub fn round_of(&self, aggregator: usize, round: u64, offset: u64) -> u64 {
        let start = self.rest(aggregator, round).start;
        round + offset.saturating_sub(start) / self.window
    }

    /// The number of windows of all aggregators together.
    pub fn windows(&self) -> u64 {
        let len = self.range.end.saturating_sub(self.range.start);
        len.div_ceil(self.window)
    }

    /// The greatest length of a window in bytes.
    pub fn window_len(&self) -> u64 {
        self.window
    }
}

/// Sorts runs, each an offset and a length, and joins those that touch or overlap.
pub fn joined(runs: &mut Vec<(u64, u64)>) {
    // Runs of a few processes are sorted already: a stable sort merges them.
    runs.sort();
    let mut kept = 0usize;
    for at in 0..runs.len() {
        let (offset, len) = runs[at];
        if len == 0 {
            continue;
        }
        match kept.checked_sub(1).map(|last| &mut runs[last]) {
            Some((start, size)) if offset <= *start + *size => {
                *size = (*size).max(offset + len - *start);
            }
            _ => {
                runs[kept] = (offset, len);
                kept += 1;
            }
        }
    }
    runs.truncate(kept);
}
