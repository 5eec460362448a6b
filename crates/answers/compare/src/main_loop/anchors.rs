//! Finds the positions of all sequences of a fixed length in the calls of a rank. Each sequence is
//! a candidate for an anchor, at which an iteration begins.

use std::collections::HashMap;

/// The lengths of anchors: each is twice the one before. If an iteration repeats a call at several
/// positions, a longer sequence around one of them still occurs only once.
pub(super) const LENGTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// The fewest occurrences of an anchor.
const LEAST_OCCURRENCES: u32 = 4;
/// Marks a position whose sequence occurs too rarely.
const RARE: u32 = u32::MAX;

/// All sequences of calls of one length, with their positions among the calls of a rank.
pub(super) struct Anchors {
    length: usize,
    /// For each position the number of the sequence that begins there, or [`RARE`].
    numbers: Vec<u32>,
    /// For each sequence, the index of its first position in `positions`; at the end, the number of
    /// all positions.
    firsts: Vec<u32>,
    /// The positions of all sequences, grouped by sequence, in ascending order within each.
    positions: Vec<u32>,
}

impl Anchors {
    /// The sequences of one call each.
    pub(super) fn new(symbols: &[u32]) -> Anchors {
        let mut anchors = Anchors {
            length: LENGTHS[0],
            numbers: symbols.to_vec(),
            firsts: Vec::new(),
            positions: Vec::new(),
        };
        anchors.collect();
        anchors
    }

    /// The positions of each sequence.
    pub(super) fn occurrences(&self) -> impl Iterator<Item = &[u32]> {
        let ranges = self.firsts.windows(2);
        ranges.map(|range| &self.positions[range[0] as usize..range[1] as usize])
    }

    /// Replaces the sequences by those of twice the length.
    pub(super) fn lengthen(&mut self) {
        let mut known = HashMap::new();
        for at in 0..self.numbers.len() {
            let pair = (self.numbers[at], self.numbers.get(at + self.length));
            self.numbers[at] = match pair {
                (RARE, _) | (_, None | Some(&RARE)) => RARE,
                (first, Some(second)) => {
                    let number = known.len() as u32;
                    *known.entry((first, *second)).or_insert(number)
                }
            };
        }
        self.length *= 2;
        self.collect();
    }

    /// Sorts the positions by sequence, and drops rare sequences. The others are numbered in the
    /// order of their first positions.
    fn collect(&mut self) {
        let most = self.numbers.iter().filter(|number| **number != RARE).max();
        let mut counts = vec![0u32; most.map_or(0, |most| *most as usize + 1)];
        for number in self.numbers.iter().filter(|number| **number != RARE) {
            counts[*number as usize] += 1;
        }
        let mut numbers = vec![RARE; counts.len()];
        self.firsts = vec![0];
        let mut ends = Vec::new();
        for number in &mut self.numbers {
            if *number == RARE {
                continue;
            }
            let count = counts[*number as usize];
            if count < LEAST_OCCURRENCES {
                *number = RARE;
                continue;
            }
            let new = &mut numbers[*number as usize];
            if *new == RARE {
                *new = ends.len() as u32;
                let first = self.firsts[ends.len()];
                ends.push(first);
                self.firsts.push(first + count);
            }
            *number = *new;
        }
        let positions = self.firsts.last().map_or(0, |end| *end as usize);
        self.positions = vec![0; positions];
        for (at, number) in self.numbers.iter().enumerate() {
            if *number != RARE {
                let end = &mut ends[*number as usize];
                self.positions[*end as usize] = at as u32;
                *end += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_that_occur_often_have_their_positions() {
        let symbols: Vec<u32> = "aabxaabyaabzaabq".bytes().map(u32::from).collect();
        let mut anchors = Anchors::new(&symbols);
        let found = |anchors: &Anchors| {
            let positions = anchors.occurrences().map(<[u32]>::to_vec);
            positions.collect::<Vec<_>>()
        };
        let wanted = [vec![0, 1, 4, 5, 8, 9, 12, 13], vec![2, 6, 10, 14]];
        assert_eq!(found(&anchors), wanted);
        anchors.lengthen();
        let wanted = [vec![0, 4, 8, 12], vec![1, 5, 9, 13]];
        assert_eq!(found(&anchors), wanted);
        anchors.lengthen();
        assert_eq!(found(&anchors), Vec::<Vec<u32>>::new());
    }
}
