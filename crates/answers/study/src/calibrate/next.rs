//! The figures that would help a calibration most next.

use super::series::{KINDS, Property, SeriesKind, kind_of, usual_test};
use crate::score::figures::PublishedFigure;

/// The sizes in bytes whose figures help most, for latencies: the constant of short messages,
/// copies, and rates.
const LATENCIES: [usize; 3] = [8, 16 << 10, 1 << 20];
/// The sizes in bytes whose figures help most, for streams.
const STREAMS: [usize; 3] = [64, 8 << 10, 1 << 20];
/// The greatest factor between a given size and a size that it makes superfluous.
const NEAR: usize = 8;

/// Benchmarks and sizes that would help most, the best first: of the kinds that have figures, what
/// they lack, and then the other property of the same level.
pub(super) fn helpful<'a>(
    figures: impl Iterator<Item = &'a PublishedFigure> + Clone,
) -> Vec<(&'static str, usize)> {
    let sizes = |kind: SeriesKind| -> Vec<usize> {
        let own = figures.clone().filter(|one| kind_of(one) == Some(kind));
        own.filter_map(|one| Some(one.size()?.max(8))).collect()
    };
    let levels: Vec<_> = figures
        .clone()
        .filter_map(kind_of)
        .map(|kind| kind.0)
        .collect();
    let mut found: Vec<(bool, &'static str, usize)> = Vec::new();
    for kind in KINDS.into_iter().filter(|kind| levels.contains(&kind.0)) {
        let given = sizes(kind);
        let wanted = match kind.1 {
            Property::Latency => LATENCIES,
            Property::Stream => STREAMS,
        };
        let is_near = |size: usize| {
            let mut given = given.iter();
            given.any(|own| size.max(*own) / size.min(*own) < NEAR)
        };
        let new = wanted.into_iter().filter(|size| !is_near(*size));
        found.extend(new.map(|size| (given.is_empty(), usual_test(kind).0, size)));
    }
    found.sort_by_key(|(is_new, ..)| *is_new);
    found
        .into_iter()
        .map(|(_, test, size)| (test, size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kind_lacks_comes_before_other_kinds() {
        let figure = |test: &str, unit: &str, size: usize| PublishedFigure {
            test: test.into(),
            unit: unit.into(),
            msg_size: size.to_string(),
            ..PublishedFigure::default()
        };
        let own = [
            figure("osu_latency", "us", 0),
            figure("osu_latency", "us", 8 << 10),
        ];
        let found = helpful(own.iter());
        assert_eq!(found[0], ("osu_latency", 1 << 20));
        assert_eq!(found[1..], STREAMS.map(|size| ("osu_bw", size)));
    }
}
