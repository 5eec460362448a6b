//! The times of all ranks in a file. Runs of equal times are symbols, each of them once in a table,
//! and the symbols of a rank are loops of loops, as its calls are. The most frequent symbols have
//! the smallest numbers. A symbol that occurs once stands in no table entry: its number is that of
//! [`ONCE`], and the times of these symbols follow one another.

use std::collections::HashMap;

use crate::bytes::{Bytes, Result, put};
use crate::fold::{Folder, Item};
use crate::gaps::Gaps;

/// The number of each symbol that occurs once.
const ONCE: u64 = 0;
/// The most runs that the ranks of a small file have together, beside those for its length.
const MOST_RUNS: u64 = 1 << 26;
/// The most runs of equal times for each byte of a file.
const RUNS_PER_BYTE: u64 = 16;

/// A run of equal times: the nanoseconds, and the number of calls that have them.
type Run = (u64, u64);

/// Appends the times of all ranks: the table, the sequences, and the sequence of each rank.
pub(crate) fn put_all<'a>(to: &mut Vec<u8>, ranks: impl Iterator<Item = &'a Gaps>) {
    let (mut symbols, mut numbers) = (Vec::<Run>::new(), HashMap::<Run, u32>::new());
    let mut folder = Folder::default();
    let fold = |gaps: &Gaps| {
        folder.fold(gaps.runs().iter().map(|run| {
            *numbers.entry(*run).or_insert_with(|| {
                symbols.push(*run);
                symbols.len() as u32 - 1
            })
        }))
    };
    let of_ranks: Vec<u32> = ranks.map(fold).collect();
    let sequences = folder.into_sequences();
    let mut uses = vec![0u64; symbols.len()];
    let calls = |items: &[Item]| -> Vec<u32> {
        let calls = items.iter().filter_map(|item| match item {
            Item::Call(symbol) => Some(*symbol),
            Item::Loop(..) => None,
        });
        calls.collect()
    };
    for symbol in sequences.iter().flat_map(|items| calls(items)) {
        uses[symbol as usize] += 1;
    }
    let mut table: Vec<u32> = (0..symbols.len() as u32).collect();
    table.retain(|symbol| uses[*symbol as usize] > 1);
    table.sort_by_key(|symbol| (std::cmp::Reverse(uses[*symbol as usize]), *symbol));
    let mut codes = vec![ONCE; symbols.len()];
    for (code, symbol) in (1..).zip(&table) {
        codes[*symbol as usize] = code;
    }
    let once = sequences.iter().flat_map(|items| calls(items));
    let once: Vec<u32> = { once }
        .filter(|symbol| codes[*symbol as usize] == ONCE)
        .collect();
    for part in [&table, &once] {
        put(to, part.len() as u64);
        for symbol in part {
            let (nanos, run) = symbols[*symbol as usize];
            // Most runs have one call.
            put(to, nanos);
            put(to, run);
        }
    }
    put(to, sequences.len() as u64);
    for items in &sequences {
        put(to, items.len() as u64);
        for item in items {
            match *item {
                Item::Call(symbol) => put(to, codes[symbol as usize] << 1),
                Item::Loop(turns, body) => {
                    put(to, u64::from(body) << 1 | 1);
                    put(to, turns);
                }
            }
        }
    }
    for sequence in of_ranks {
        put(to, sequence.into());
    }
}

/// Reads the times of all ranks. `lengths`: for each rank the number of its calls.
pub(crate) fn read_all(from: &mut Bytes, lengths: &[u64]) -> Result<Vec<Gaps>> {
    let mut left = MOST_RUNS + from.len() as u64 * RUNS_PER_BYTE;
    let [table, once] = [runs(from)?, runs(from)?];
    let mut once = once.into_iter();
    // For each sequence its items, and the runs and calls that they stand for.
    let mut sequences: Vec<(Vec<Part>, u64, u64)> = Vec::new();
    for _ in 0..from.count()? {
        let (mut parts, mut all_runs, mut calls) = (Vec::new(), 0u64, 0u64);
        for _ in 0..from.count()? {
            let number = from.number()?;
            let (code, is_loop) = (number >> 1, number & 1 == 1);
            let sums = if is_loop {
                let turns = from.number()?;
                let Some((_, runs, inside)) = sequences.get(code as usize) else {
                    return from.wrong("times that do not exist");
                };
                parts.push(Part::Loop(turns, code as usize));
                (runs.checked_mul(turns)).zip(inside.checked_mul(turns))
            } else {
                let run = match code {
                    ONCE => once.next(),
                    code => table.get(code as usize - 1).copied(),
                };
                let Some(run) = run else {
                    return from.wrong("times that do not exist");
                };
                parts.push(Part::Run(run));
                Some((1, run.1))
            };
            let sums = sums.and_then(|(more_runs, more)| {
                all_runs.checked_add(more_runs).zip(calls.checked_add(more))
            });
            let Some(sums) = sums else {
                return from.wrong("too many times");
            };
            (all_runs, calls) = sums;
        }
        sequences.push((parts, all_runs, calls));
    }
    let mut ranks = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let sequence = from.below(sequences.len(), "the times")? as usize;
        let (_, runs, calls) = &sequences[sequence];
        if *calls != length {
            return from.wrong("times of other calls than the rank makes");
        }
        let Some(rest) = left.checked_sub(*runs) else {
            return from.wrong("more times than a file of this length has");
        };
        left = rest;
        let mut gaps = Gaps::default();
        expand(&sequences, sequence, &mut gaps);
        ranks.push(gaps);
    }
    Ok(ranks)
}

