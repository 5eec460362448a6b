//! Intervals of predictions: by kind of figure, from the errors of other machines.
//!
//! An interval is a factor, up and down. Nine in ten figures of a kind shall lie within it of their
//! predictions, on machines that the errors do not come from: so each machine is left out once, and
//! the errors of all others give the interval that its own figures are held to.

use fabric::accuracy::{Accuracy, FigureKind, HEADER};
use results::stats::{median, percentile};

use super::figures::PublishedFigure;

/// The share of figures that an interval shall hold.
const SHARE: f64 = 0.9;
/// The least and the greatest share that intervals of left-out machines hold in all.
pub(super) const COVERAGE: [f64; 2] = [0.8, 0.97];
/// The greatest median half-width, in multiples of the 90th percentile of the kind's errors.
pub(super) const WIDTH: f64 = 1.5;
/// Fewest errors of other machines that give an interval.
const FEWEST: usize = 3;

/// An error with its origin.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) kind: FigureKind,
    /// The machine; for ratios, the document.
    pub(super) source: String,
    /// The published figure over its prediction.
    pub(super) quotient: f64,
}

/// The intervals of a kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KindIntervals {
    /// From all errors.
    pub(super) accuracy: Accuracy,
    /// Figures that lie within the interval of the other machines, and figures that have one.
    pub(super) inside: usize,
    pub(super) held: usize,
    /// The median of the half-widths that the figures are held to, as a share.
    pub(super) width: f64,
    /// The 90th percentile of the kind's errors, as a share.
    pub(super) far: f64,
}

impl KindIntervals {
    pub(super) fn is_narrow(&self) -> bool {
        self.width <= WIDTH * self.far
    }
}

/// The kind of a figure that intervals are known for.
pub(crate) fn kind(figure: &PublishedFigure) -> Option<FigureKind> {
    let size = figure.size().unwrap_or(8) as u64;
    if figure.is_of_many() {
        return None;
    }
    match figure.unit.as_str() {
        "us" => Some(FigureKind::latency(size)),
        "x" if figure.is_latency() => Some(FigureKind::LatencyRatio),
        "x" => Some(FigureKind::BandwidthRatio),
        "MB/s" | "GB/s" | "Gb/s" => Some(FigureKind::bandwidth(size)),
        _ => None,
    }
}

/// The intervals of each kind that has errors of several sources.
pub(super) fn by_kind(all: &[Origin]) -> Vec<KindIntervals> {
    FigureKind::ALL
        .into_iter()
        .filter_map(|kind| of(all, kind))
        .collect()
}

fn of(all: &[Origin], kind: FigureKind) -> Option<KindIntervals> {
    let own: Vec<&Origin> = all.iter().filter(|one| one.kind == kind).collect();
    let mut sources: Vec<&str> = own.iter().map(|one| one.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    let (mut inside, mut widths) = (0, Vec::new());
    for source in &sources {
        let others = own.iter().filter(|one| one.source != *source);
        let Some(factor) = factor(others.map(|one| one.quotient)) else {
            continue;
        };
        for one in own.iter().filter(|one| one.source == *source) {
            inside += usize::from(one.quotient.max(1.0 / one.quotient) <= factor);
            widths.push(factor - 1.0);
        }
    }
    let mut errors: Vec<f64> = own
        .iter()
        .map(|one| (1.0 / one.quotient - 1.0).abs())
        .collect();
    errors.sort_by(f64::total_cmp);
    let factor = factor(own.iter().map(|one| one.quotient))?;
    (!widths.is_empty()).then(|| KindIntervals {
        accuracy: Accuracy {
            kind,
            figures: own.len(),
            sources: sources.len(),
            median: median(&errors),
            factor,
        },
        inside,
        held: widths.len(),
        width: median(&widths),
        far: percentile(&errors, 90.0),
    })
}

/// The factor within which nine in ten quotients lie, on the line between the two nearest.
fn factor(quotients: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = quotients.map(|one| one.max(1.0 / one)).collect();
    all.sort_by(f64::total_cmp);
    if all.len() < FEWEST {
        return None;
    }
    let place = (all.len() - 1) as f64 * SHARE;
    let (below, share) = (place as usize, place.fract());
    let above = all.get(below + 1).unwrap_or(&all[below]);
    Some(all[below] + (above - all[below]) * share)
}

/// The table that crate `fabric` keeps.
pub(super) fn table(all: &[KindIntervals]) -> String {
    let lines = all.iter().map(|one| format!("{}\n", one.accuracy.line()));
    format!("{HEADER}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(kind: FigureKind, sources: &[(&str, &[f64])]) -> Vec<Origin> {
        let each = sources.iter().flat_map(|(source, quotients)| {
            quotients.iter().map(|quotient| Origin {
                kind,
                source: (*source).into(),
                quotient: *quotient,
            })
        });
        each.collect()
    }

    #[test]
    fn a_machine_is_held_to_the_errors_of_others() {
        let all = origins(
            FigureKind::Stream,
            &[
                ("a", &[1.0, 1.1, 0.9]),
                ("b", &[1.02, 1.2, 1.0]),
                ("c", &[2.0]),
            ],
        );
        let found = by_kind(&all);
        assert_eq!(found.len(), 1);
        let one = &found[0];
        // c is outside of what a and b say; a and b are inside of what c says with the other.
        assert_eq!((one.inside, one.held), (6, 7));
        assert_eq!((one.accuracy.figures, one.accuracy.sources), (7, 3));
        // Between 1.2 and 2, at four tenths of the way.
        assert!((one.accuracy.factor - 1.52).abs() < 1e-9, "{one:?}");
        assert!((one.far - 0.5).abs() < 1e-9 && one.is_narrow(), "{one:?}");
    }

    #[test]
    fn too_few_errors_give_no_interval() {
        let all = origins(FigureKind::Stream, &[("a", &[1.0]), ("b", &[1.1])]);
        assert_eq!(by_kind(&all), []);
    }
}
