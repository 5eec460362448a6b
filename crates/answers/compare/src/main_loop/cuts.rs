//! Divides the calls of one rank into iterations. Each such division is a *cut*.
//!
//! An *anchor* is a short sequence of calls; the calls from each of its occurrences to the next are
//! an iteration. An anchor is usable if its iterations are about equally long. A text of n calls
//! has at most n occurrences of anchors of one length, so the search takes a time of about n log n
//! for each of [`LENGTHS`] and for each level of folding.
//!
//! For each number of iterations only the best cut is kept, since ranks agree by that number.

use std::collections::BTreeMap;

use super::anchors::{Anchors, LENGTHS};
use super::calls::Call;
use super::regularity::{LEAST, Quality, Regularity, Segments, longest_run};
use super::text::Text;

/// For each level of folding, the most calls of a repetition that is folded. Inner loops are folded
/// first, because outer ones become equal only then.
const LEVELS: [usize; 4] = [8, 32, 128, 512];
/// The most cuts of a rank that are compared with those of other ranks.
const MOST: usize = 16;
/// A cut is kept if it covers at least this fraction (1 / `PART`) of the calls that the best one
/// covers.
const PART: usize = 8;
/// An iteration of an outer loop has, outside of the inner loop, at least this multiple of the
/// calls of an inner iteration. Otherwise the inner loop is the loop, folded together with one
/// irregular iteration.
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

    /// A cut each of whose iterations is `times` iterations of this one, from iteration `from` on.
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

/// A hash for several classes of iterations together.
pub(super) fn joined(classes: &[u64]) -> u64 {
    let mix = |hash: u64, class: &u64| {
        let mixed = (hash.rotate_left(5) ^ class).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    };
    classes.iter().fold(0, mix)
}

/// The cuts of a rank: the best one for each number of iterations. `keys`: for each symbol, the
/// number of the symbol that it is treated as.
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
            // If iterations are of many kinds, equal neighbours are folded too, so only similar
            // ones are accepted.
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

/// The positions at which an anchor occurs: a cut that has not been extended to the whole loop yet.
struct Sketch {
    positions: Vec<u32>,
    quality: Quality,
}

impl Rated for Sketch {
    fn quality(&self) -> Quality {
        self.quality
    }
}

/// Keeps the better one of two cuts with the same number of iterations; of equally good ones the
/// first.
fn keep<T: Rated>(best: &mut BTreeMap<usize, T>, iterations: usize, other: T) {
    let known = best.get(&iterations);
    if known.is_none_or(|known| other.quality() > known.quality()) {
        best.insert(iterations, other);
    }
}

/// The cuts, or sketches of cuts, that cover the most calls; at most [`MOST`].
fn foremost<T>(mut all: Vec<T>, quality: impl Fn(&T) -> Quality) -> Vec<T> {
    all.sort_by_key(|one| std::cmp::Reverse(quality(one).covered));
    let most = all.first().map_or(0, |one| quality(one).covered);
    all.retain(|one| quality(one).covered * PART >= most);
    all.truncate(MOST);
    all
}

/// The cuts of a text. Of equally good ones the last is kept, because calls that resemble the loop
/// may precede it as a preparation.
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

/// The cut of a sketch, extended to the first call and to the last iteration of the loop: an anchor
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

/// The number of calls that precede all positions alike; less than the shortest iteration.
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