/// A part of a sequence of computing times.
enum Part {
    Run(Run),
    Loop(u64, usize),
}

fn runs(from: &mut Bytes) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for _ in 0..from.count()? {
        runs.push((from.number()?, from.number()?));
        if runs.last().is_some_and(|run| run.1 == 0) {
            return from.wrong("a time of no call");
        }
    }
    Ok(runs)
}

fn expand(sequences: &[(Vec<Part>, u64, u64)], sequence: usize, gaps: &mut Gaps) {
    // Loops lead backwards only, but may be as deep as there are sequences.
    let mut open = vec![(sequence, 0, 1u64)];
    while let Some((sequence, at, turns)) = open.last_mut() {
        match sequences[*sequence].0.get(*at) {
            _ if *turns == 0 => drop(open.pop()),
            Some(part) => {
                *at += 1;
                match *part {
                    Part::Run((nanos, run)) => gaps.push(nanos, run),
                    // Without runs, all turns of a loop are nothing.
                    Part::Loop(turns, body) if sequences[body].1 > 0 => open.push((body, 0, turns)),
                    Part::Loop(..) => (),
                }
            }
            None => (*at, *turns) = (0, *turns - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn gaps(runs: &[Run]) -> Gaps {
        let mut gaps = Gaps::default();
        runs.iter().for_each(|run| gaps.push(run.0, run.1));
        gaps
    }

    fn written(ranks: &[Gaps]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_all(&mut bytes, ranks.iter());
        bytes
    }

    #[test]
    fn loops_of_times_take_few_bytes_and_noise_a_little_more_than_one_each() {
        let step = [(100_000, 1), (0, 12), (40, 1)].repeat(10_000);
        assert!(written(&vec![gaps(&step); 64]).len() < 120);
        let noise: Vec<Run> = (0..10_000u64)
            .map(|at| (50_000 + (at * at * 7919 % 50) * 40, 1))
            .collect();
        let length = written(&[gaps(&noise)]).len();
        assert!(length < 12_000, "{length}");
        let once: Vec<Run> = (0..1000u64).map(|at| (at * 12_345, 1)).collect();
        let length = written(&[gaps(&once)]).len();
        assert!(length < 6_000, "{length}");
    }

    proptest! {
        #[test]
        fn times_come_back(ranks in vec((vec((0u64..4, 1u64..4), 0..6), 1usize..4), 0..4), cut in any::<prop::sample::Index>()) {
            let ranks: Vec<Gaps> = ranks.iter().map(|(runs, turns)| gaps(&runs.repeat(*turns))).collect();
            let lengths: Vec<u64> = ranks.iter().map(Gaps::count).collect();
            let bytes = written(&ranks);
            prop_assert_eq!(read_all(&mut Bytes::new(&bytes), &lengths), Ok(ranks));
            if !lengths.is_empty() {
                let cut = &bytes[..cut.index(bytes.len())];
                prop_assert!(read_all(&mut Bytes::new(cut), &lengths).is_err());
            }
        }
    }

    #[test]
    fn loops_that_would_fill_the_memory_are_refused() {
        // One symbol, and sequences that each have two turns of the one before.
        let mut bytes = vec![1, 5, 1, 0, 40, 1, 2];
        for body in 0..39u8 {
            bytes.extend([1, body << 1 | 1, 2]);
        }
        bytes.push(39);
        let why = read_all(&mut Bytes::new(&bytes), &[1 << 39]).unwrap_err();
        assert!(why.contains("more times than a file"), "{why}");
    }
}
