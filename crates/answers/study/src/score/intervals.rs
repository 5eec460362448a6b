//! Intervals of predictions: by kind of figure and what is known of the machines, from the errors
//! of systems of which the catalogue knows nothing.
//!
//! An interval is two factors, down and up. Nine in ten figures shall lie between them, on systems
//! that the errors do not come from. So each system is left out once, and the errors of all others
//! give the interval that its own figures are compared with. For ratios both systems are left out.

use fabric::accuracy::{Accuracy, Case, FigureKind, HEADER};
use results::stats::median;

/// The share of figures that intervals are for.
const COVERED: f64 = 0.9;
/// The share of other systems' figures that an interval holds. Figures of one system are alike, so
/// a system that is left out finds fewer of its own inside: with 0.9 it is 80 %, with this share 88
/// %.
const SHARE: f64 = 0.94;
/// No interval is narrower than this, up or down: two runs of one benchmark differ as much.
const LEAST: f64 = 1.02;
/// The least and the greatest share that intervals of left-out systems hold.
pub(super) const COVERAGE: [f64; 2] = [0.8, 0.97];
/// The greatest median width, in multiples of the narrowest interval that covers.
pub(super) const WIDTH: f64 = 1.5;
/// Fewest systems that give an interval.
const FEWEST: usize = 2;

/// An error with its origin.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) kind: FigureKind,
    pub(super) case: Case,
    /// The system, or the two of a ratio; for a quotient, its document.
    pub(super) systems: Vec<String>,
    /// The published figure over its prediction.
    pub(super) quotient: f64,
}

/// The intervals of a kind in a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KindIntervals {
    /// From all errors.
    pub(super) accuracy: Accuracy,
    /// Figures that lie within the interval of the other systems, and figures that have one.
    pub(super) inside: usize,
    pub(super) held: usize,
    /// The median of the widths, up to down, of the intervals that the figures are compared with.
    pub(super) width: f64,
    /// The width of the narrowest interval that holds nine in ten of all figures.
    pub(super) narrowest: f64,
}

impl KindIntervals {
    pub(super) fn is_narrow(&self) -> bool {
        self.width <= WIDTH * self.narrowest
    }

    /// True if enough figures are inside, and some outside where there are many.
    pub(super) fn covers(&self) -> bool {
        let (inside, held) = (self.inside as f64, self.held as f64);
        let outside = ((1.0 - COVERAGE[1]) * held).floor();
        inside >= COVERAGE[0] * held && held - inside >= outside
    }
}

/// The intervals of each case and kind that has errors of several systems.
pub(super) fn by_kind(all: &[Origin]) -> Vec<KindIntervals> {
    let cases = Case::ALL.into_iter();
    let each = cases.flat_map(|case| FigureKind::ALL.map(|kind| (case, kind)));
    each.filter_map(|(case, kind)| of(all, case, kind))
        .collect()
}

/// The interval from errors of a case and kind that come from none of these systems; none: too few.
pub(super) fn without(
    all: &[Origin],
    case: Case,
    kind: FigureKind,
    systems: &[String],
) -> Option<[f64; 2]> {
    let own = all
        .iter()
        .filter(|one| (one.case, one.kind) == (case, kind))
        .filter(|one| !one.systems.iter().any(|own| systems.contains(own)));
    interval(&own.collect::<Vec<_>>())
}

fn of(all: &[Origin], case: Case, kind: FigureKind) -> Option<KindIntervals> {
    let own = all
        .iter()
        .filter(|one| (one.case, one.kind) == (case, kind));
    let own: Vec<&Origin> = own.collect();
    let [low, high] = interval(&own)?;
    let mut groups: Vec<&[String]> = own.iter().map(|one| &one.systems[..]).collect();
    groups.sort_unstable();
    groups.dedup();
    let (mut inside, mut widths) = (0, Vec::new());
    for systems in groups {
        let Some([low, high]) = without(all, case, kind, systems) else {
            continue;
        };
        for one in own.iter().filter(|one| one.systems == systems) {
            inside += usize::from((low..=high).contains(&one.quotient));
            widths.push(high - low);
        }
    }
    widths.sort_by(f64::total_cmp);
    let mut errors: Vec<f64> = own
        .iter()
        .map(|one| (1.0 / one.quotient - 1.0).abs())
        .collect();
    errors.sort_by(f64::total_cmp);
    let [least, most] = narrowest(&own, COVERED)?;
    Some(KindIntervals {
        accuracy: Accuracy {
            kind,
            case,
            figures: own.len(),
            systems: systems(&own),
            median: median(&errors),
            low,
            high,
        },
        inside,
        held: widths.len(),
        width: median(&widths),
        narrowest: most - least,
    })
}

