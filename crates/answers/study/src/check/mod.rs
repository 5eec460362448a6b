//! Checks of statements: figures, orderings, crossovers, steps and dips of measured curves, and
//! values of the catalogue. Pure functions of both.

mod figures;
mod parts;
mod shapes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::curves::Curves;
use crate::document::Machine;
pub(crate) use figures::{APART, CLOSE, Figure, factor};

/// A condition on measured curves, or on parts of the catalogue. `of` is the measurement, `from`
/// and `to` are message sizes in bytes, both included.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Check {
    /// A value is the published one, within the limit of figures ([`CLOSE`]). `precision`: half a
    /// unit of the last digit that the document prints, where that is more.
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
    /// A value is at least the published one.
    AtLeast {
        of: String,
        curve: String,
        at: At,
        published: f64,
        #[serde(default)]
        unit: Option<String>,
    },
    /// The quotient of two curves is that close to the published one. A quotient that is nearer to
    /// 1 than the limit is compared by its gain: else it could not fail.
    Quotient {
        of: String,
        curve: String,
        over: String,
        at: At,
        published: f64,
    },
    /// The quotient of two measurements of a curve is that close to the published one.
    Against {
        of: String,
        over: String,
        curve: String,
        at: At,
        published: f64,
    },
    /// The difference of two curves is that close to the published one.
    Difference {
        of: String,
        curve: String,
        over: String,
        at: At,
        published: f64,
        #[serde(default)]
        precision: f64,
    },
    /// The value for a value of the swept parameter is that close to the published one.
    Swept {
        of: String,
        curve: String,
        at: String,
        published: f64,
        #[serde(default)]
        unit: Option<String>,
    },
    /// The smallest size or swept value whose result is within this share of the highest one is
    /// that close to the published one.
    Plateau {
        of: String,
        curve: String,
        within: f64,
        published: f64,
    },
    /// The size that reaches half of the highest value is that close to the published one.
    Half {
        of: String,
        curve: String,
        published: f64,
    },
    /// The quotient of two values of swept parameters, of any measurements, is above a bound.
    SweptRatio {
        of: String,
        curve: String,
        at: String,
        over: String,
        than: String,
        above: f64,
    },
    /// The quotient of two curves lies between bounds at every measured size.
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
    /// The quotient of two measurements of a curve lies between bounds at every measured size.
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
    /// The quotient of the highest values of two curves lies between bounds.
    PeakRatio {
        of: String,
        curve: String,
        over: String,
        #[serde(default)]
        above: Option<f64>,
        #[serde(default)]
        below: Option<f64>,
    },
    /// At some size, a curve is better than the same machine in another measurement.
    AnyAbove {
        of: String,
        curve: String,
        over: String,
    },
    /// The smallest size from which one curve is better than another at every larger one is the
    /// published size, or one of its neighbours by a factor of two.
    Crossover {
        of: String,
        curve: String,
        over: String,
        at: usize,
    },
    /// One curve is better than another at the powers of two from `from` to below `to`, and not
    /// from `to` on. Documents draw curves through powers of two.
    Window {
        of: String,
        curve: String,
        over: String,
        from: usize,
        to: usize,
    },
    /// The difference of two curves is greater at every size above `at` than at every size up to
    /// it.
    Widens {
        of: String,
        curve: String,
        over: String,
        at: usize,
    },
    /// The value falls from `at` to the next larger measured size.
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
    /// is lower by at least this share.
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
    /// Between two sizes, the curve falls by at least this share below an earlier value.
    Dip {
        of: String,
        curve: String,
        from: usize,
        to: usize,
        deeper: f64,
    },
    /// The dip of one curve between two sizes is less deep than that of another, by at least
    /// [`APART`].
    SmallerDip {
        of: String,
        curve: String,
        than: String,
        from: usize,
        to: usize,
    },
    /// Bandwidth times latency: at least this many messages are in flight.
    InFlight {
        of: String,
        latency: String,
        curve: String,
        at: usize,
        above: f64,
    },
    /// A value of a system of the catalogue: as text, or close to the published number.
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
    /// A machine of the document is refused, with this word in the reason.
    Refused { machine: String, because: String },
    /// A machine of the document is not refused.
    Accepted { machine: String },
}

/// A size, or the highest value.
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

/// The result of a check: whether the condition holds, and the figures that decide it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) holds: bool,
    pub(crate) measured: String,
    #[serde(skip)]
    pub(crate) figure: Option<Figure>,
}

/// All that checks may read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) curves: &'a Curves,
    pub(crate) machines: &'a [Machine],
    /// Measurements without results, and the reasons.
    pub(crate) missing: &'a Missing,
}

/// Measurements without results, by their names, and the reasons.
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

/// The bounds of a quotient, both excluded.
#[derive(Clone, Copy)]
struct Bounds(Option<f64>, Option<f64>);

impl Bounds {
    fn hold(self, least: f64, most: f64) -> bool {
        self.0.is_none_or(|above| least > above) && self.1.is_none_or(|below| most < below)
    }
}

impl Check {
    /// The names of the curves that the check reads.
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

    /// The check with one curve in place of another. None: it does not read that curve.
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

    /// Decides the condition.
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
