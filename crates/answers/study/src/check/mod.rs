//! Checks of the statements of a published document: figures, orderings, crossovers, steps and dips
//! of measured curves, and values of the catalogue. They are pure functions of curves and
//! catalogue.

mod figures;
mod parts;
mod shapes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::curves::Curves;
use crate::document::Machine;
pub(crate) use figures::{APART, CLOSE, Figure, factor};

/// A condition on measured curves, or on parts of the catalogue. `of` is the name of the
/// measurement, `curve` and `over` are names of curves, `from` and `to` are message sizes in bytes,
/// both included.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Check {
    /// A value differs from the published one by at most [`CLOSE`]. `precision`: half a unit of the
    /// last digit that the document prints, if that is more.
    Value {
        of: String,
        curve: String,
        at: At,
        published: f64,
        #[serde(default)]
        unit: Option<String>,
        #[serde(default)]
        precision: f64,
    },
    /// The value of a curve is at least the published one.
    AtLeast {
        of: String,
        curve: String,
        at: At,
        published: f64,
        #[serde(default)]
        unit: Option<String>,
    },
    /// The quotient of two curves, `curve / over`, differs from the published one by at most
    /// [`CLOSE`]. If the published quotient is nearer to 1 than that, the gains in percent are
    /// compared: otherwise the check could not fail.
    Quotient {
        of: String,
        curve: String,
        over: String,
        at: At,
        published: f64,
    },
    /// The quotient of one curve in two measurements, `of / over`, is as close to the published one
    /// as for `Quotient`.
    Against {
        of: String,
        over: String,
        curve: String,
        at: At,
        published: f64,
    },
    /// The difference of two curves, `curve - over`, differs from the published one by at most
    /// [`CLOSE`], or by `precision`.
    Difference {
        of: String,
        curve: String,
        over: String,
        at: At,
        published: f64,
        #[serde(default)]
        precision: f64,
    },
    /// The result for one value of the swept parameter differs from the published one by at most
    /// [`CLOSE`].
    Swept {
        of: String,
        curve: String,
        at: String,
        published: f64,
        #[serde(default)]
        unit: Option<String>,
    },
    /// The smallest size or swept value whose result is below the highest one by at most the share
    /// `within` differs from the published one by at most [`CLOSE`].
    Plateau {
        of: String,
        curve: String,
        within: f64,
        published: f64,
    },
    /// The size at which the curve reaches half of its highest value differs from the published one
    /// by at most [`CLOSE`].
    Half {
        of: String,
        curve: String,
        published: f64,
    },
    /// The quotient of the results for two values of swept parameters, perhaps of two measurements,
    /// is above a bound.
    SweptRatio {
        of: String,
        curve: String,
        at: String,
        over: String,
        than: String,
        above: f64,
    },
    /// The quotient of two curves, `curve / over`, lies between bounds at every measured size.
    Ratio {
        of: String,
        curve: String,
        over: String,
        from: usize,
        to: usize,
        #[serde(default)]
        above: Option<f64>,
        #[serde(default)]
        below: Option<f64>,
    },
    /// The quotient of one curve in two measurements, `of / over`, lies between bounds at every
    /// measured size.
    Between {
        of: String,
        over: String,
        curve: String,
        from: usize,
        to: usize,
        #[serde(default)]
        above: Option<f64>,
        #[serde(default)]
        below: Option<f64>,
    },
    /// The quotient of the highest values of two curves, `curve / over`, lies between bounds.
    PeakRatio {
        of: String,
        curve: String,
        over: String,
        #[serde(default)]
        above: Option<f64>,
        #[serde(default)]
        below: Option<f64>,
    },
    /// At some size, the value of a curve in the measurement `of` is higher than in `over`.
    AnyAbove {
        of: String,
        curve: String,
        over: String,
    },
    /// The smallest size from which on one curve is better than another at all measured sizes
    /// differs from the published size by at most a factor of two.
    Crossover {
        of: String,
        curve: String,
        over: String,
        at: usize,
    },
    /// One curve is better than another at the powers of two from `from` to below `to`, and not
    /// from `to` on. Other sizes are ignored: documents draw curves through powers of two.
    Window {
        of: String,
        curve: String,
        over: String,
        from: usize,
        to: usize,
    },
    /// The difference of two curves is greater at every size above `at` than at every size up to
    /// `at`.
    Widens {
        of: String,
        curve: String,
        over: String,
        at: usize,
    },
    /// The value of a curve falls from the size `at` to the next larger measured size.
    StepDown {
        of: String,
        curve: String,
        at: usize,
    },
    /// The value rises from `at` to the next larger measured size by at least this factor.
    StepUp {
        of: String,
        curve: String,
        at: usize,
        above: f64,
    },
    /// After some whole number of packets of this size, the value at the next larger measured size
    /// is lower by at least the share `deeper`.
    Steps {
        of: String,
        curve: String,
        packet: usize,
        deeper: f64,
    },
    /// The value at a size is at least this share of the highest value of another curve.
    PeakShare {
        of: String,
        curve: String,
        peak: String,
        at: usize,
        above: f64,
    },
    /// The highest value of a curve is at least this many times the lowest one.
    Spread {
        of: String,
        curve: String,
        above: f64,
    },
    /// Between two sizes, the curve falls by at least the share `deeper` below an earlier value.
    Dip {
        of: String,
        curve: String,
        from: usize,
        to: usize,
        deeper: f64,
    },
    /// The dip of one curve between two sizes is less deep than that of another curve, by at least
    /// [`APART`].
    SmallerDip {
        of: String,
        curve: String,
        than: String,
        from: usize,
        to: usize,
    },
    /// Bandwidth times latency, divided by the message size, is at least `above`: this many
    /// messages are in flight.
    InFlight {
        of: String,
        latency: String,
        curve: String,
        at: usize,
        above: f64,
    },
    /// A value of a system of the catalogue equals a text, or is close to a published number.
    Catalogue {
        system: String,
        key: String,
        #[serde(default)]
        is: Option<String>,
        #[serde(default)]
        published: Option<f64>,
        #[serde(default)]
        unit: Option<String>,
    },
    /// A machine of the document is refused, and the reason contains this text.
    Refused { machine: String, because: String },
    /// The library accepts a machine of the document.
    Accepted { machine: String },
}

