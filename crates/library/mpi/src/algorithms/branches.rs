//! K-ary trees: the shape that both the algorithms and their costs use.
//!
//! A position in a tree is a distance from the root. A branch is a range of positions whose first
//! one is its root; the others divide into ranges of about one length, the branches below it. A
//! tree with one branch below each position is a chain.
//!
//! Invariant: vectors that are combined in the order of branches are combined in the order of
//! positions.

use std::ops::Range;

/// The branches below the root of a branch, in order; the first ones are the longest.
pub(crate) fn below(
    branch: &Range<usize>,
    arity: usize,
) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
    let first = branch.start + 1;
    let rest = branch.end.saturating_sub(first);
    let parts = arity.max(1).min(rest);
    let edge = move |part: usize| first + (rest * part).div_ceil(parts);
    (0..parts).map(move |part| edge(part)..edge(part + 1))
}

/// The branch whose root is the position `place` in a tree of `size` positions, and the position
/// above it.
pub(crate) fn branch(place: usize, size: usize, arity: usize) -> (Range<usize>, Option<usize>) {
    let (mut branch, mut above) = (0..size, None);
    while branch.start != place
        && let Some(next) = below(&branch, arity).find(|next| next.contains(&place))
    {
        above = Some(branch.start);
        branch = next;
    }
    (branch, above)
}

/// The greatest number of steps from the root of a tree to a position.
pub(crate) fn depth(size: usize, arity: usize) -> usize {
    let (mut left, mut depth) = (size, 0);
    while left > 1 {
        left = (left - 1).div_ceil(arity.max(1));
        depth += 1;
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of steps from the root to a position.
    fn steps(place: usize, size: usize, arity: usize) -> usize {
        match branch(place, size, arity).1 {
            None => 0,
            Some(above) => 1 + steps(above, size, arity),
        }
    }

    #[test]
    fn every_place_has_one_branch_that_the_place_above_knows() {
        for (size, arity) in (1..40).flat_map(|size| (1..9).map(move |arity| (size, arity))) {
            for place in 0..size {
                let (own, above) = branch(place, size, arity);
                assert_eq!(own.start, place);
                let Some(above) = above else {
                    assert_eq!((place, own), (0, 0..size));
                    continue;
                };
                let (larger, _) = branch(above, size, arity);
                assert_eq!(below(&larger, arity).filter(|of| *of == own).count(), 1);
            }
            let deepest = (0..size).map(|place| steps(place, size, arity)).max();
            assert_eq!(
                deepest,
                Some(depth(size, arity)),
                "{size} places by {arity}"
            );
        }
    }

    #[test]
    fn branches_follow_each_other_and_differ_by_one_place() {
        let parts: Vec<_> = below(&(3..14), 4).collect();
        assert_eq!(parts, [4..7, 7..9, 9..12, 12..14]);
        assert!(below(&(3..5), 4).eq(std::iter::once(4..5)));
        assert_eq!(below(&(3..4), 4).len(), 0);
        assert_eq!(depth(7, 1), 6);
    }
}
