//! The calls of one rank as a text of symbols, in which equal stretches are found by their hashes,
//! and in which repetitions can be folded.
//!
//! A hash of 61 bits stands for a stretch: the probability that two different stretches of a
//! program have the same hash is below 10⁻⁶ for a million stretches.

use std::ops::Range;

/// The prime 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;
/// The base of the hashes: any large number.
const BASE: u64 = 0x12fb_38c1_a96d_e6b5;
/// Marks a symbol that does not occur again.
const NONE: u32 = u32::MAX;
/// The number of periods that are tried at each call. A symbol may occur several times in a period.
const TRIES: usize = 8;

/// A repetition that has been folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Fold {
    /// The number of calls of the first repetition.
    pub(super) body: u32,
    /// The number of calls of all repetitions together.
    pub(super) all: u32,
}

/// The calls of a rank as a sequence of symbols, in which repetitions can be folded and equal
/// stretches are found by hashes.
pub(super) struct Text {
    pub(super) symbols: Vec<u32>,
    /// For each symbol, the number of its first call; at the end, the number of calls.
    origin: Vec<u32>,
    /// For each symbol, the repetition that has been folded there.
    folds: Vec<Fold>,
    /// The hashes of all prefixes, by length.
    hashes: Vec<u64>,
    /// The powers of the base, by exponent.
    powers: Vec<u64>,
}

impl Text {
    /// The unfolded text of calls with these symbols.
    pub(super) fn new(symbols: Vec<u32>) -> Text {
        let origin = (0..=symbols.len() as u32).collect();
        let folds = vec![Fold::default(); symbols.len()];
        Text::of(symbols, origin, folds)
    }

    fn of(symbols: Vec<u32>, origin: Vec<u32>, folds: Vec<Fold>) -> Text {
        let mut hashes = Vec::with_capacity(symbols.len() + 1);
        let mut powers = Vec::with_capacity(symbols.len() + 1);
        let (mut hash, mut power) = (0, 1);
        hashes.push(hash);
        powers.push(power);
        for symbol in &symbols {
            hash = reduced(product(hash, BASE) + u64::from(*symbol) + 1);
            power = product(power, BASE);
            hashes.push(hash);
            powers.push(power);
        }
        Text {
            symbols,
            origin,
            folds,
            hashes,
            powers,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The hash of the stretch `range`.
    pub(super) fn hash(&self, range: Range<usize>) -> u64 {
        let before = product(self.hashes[range.start], self.powers[range.len()]);
        reduced(self.hashes[range.end] + PRIME - before)
    }

    /// The number of the call at a position. For the end position, the number of calls.
    pub(super) fn origin(&self, at: usize) -> usize {
        self.origin[at] as usize
    }

    /// Of the repetitions that have been folded within a stretch, the one with the most calls in
    /// its body.
    pub(super) fn longest_fold(&self, range: Range<usize>) -> Fold {
        self.folds[range].iter().max().copied().unwrap_or_default()
    }

    /// The text in which each immediate repetition of at most `most` symbols occurs once, however
    /// often it is repeated. `None` if there are no repetitions. The earliest repetition is folded
    /// first, by its shortest period. Outer loops whose inner loops differ in their numbers of
    /// iterations thereby become equal.
    pub(super) fn fold(&self, most: usize) -> Option<Text> {
        let next = self.next_occurrences();
        let (mut symbols, mut origin, mut folds) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        while at < self.len() {
            let period = self.period(at, most, &next);
            let (end, after) = match period {
                Some(period) => (at + period, self.end_of_run(at, period)),
                None => (at + 1, at + 1),
            };
            let first = symbols.len();
            symbols.extend_from_slice(&self.symbols[at..end]);
            origin.extend_from_slice(&self.origin[at..end]);
            folds.extend_from_slice(&self.folds[at..end]);
            if period.is_some() {
                let calls = |to: usize| self.origin[to] - self.origin[at];
                let (body, all) = (calls(end), calls(after));
                folds[first] = folds[first].max(Fold { body, all });
            }
            at = after;
        }
        origin.push(*self.origin.last()?);
        (symbols.len() < self.len()).then(|| Text::of(symbols, origin, folds))
    }

    /// For each position, the next position with the same symbol.
    fn next_occurrences(&self) -> Vec<u32> {
        let symbols = self.symbols.iter().max().map_or(0, |most| most + 1);
        let mut last = vec![NONE; symbols as usize];
        let mut next = vec![NONE; self.len()];
        for (at, symbol) in self.symbols.iter().enumerate().rev() {
            next[at] = std::mem::replace(&mut last[*symbol as usize], at as u32);
        }
        next
    }

    /// The shortest period with which the text is repeated from position `at` on without a gap;
    /// `None`: no repetition of at most `most` symbols was found.
    fn period(&self, at: usize, most: usize, next: &[u32]) -> Option<usize> {
        let mut other = next[at];
        for _ in 0..TRIES {
            if other == NONE {
                return None;
            }
            let period = other as usize - at;
            let end = at + 2 * period;
            if end > self.len() || period > most {
                return None;
            }
            if self.hash(at..at + period) == self.hash(at + period..end) {
                return Some(period);
            }
            other = next[other as usize];
        }
        None
    }

    /// The end of the last complete period of a run that begins at `at`.
    fn end_of_run(&self, at: usize, period: usize) -> usize {
        let body = self.hash(at..at + period);
        let mut end = at + period;
        while end + period <= self.len() && self.hash(end..end + period) == body {
            end += period;
        }
        end
    }
}

/// The product of two numbers modulo [`PRIME`].
fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    reduced((product as u64 & PRIME) + (product >> 61) as u64)
}

/// The sum of two numbers below [`PRIME`], modulo [`PRIME`].
fn reduced(sum: u64) -> u64 {
    if sum >= PRIME { sum - PRIME } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(symbols: &str) -> Text {
        Text::new(symbols.bytes().map(u32::from).collect())
    }

    fn shown(text: &Text) -> String {
        let letters = text.symbols.iter().map(|symbol| *symbol as u8 as char);
        letters.collect()
    }

    #[test]
    fn equal_stretches_have_equal_hashes() {
        let text = text("abcabdabc");
        assert_eq!(text.hash(0..3), text.hash(6..9));
        assert_ne!(text.hash(0..3), text.hash(3..6));
        assert_ne!(text.hash(0..2), text.hash(0..3));
    }

    #[test]
    fn a_repetition_is_folded_and_positions_are_kept() {
        let folded = text("sxyxyxyqxyxyq").fold(2).unwrap();
        assert_eq!(shown(&folded), "sxyqxyq");
        let origins: Vec<usize> = (0..=folded.len()).map(|at| folded.origin(at)).collect();
        assert_eq!(origins, [0, 1, 2, 7, 8, 9, 12, 13]);
        assert_eq!(folded.longest_fold(0..7), Fold { body: 2, all: 6 });
        assert!(folded.fold(2).is_none());
        let again = folded.fold(3).unwrap();
        assert_eq!(shown(&again), "sxyq");
        assert!(again.fold(9).is_none());
    }
}
