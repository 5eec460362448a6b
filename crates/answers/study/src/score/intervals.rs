//! Intervals of predictions, by the kind of figure and by the knowledge of the machines, from
//! errors on systems of which the catalogue has no values.
//!
//! An interval is a pair of factors, below and above 1. Nine in ten published figures should lie
//! between them, on systems that did not contribute to the errors. Therefore each system is left
//! out once, and its own figures are compared with the interval that follows from all others. For
//! ratios both systems are left out.

use fabric::accuracy::{Accuracy, Case, FigureKind, HEADER};
use results::stats::median;

/// The share of figures that should lie inside an interval.
const COVERED: f64 = 0.9;
/// The share of other systems' figures that an interval must contain. Figures of one system
/// resemble each other, so fewer figures of a left-out system lie inside: 80 % with a share of 0.9,
/// 88 % with this one.
const SHARE: f64 = 0.94;
/// The least distance of an interval's ends from 1, as a factor: two runs of one benchmark differ
/// by as much.
const LEAST: f64 = 1.02;
/// The least and the greatest share of figures of left-out systems that should lie inside.
pub(super) const COVERAGE: [f64; 2] = [0.8, 0.97];
/// The greatest acceptable median width, divided by the width of the narrowest interval.
pub(super) const WIDTH: f64 = 1.5;
/// The factor by which the logarithms of an interval are increased, because values of the catalogue
/// have been inferred from some of these systems since. Assumed: values gain less on systems that
/// nobody has compared with the model.
const TAKEN: f64 = 1.3;
/// The fewest systems from whose errors an interval is computed.
const FEWEST: usize = 2;

/// The error of a prediction, with the kind of figure, the case and the systems that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) kind: FigureKind,
    pub(super) case: Case,
    /// The system, or both systems of a ratio; for a published quotient, its document.
    pub(super) systems: Vec<String>,
    /// The quotient of a published figure and its prediction.
    pub(super) quotient: f64,
}

/// The interval of predictions for one kind of figure and one [`Case`] of machines, and a test of
/// this interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KindIntervals {
    /// The interval that follows from the errors on all systems.
    pub(super) accuracy: Accuracy,
    /// The number of figures inside the interval that follows from the errors on other systems than
    /// their own.
    pub(super) inside: usize,
    /// The number of figures for which errors on other systems give an interval.
    pub(super) held: usize,
    /// The median of the widths, as differences of the ends, of the intervals with which figures
    /// are compared.
    pub(super) width: f64,
    /// The width of the narrowest interval that contains nine in ten of all figures.
    pub(super) narrowest: f64,
}

impl KindIntervals {
    pub(super) fn is_narrow(&self) -> bool {
        self.width <= WIDTH * self.narrowest
    }

    /// True if enough figures are inside, and, of many figures, some are outside.
    pub(super) fn covers(&self) -> bool {
        let (inside, held) = (self.inside as f64, self.held as f64);
        let outside = ((1.0 - COVERAGE[1]) * held).floor();
        inside >= COVERAGE[0] * held && held - inside >= outside
    }
}

/// The intervals of each case and kind that have errors of several systems.
pub(super) fn by_kind(all: &[Origin]) -> Vec<KindIntervals> {
    let cases = Case::ALL.into_iter();
    let each = cases.flat_map(|case| FigureKind::ALL.map(|kind| (case, kind)));
    each.filter_map(|(case, kind)| of(all, case, kind))
        .collect()
}

/// The interval from the errors of a case and kind on all other systems. `None`: there are too few.
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

/// The number of different systems from which these errors come.
fn systems(own: &[&Origin]) -> usize {
    let mut all: Vec<&String> = own.iter().flat_map(|one| &one.systems).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

/// The interval for figures whose errors are like these; `None`: they are of too few systems.
///
/// Ratios are of pairs, so a few systems make many of them, and none has the error that the next
/// system brings. The logarithms of a ratio's interval are therefore increased by the factor 1 +
/// 1/n for n systems.
fn interval(own: &[&Origin]) -> Option<[f64; 2]> {
    let count = systems(own);
    if count < FEWEST {
        return None;
    }
    if !own[0].case.is_ratio() {
        return narrowest(own, SHARE).map(|ends| ends.map(|end| end.powf(TAKEN)));
    }
    let wider = 1.0 + 1.0 / count as f64;
    narrowest(own, COVERED).map(|ends| ends.map(|end| end.powf(wider)))
}

/// The narrowest interval around 1 that contains this share of the errors. For a ratio its ends are
/// inverses of each other, because a ratio may be inverted.
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

/// The text of the table of errors in crate `fabric`.
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
        // c is outside the interval of a and b. That of b and c is 1 to 2, so a's 0.9 is outside.
        assert_eq!((one.inside, one.held), (5, 7));
        assert_eq!((one.accuracy.figures, one.accuracy.systems), (7, 3));
        let ends = [0.9f64, 2.0].map(|end| end.powf(TAKEN));
        assert!((one.accuracy.low - ends[0]).abs() < 1e-9, "{one:?}");
        assert!((one.accuracy.high - ends[1]).abs() < 1e-9, "{one:?}");
    }

    #[test]
    fn an_interval_is_as_lopsided_as_the_errors() {
        let high: Vec<f64> = (0..100).map(|at| 1.0 + f64::from(at) / 100.0).collect();
        let all = origins(Case::Named, &[(&["a"], &high), (&["b"], &[1.5])]);
        let Accuracy { low, high, .. } = by_kind(&all)[0].accuracy;
        assert!(
            (low - LEAST.powf(-TAKEN)).abs() < 1e-9 && high < 1.96f64.powf(TAKEN),
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
        // Three systems remain in each case, so the interval is wider by a third.
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