/// The number of systems of these errors.
fn systems(own: &[&Origin]) -> usize {
    let mut all: Vec<&String> = own.iter().flat_map(|one| &one.systems).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

/// The interval that is used for errors like these; none: too few systems.
///
/// Ratios are of pairs, so few systems make many of them, and none has the error that the next
/// system brings. The interval of a ratio is as much wider, in logarithms, as one system is of all.
fn interval(own: &[&Origin]) -> Option<[f64; 2]> {
    let count = systems(own);
    if count < FEWEST {
        return None;
    }
    if !own[0].case.is_ratio() {
        return narrowest(own, SHARE);
    }
    let wider = 1.0 + 1.0 / count as f64;
    narrowest(own, COVERED).map(|ends| ends.map(|end| end.powf(wider)))
}

/// The narrowest interval that holds this share of the errors, and no error at all. That of a ratio
/// is as wide down as up, because a ratio may be turned over.
fn narrowest(own: &[&Origin], share: f64) -> Option<[f64; 2]> {
    let least = LEAST.ln();
    let is_ratio = own.first()?.case.is_ratio();
    let logarithms = own.iter().map(|one| one.quotient.ln());
    let mut errors: Vec<f64> = match is_ratio {
        true => logarithms.map(f64::abs).collect(),
        false => logarithms.collect(),
    };
    errors.sort_by(f64::total_cmp);
    let count = (share * errors.len() as f64 - 1e-9).ceil() as usize;
    if is_ratio {
        let far = errors[count - 1].max(least);
        return Some([(-far).exp(), far.exp()]);
    }
    let ends = errors
        .windows(count)
        .map(|held| [held[0].min(-least), held[count - 1].max(least)]);
    let narrowest = ends.min_by(|one, other| (one[1] - one[0]).total_cmp(&(other[1] - other[0])));
    narrowest.map(|ends| ends.map(f64::exp))
}

/// The table that crate `fabric` keeps.
pub(super) fn table(all: &[KindIntervals]) -> String {
    let lines = all.iter().map(|one| format!("{}\n", one.accuracy.line()));
    format!("{HEADER}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(case: Case, sources: &[(&[&str], &[f64])]) -> Vec<Origin> {
        let each = sources.iter().flat_map(|(systems, quotients)| {
            quotients.iter().map(|quotient| Origin {
                kind: FigureKind::ShortStream,
                case,
                systems: systems.iter().map(|one| (*one).to_owned()).collect(),
                quotient: *quotient,
            })
        });
        each.collect()
    }

    #[test]
    fn a_system_is_compared_with_the_errors_of_others() {
        let all = origins(
            Case::Named,
            &[
                (&["a"], &[1.0, 1.1, 0.9]),
                (&["b"], &[1.05, 1.2, 1.0]),
                (&["c"], &[2.0]),
            ],
        );
        let found = by_kind(&all);
        assert_eq!(found.len(), 1);
        let one = &found[0];
        // c is outside of what a and b say. b and c hold 1 to 2, which a's 0.9 is not in.
        assert_eq!((one.inside, one.held), (5, 7));
        assert_eq!((one.accuracy.figures, one.accuracy.systems), (7, 3));
        assert!((one.accuracy.low - 0.9).abs() < 1e-9, "{one:?}");
        assert!((one.accuracy.high - 2.0).abs() < 1e-9, "{one:?}");
    }

    #[test]
    fn an_interval_is_as_lopsided_as_the_errors() {
        let high: Vec<f64> = (0..100).map(|at| 1.0 + f64::from(at) / 100.0).collect();
        let all = origins(Case::Named, &[(&["a"], &high), (&["b"], &[1.5])]);
        let Accuracy { low, high, .. } = by_kind(&all)[0].accuracy;
        assert!(
            (low - 1.0 / LEAST).abs() < 1e-9 && high < 1.96,
            "{low} {high}"
        );
    }

    #[test]
    fn a_ratio_leaves_out_both_of_its_systems_and_may_be_turned_over() {
        let all = origins(
            Case::RatioNamed,
            &[
                (&["a", "b"], &[1.25]),
                (&["a", "c"], &[0.5]),
                (&["b", "c"], &[1.1]),
                (&["c", "d"], &[1.0]),
            ],
        );
        let wide = |systems: &[&str]| {
            let systems: Vec<String> = systems.iter().map(|one| (*one).to_owned()).collect();
            without(&all, Case::RatioNamed, FigureKind::ShortStream, &systems)
        };
        assert_eq!(wide(&["a", "c"]), None);
        // Of three and of three systems, so a third wider.
        let wider = |error: f64| error.powf(4.0 / 3.0);
        let [low, high] = wide(&["d"]).unwrap();
        assert!((low * high - 1.0).abs() < 1e-9 && (high - wider(2.0)).abs() < 1e-9);
        let [_, high] = wide(&["a"]).unwrap();
        assert!((high - wider(1.1)).abs() < 1e-9);
    }

    #[test]
    fn one_system_gives_no_interval() {
        assert_eq!(
            by_kind(&origins(Case::Named, &[(&["a"], &[1.0, 1.1, 1.2])])),
            []
        );
    }
}