/// The point of a curve that a check reads: a size, or the highest value.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum At {
    Size(usize),
    Highest(Peak),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Peak {
    Peak,
}

/// The result of a check: whether the condition holds, and a text with the deciding figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) holds: bool,
    pub(crate) measured: String,
    #[serde(skip)]
    pub(crate) figure: Option<Figure>,
}

/// The results of a study's measurements, which checks may read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) curves: &'a Curves,
    pub(crate) machines: &'a [Machine],
    /// The measurements that have no results, and the reasons.
    pub(crate) missing: &'a Missing,
}

/// For each measurement without results, by its name, the reason.
pub(crate) type Missing = BTreeMap<String, String>;

impl Finding {
    fn of(holds: bool, measured: String) -> Finding {
        Finding {
            holds,
            measured,
            figure: None,
        }
    }
}

/// The lower and the upper bound of a quotient, both excluded.
#[derive(Clone, Copy)]
struct Bounds(Option<f64>, Option<f64>);

impl Bounds {
    fn hold(self, least: f64, most: f64) -> bool {
        self.0.is_none_or(|above| least > above) && self.1.is_none_or(|below| most < below)
    }
}

impl Check {
    /// The names of the curves that the check reads, for replacement.
    pub(crate) fn curves(&mut self) -> Vec<&mut String> {
        use Check::*;
        match self {
            Ratio { curve, over, .. }
            | Quotient { curve, over, .. }
            | Difference { curve, over, .. }
            | PeakRatio { curve, over, .. }
            | Crossover { curve, over, .. }
            | Widens { curve, over, .. }
            | Window { curve, over, .. } => vec![curve, over],
            PeakShare { curve, peak, .. } => vec![curve, peak],
            SmallerDip { curve, than, .. } => vec![curve, than],
            Between { curve, .. }
            | Against { curve, .. }
            | AnyAbove { curve, .. }
            | Value { curve, .. }
            | AtLeast { curve, .. }
            | Swept { curve, .. }
            | SweptRatio { curve, .. }
            | Plateau { curve, .. }
            | Half { curve, .. }
            | StepDown { curve, .. }
            | StepUp { curve, .. }
            | Steps { curve, .. }
            | Spread { curve, .. }
            | InFlight { curve, .. }
            | Dip { curve, .. } => vec![curve],
            Catalogue { .. } | Refused { .. } | Accepted { .. } => vec![],
        }
    }

    /// The names of the measurements that the check reads.
    pub(crate) fn measures(&self) -> Vec<&String> {
        use Check::*;
        match self {
            Between { of, over, .. }
            | Against { of, over, .. }
            | AnyAbove { of, over, .. }
            | SweptRatio { of, over, .. } => {
                vec![of, over]
            }
            InFlight { of, latency, .. } => vec![of, latency],
            Ratio { of, .. }
            | Quotient { of, .. }
            | Difference { of, .. }
            | PeakRatio { of, .. }
            | Crossover { of, .. }
            | Widens { of, .. }
            | Window { of, .. }
            | PeakShare { of, .. }
            | SmallerDip { of, .. }
            | Value { of, .. }
            | AtLeast { of, .. }
            | Swept { of, .. }
            | Plateau { of, .. }
            | Half { of, .. }
            | StepDown { of, .. }
            | StepUp { of, .. }
            | Steps { of, .. }
            | Spread { of, .. }
            | Dip { of, .. } => vec![of],
            Catalogue { .. } | Refused { .. } | Accepted { .. } => vec![],
        }
    }

    /// The check with one curve replaced by another. `None`: it does not read that curve.
    pub(crate) fn with(&self, old: &str, new: &str) -> Option<Check> {
        let mut changed = self.clone();
        let mut found = false;
        for name in changed.curves() {
            if name == old {
                new.clone_into(name);
                found = true;
            }
        }
        found.then_some(changed)
    }

    /// Decides whether the condition holds.
    pub(crate) fn decide(&self, evidence: &Evidence) -> Finding {
        let found = self
            .figure(evidence)
            .or_else(|| self.bounded(evidence.curves))
            .or_else(|| self.quotients(evidence.curves))
            .or_else(|| self.shape(evidence.curves))
            .or_else(|| self.part(evidence));
        found.unwrap_or_else(|| Finding::of(false, "not measured".into()))
    }
}

#[cfg(test)]
mod tests;
