//! The cuts of one rank: its calls divided into iterations.
//!
//! An *anchor* is a short sequence of calls; the calls from each of its occurrences to the next are
//! an iteration. It serves if the iterations are about equally long. A text of n calls has at most
//! n occurrences of anchors of one length, so the search takes a time of about n log n for each of
//! [`LENGTHS`] and for each level of folding.
//!
//! There is one cut for each number of iterations, since ranks agree by that number.

use std::collections::BTreeMap;

use super::anchors::{Anchors, LENGTHS};
use super::calls::Call;
use super::regularity::{LEAST, Quality, Regularity, Segments, longest_run};
use super::text::Text;

/// The most calls of repetitions that are folded, one level after the other: inner loops first,
/// because outer ones are equal only then.
const LEVELS: [usize; 4] = [8, 32, 128, 512];
/// The cuts of a rank that are compared with those of other ranks.
const MOST: usize = 16;
/// A cut covers at least this part of what the best one does.
const PART: usize = 8;
/// An outer loop has at least this multiple of the calls of an inner iteration outside of the inner
/// loop. Otherwise the inner one is the loop, and what it is folded with an irregular iteration.
const OUTER: usize = 2;

/// The calls of a rank, divided into iterations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cut {
    /// The calls at which iterations begin, and the end of the last.
    pub(super) boundaries: Vec<usize>,
    /// For each iteration, a hash of its calls.
    pub(super) classes: Vec<u64>,
    pub(super) quality: Quality,
}

impl Cut {
    pub(super) fn iterations(&self) -> usize {
        self.classes.len()
    }

    /// The cut with `times` of these iterations in each of its own, from the iteration `from` on.
    pub(super) fn grouped(&self, times: usize, from: usize) -> Cut {
        let groups = self.classes[from..].chunks_exact(times);
        let classes: Vec<u64> = groups.map(joined).collect();
        let boundaries = self.boundaries[from..].iter().step_by(times);
        Cut {
            boundaries: boundaries.take(classes.len() + 1).copied().collect(),
            classes,
            quality: self.quality,
        }
    }
}

/// One class for several.
pub(super) fn joined(classes: &[u64]) -> u64 {
    let mix = |hash: u64, class: &u64| {
        let mixed = (hash.rotate_left(5) ^ class).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    };
    classes.iter().fold(0, mix)
}

/// The cuts of a rank, for each number of iterations the best one. `keys`: for each symbol, the one
/// that it counts as.
pub(super) fn cuts(calls: &[Call], keys: &[u32]) -> Vec<Cut> {
    let symbols = calls.iter().map(|call| keys[call.symbol as usize]);
    let mut text = Text::new(symbols.collect());
    let mut times = vec![0];
    for call in calls {
        times.push(call.nanos.saturating_add(times[times.len() - 1]));
    }
    let mut best = BTreeMap::new();
    let mut search = |text: &Text, least: Regularity| {
        for cut in cuts_of(text, &times, least) {
            keep(&mut best, cut.iterations(), cut);
        }
    };
    search(&text, Regularity::AboutAsLong);
    for most in LEVELS {
        if let Some(folded) = text.fold(most) {
            text = folded;
            // Of iterations of many kinds, equal neighbours are folded too.
            search(&text, Regularity::Similar);
        }
    }
    foremost(best.into_values().collect(), |cut| cut.quality)
}

trait Rated {
    fn quality(&self) -> Quality;
}

impl Rated for Cut {
    fn quality(&self) -> Quality {
        self.quality
    }
}

/// Occurrences of an anchor.
struct Sketch {
    positions: Vec<u32>,
    quality: Quality,
}

impl Rated for Sketch {
    fn quality(&self) -> Quality {
        self.quality
    }
}

/// Keeps the better one of two with one number of iterations; of equal ones the first.
fn keep<T: Rated>(best: &mut BTreeMap<usize, T>, iterations: usize, other: T) {
    let known = best.get(&iterations);
    if known.is_none_or(|known| other.quality() > known.quality()) {
        best.insert(iterations, other);
    }
}

/// Those that cover the most calls.
fn foremost<T>(mut all: Vec<T>, quality: impl Fn(&T) -> Quality) -> Vec<T> {
    all.sort_by_key(|one| std::cmp::Reverse(quality(one).covered));
    let most = all.first().map_or(0, |one| quality(one).covered);
    all.retain(|one| quality(one).covered * PART >= most);
    all.truncate(MOST);
    all
}

/// The cuts of a text. Of equally good ones the last counts, because calls that resemble the loop
/// may prepare it.
fn cuts_of(text: &Text, times: &[u64], least: Regularity) -> Vec<Cut> {
    let mut best: BTreeMap<usize, Sketch> = BTreeMap::new();
    let mut is_outer: BTreeMap<(usize, usize), bool> = BTreeMap::new();
    let mut anchors = Anchors::new(&text.symbols);
    for _ in LENGTHS {
        for positions in anchors.occurrences() {
            let Some(positions) = longest_run(positions) else {
                continue;
            };
            let iterations = positions.len() - 1;
            let segments = Segments::new(text, times, positions);
            let quality = segments.quality();
            let known = best.get(&iterations);
            let is_worse = known.is_some_and(|known| quality < known.quality);
            if is_worse || quality.regularity < least {
                continue;
            }
            let usual = segments.usual();
            let key = (iterations, usual.len());
            let is_outer = is_outer.entry(key).or_insert_with(|| {
                let inner = text.longest_fold(usual.clone());
                let all = text.origin(usual.end) - text.origin(usual.start);
                all.saturating_sub(inner.all as usize) >= inner.body as usize * OUTER
            });
            if *is_outer && segments.are_repeated() {
                let positions = positions.to_vec();
                best.insert(iterations, Sketch { positions, quality });
            }
        }
        anchors.lengthen();
    }
    let sketches = foremost(best.into_values().collect(), |sketch| sketch.quality);
    let sketches = sketches.into_iter();
    let whole = sketches.map(|sketch| extended(text, times, sketch));
    whole.filter(|cut| cut.iterations() >= LEAST).collect()
}

/// The cut with boundaries at the first call of the loop, and with its last iteration: an anchor
/// may be in the middle of an iteration, and the calls after its last occurrence belong to one too.
fn extended(text: &Text, times: &[u64], sketch: Sketch) -> Cut {
    let mut positions = sketch.positions;
    let back = common_before(text, &positions) as u32;
    for position in &mut positions {
        *position -= back;
    }
    let mut segments = Segments::new(text, times, &positions);
    let bodies = segments.bodies();
    while let Some(end) = bodies.end_of_one(text, positions[positions.len() - 1] as usize) {
        positions.push(end as u32);
        segments = Segments::new(text, times, &positions);
    }
    Cut {
        quality: segments.quality(),
        classes: segments.classes.clone(),
        boundaries: positions
            .iter()
            .map(|at| text.origin(*at as usize))
            .collect(),
    }
}

/// The number of equal calls before all positions, less than the shortest iteration.
fn common_before(text: &Text, positions: &[u32]) -> usize {
    let lengths = positions.windows(2).map(|pair| pair[1] - pair[0]);
    let shortest = lengths.min().unwrap_or(0);
    let most = shortest.saturating_sub(1).min(positions[0]);
    let symbol = |position: u32, back: u32| text.symbols[(position - back) as usize];
    let is_common = |back: &u32| {
        let wanted = symbol(positions[0], *back);
        positions.iter().all(|at| symbol(*at, *back) == wanted)
    };
    (1..=most).take_while(is_common).count()
}
