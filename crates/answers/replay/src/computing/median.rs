//! The combination of several recordings of one program into one.
//!
//! Sure calls are the same in all of the recordings, if the program does not decide by time. Polls,
//! waits and readings of the clock between two sure calls may differ: those of one recording stay,
//! and together take the median of the times of all.

use datatype::local_work::Rates;

use super::kind::Kind;
use super::{Computing, Line};

impl Computing {
    /// The calls of one recording, each with the median of its times in all of them. `None` if not
    /// all of them have the same sure calls, or if there is none.
    pub fn median(all: &[&Computing]) -> Option<Computing> {
        let base = middle_of(all)?;
        if all.iter().any(|one| one.ranks() != base.ranks()) {
            return None;
        }
        let of_rank = |rank: usize| {
            let parts = all.iter().map(|one| Part::new(one, rank)).collect();
            median_of_rank(Part::new(base, rank), parts)
        };
        let ranks = (0..base.ranks()).map(of_rank);
        Some(Computing {
            ranks: ranks.collect::<Option<_>>()?,
            work: median_of_work(all),
            ..base.clone()
        })
    }

    /// One recording for several: their [`median`](Computing::median). Where their sure calls
    /// differ, the recording with the median of the total computing times. `None` if there is none.
    pub fn middle(all: &[&Computing]) -> Option<Computing> {
        Computing::median(all).or_else(|| {
            Some(Computing {
                work: median_of_work(all),
                ..middle_of(all)?.clone()
            })
        })
    }

    /// True if all recordings have the same calls on every rank. The position of a call then
    /// identifies it in each of them.
    pub fn have_equal_calls(all: &[&Computing]) -> bool {
        let same = |two: &[&Computing]| {
            let calls = |one: &Computing, rank: usize| -> Vec<_> {
                let calls = one.calls(rank);
                calls.map(|(name, key, _)| (name.to_owned(), key)).collect()
            };
            let (one, other) = (two[0], two[1]);
            one.ranks() == other.ranks()
                && (0..one.ranks()).all(|rank| calls(one, rank) == calls(other, rank))
        };
        all.windows(2).all(same)
    }
}

/// The recording with the median of the total computing times.
fn middle_of<'a>(all: &[&'a Computing]) -> Option<&'a Computing> {
    let mut ordered = all.to_vec();
    ordered.sort_by_key(|one| one.total());
    ordered.get(ordered.len().saturating_sub(1) / 2).copied()
}

fn median_of_work(all: &[&Computing]) -> Rates {
    Rates::median(all.iter().map(|one| &one.work))
}

/// The lines of a rank of a recording that are not combined yet.
struct Part<'a> {
    of: &'a Computing,
    rest: &'a [Line],
}

impl<'a> Part<'a> {
    fn new(of: &'a Computing, rank: usize) -> Part<'a> {
        let rest = &of.ranks[rank];
        Part { of, rest }
    }

    /// Takes the lines up to the next sure call, or to the end.
    fn take(&mut self) -> Gap<'a> {
        let is_sure = |line: &Line| self.of.kind(line) == Kind::Sure;
        let sure = self.rest.iter().position(is_sure);
        let (lines, rest) = self
            .rest
            .split_at(sure.map_or(self.rest.len(), |at| at + 1));
        self.rest = rest;
        Gap { of: self.of, lines }
    }
}

/// A sure call, with the other lines of its rank before it.
struct Gap<'a> {
    of: &'a Computing,
    lines: &'a [Line],
}

impl Gap<'_> {
    /// True if both gaps end with the same sure call, or with none.
    fn ends_as(&self, other: &Gap) -> bool {
        let end = |gap: &Gap| {
            let last = gap.lines.last()?;
            (gap.of.kind(last) == Kind::Sure).then_some(*last)
        };
        match (end(self), end(other)) {
            (Some(one), Some(another)) => self.of.named(&one) == other.of.named(&another),
            (None, None) => true,
            _ => false,
        }
    }

    fn has_calls_of(&self, other: &Gap) -> bool {
        let mut pairs = self.lines.iter().zip(other.lines);
        self.lines.len() == other.lines.len()
            && pairs.all(|(one, another)| self.of.named(one) == other.of.named(another))
    }

    fn total(&self) -> u64 {
        let lines = self.lines.iter();
        lines.fold(0, |sum: u64, line| sum.saturating_add(line.nanos))
    }
}

fn median_of_rank(mut base: Part, mut parts: Vec<Part>) -> Option<Vec<Line>> {
    let mut combined = Vec::with_capacity(base.rest.len());
    loop {
        let (own, gaps) = (base.take(), parts.iter_mut().map(Part::take));
        let gaps: Vec<Gap> = gaps.collect();
        if gaps.iter().any(|gap| !gap.ends_as(&own)) {
            return None;
        }
        if own.lines.is_empty() && gaps.iter().all(|gap| gap.lines.is_empty()) {
            return Some(combined);
        }
        match gaps.iter().all(|gap| gap.has_calls_of(&own)) {
            true => add_medians(&own, &gaps, &mut combined),
            false => add_scaled(&own, &gaps, &mut combined),
        }
    }
}

/// Adds the lines of gaps that have the same calls: each with the median of its times.
fn add_medians(own: &Gap, gaps: &[Gap], to: &mut Vec<Line>) {
    for (at, line) in own.lines.iter().enumerate() {
        let mut nanos: Vec<u64> = gaps.iter().map(|gap| gap.lines[at].nanos).collect();
        let nanos = median(&mut nanos);
        to.push(Line { nanos, ..*line });
    }
}

/// Adds the lines of a gap whose calls differ from those of the others, scaled to the median of all
/// totals.
fn add_scaled(own: &Gap, gaps: &[Gap], to: &mut Vec<Line>) {
    let wanted = median(&mut gaps.iter().map(Gap::total).collect::<Vec<u64>>());
    let total = u128::from(own.total());
    let (mut before, mut added) = (0u128, 0);
    let last = own.lines.len().saturating_sub(1);
    for (at, line) in own.lines.iter().enumerate() {
        before += u128::from(line.nanos);
        let share = (before * u128::from(wanted)).checked_div(total);
        // If the gap has no time, its last line gets all of it.
        let until = match at == last {
            true => wanted,
            false => share.unwrap_or(0) as u64,
        };
        to.push(Line {
            nanos: until - added,
            ..*line
        });
        added = until;
    }
}

/// The median of numbers; of an even number of them the mean of the two in the middle.
fn median(numbers: &mut [u64]) -> u64 {
    numbers.sort_unstable();
    let [low, high] = [(numbers.len() - 1) / 2, numbers.len() / 2].map(|at| numbers[at]);
    low.midpoint(high)
}
