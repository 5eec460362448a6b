//! Searches for the loop of a program: a division of each rank's calls into iterations, with the
//! same number of iterations on all ranks.

use std::ops::Range;

use super::agreement;
use super::calls::{Call, Calls};
use super::cuts::{self, Cut};
use super::found::{By, Loop, NoLoop};
use super::regularity::LEAST;

/// A loop has at least this many calls on each rank on average, or at least half of all calls.
const FEW_CALLS: usize = 64;
/// A loop whose calls have equal sizes is chosen if it has at least this many iterations, even if
/// more calls are equal when sizes are ignored: of several loops in a row with growing sizes each
/// is a loop.
const ENOUGH: usize = 16;

/// Finds the loop of a program.
pub fn find(calls: &Calls) -> Result<Loop, NoLoop> {
    find_within(calls, &calls.whole())
}

/// Finds the loop within a part of each rank's calls.
pub fn find_within(calls: &Calls, parts: &[Range<usize>]) -> Result<Loop, NoLoop> {
    let equal_sizes = cuts_of_ranks(calls, parts, &calls.merged(|_| ()));
    if let Ok(cuts) = &equal_sizes
        && cuts[0].iterations() >= ENOUGH
    {
        return Ok(Loop::of(By::Calls { any_size: false }, equal_sizes?, calls));
    }
    let any_size = cuts_of_ranks(calls, parts, &calls.merged(|symbol| symbol.size = None));
    let covered = |cuts: &Result<Vec<Cut>, NoLoop>| {
        let cuts = cuts.iter().flatten();
        cuts.map(|cut| cut.boundaries[cut.iterations()] - cut.boundaries[0])
            .sum::<usize>()
    };
    let (by, cuts) = match covered(&any_size) > 2 * covered(&equal_sizes) {
        true => (By::Calls { any_size: true }, any_size?),
        false => (By::Calls { any_size: false }, equal_sizes?),
    };
    Ok(Loop::of(by, cuts, calls))
}

/// The cuts on which the ranks agree. `keys`: for each symbol (a kind of call), the number of the
/// symbol that it is treated as.
fn cuts_of_ranks(calls: &Calls, parts: &[Range<usize>], keys: &[u32]) -> Result<Vec<Cut>, NoLoop> {
    let ranks: Vec<&[Call]> = calls
        .ranks
        .iter()
        .zip(parts)
        .map(|(calls, part)| &calls[part.clone()])
        .collect();
    let most = ranks.iter().map(|calls| calls.len()).max().unwrap_or(0);
    if most < LEAST {
        return Err(NoLoop::FewCalls { most });
    }
    let mut cuts: Vec<Vec<Cut>> = Vec::new();
    // Ranks with the same calls have the same cuts.
    let mut sources: Vec<usize> = Vec::new();
    for (rank, own) in ranks.iter().enumerate() {
        let is_equal = |other: &usize| {
            let symbols = |rank: usize| ranks[rank].iter().map(|call| keys[call.symbol as usize]);
            *other < rank && sources[*other] == *other && {
                ranks[*other].len() == own.len() && symbols(*other).eq(symbols(rank))
            }
        };
        let source = (0..rank).find(is_equal).unwrap_or(rank);
        let own = if source == rank {
            cuts::cuts(own, keys)
        } else {
            Vec::new()
        };
        if source == rank && own.is_empty() {
            return Err(NoLoop::NothingRepeats { rank });
        }
        sources.push(source);
        cuts.push(own);
    }
    let of_ranks: Vec<&[Cut]> = sources
        .iter()
        .map(|source| cuts[*source].as_slice())
        .collect();
    let everywhere = |rank: usize, boundaries: &[usize]| {
        let is_everywhere = |call: &Call| calls.symbol(call).everywhere;
        agreement::counted_before(ranks[rank], boundaries, is_everywhere)
    };
    let mut agreed = agreement::agree(&of_ranks, everywhere).ok_or(NoLoop::RanksDiffer)?;
    let covered = agreed
        .iter()
        .map(|cut| cut.boundaries[cut.iterations()] - cut.boundaries[0]);
    let covered: usize = covered.sum();
    let all: usize = ranks.iter().map(|calls| calls.len()).sum();
    if covered * 2 < all && covered < FEW_CALLS * ranks.len() {
        return Err(NoLoop::SmallPart {
            covered,
            calls: all,
        });
    }
    for (cut, part) in agreed.iter_mut().zip(parts) {
        for boundary in &mut cut.boundaries {
            *boundary += part.start;
        }
    }
    Ok(agreed)
}
