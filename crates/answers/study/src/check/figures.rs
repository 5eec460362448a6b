//! Checks of figures: the predicted figure is compared with the published one.

use results::Unit;
use results::sizes::size_label;
use results::table::significant;

use super::{At, Check, Evidence, Finding};
use crate::curves::Curves;

/// The greatest error of a reproduced figure, as a share. Nine in ten of one machine's figures are
/// repeated within 7.6 % by another build or benchmark, and those of machines of one class within 8
/// % (long streams) to 14 % (short latencies).
pub(crate) const CLOSE: f64 = 0.1;
/// The least relative difference of two figures with which they count as different: two
/// measurements of one machine and size differ by 2.9 % in the median.
pub(crate) const APART: f64 = 0.03;

/// A published figure, and its prediction by the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) published: f64,
    pub(crate) predicted: f64,
    pub(crate) unit: String,
    /// True if the published figure is a lower bound of the value.
    pub(crate) is_bound: bool,
    /// Half a unit of the last digit that the document prints; 0 if it is unknown.
    pub(crate) precision: f64,
}

impl Figure {
    /// A quotient as a figure; as a gain in percent if the published quotient is nearer to 1 than
    /// [`CLOSE`].
    fn quotient(published: f64, predicted: f64) -> Figure {
        let gain = |quotient: f64| (quotient - 1.0) * 100.0;
        let (published, predicted, unit) = match (published - 1.0).abs() < CLOSE {
            // Round: the difference of binary fractions has more digits than the document.
            true => ((gain(published) * 1e6).round() / 1e6, gain(predicted), "%"),
            false => (published, predicted, "x"),
        };
        Figure {
            published,
            predicted,
            unit: unit.into(),
            is_bound: false,
            precision: 0.0,
        }
    }

    /// The error of the prediction, as a share of the published figure. It is 0 for a value above a
    /// lower bound.
    pub(crate) fn error(&self) -> f64 {
        let error = self.predicted / self.published - 1.0;
        match self.is_bound {
            true => error.min(0.0),
            false => error,
        }
    }

    /// A finding that holds if the error is at most [`CLOSE`] or the document's precision.
    pub(super) fn finding(self) -> Finding {
        let limit = CLOSE.max(self.precision / self.published.abs());
        let holds = self.error().abs() <= limit;
        self.finding_that(holds)
    }

    fn finding_that(self, holds: bool) -> Finding {
        let (value, error) = (significant(self.predicted), self.error() * 100.0);
        Finding {
            holds,
            measured: format!("{value} {} ({error:+.1} %)", for_people(&self.unit)),
            figure: Some(self),
        }
    }
}

/// The unit of a JSON value, as text for people.
fn for_people(unit: &str) -> &str {
    match unit {
        "us" => Unit::Microseconds.symbol(),
        other => other,
    }
}

/// The factor that converts the unit of a measurement to the unit of a publication; `None` if no
/// conversion is known.
pub(crate) fn factor(from: Unit, to: &str) -> Option<f64> {
    match (from, to) {
        (Unit::MegabytesPerSecond, "Gb/s") => Some(0.008),
        (Unit::MegabytesPerSecond, "GB/s") => Some(0.001),
        (Unit::MessagesPerSecond, "M msg/s") => Some(1e-6),
        (own, name) if own.name() == name => Some(1.0),
        _ => None,
    }
}

fn place(curves: &Curves, of: &str, curve: &str, at: At) -> Option<f64> {
    match at {
        At::Size(size) => curves.at(of, curve, size),
        At::Highest(_) => curves.peak(of, curve),
    }
}

/// The value of a measurement in the unit of a publication; without one in the measurement's unit.
fn scaled(
    curves: &Curves,
    of: &str,
    value: f64,
    published: f64,
    unit: &Option<String>,
) -> Option<Figure> {
    let own = curves.unit(of);
    let unit = unit.as_deref().unwrap_or(own.name());
    Some(Figure {
        published,
        predicted: value * factor(own, unit)?,
        unit: unit.into(),
        is_bound: false,
        precision: 0.0,
    })
}

impl Check {
    /// The finding of a check whose figure must be close to the published one. `None`: the check is
    /// of another kind, or its curves were not measured.
    // Over 80 lines: an arm for each kind of check.
    pub(super) fn figure(&self, evidence: &Evidence) -> Option<Finding> {
        let curves = evidence.curves;
        let pair = |of: &str, curve: &str, over: &str, at| {
            Some((place(curves, of, curve, at)?, place(curves, of, over, at)?))
        };
        let figure = match self {
            Check::Value {
                of,
                curve,
                at,
                published,
                unit,
                precision,
            } => Figure {
                precision: *precision,
                ..scaled(curves, of, place(curves, of, curve, *at)?, *published, unit)?
            },
            Check::Swept {
                of,
                curve,
                at,
                published,
                unit,
            } => scaled(curves, of, curves.swept(of, curve, at)?, *published, unit)?,
            Check::Quotient {
                of,
                curve,
                over,
                at,
                published,
            } => {
                let (one, other) = pair(of, curve, over, *at)?;
                Figure::quotient(*published, one / other)
            }
            Check::Against {
                of,
                over,
                curve,
                at,
                published,
            } => {
                let one = place(curves, of, curve, *at)?;
                let other = place(curves, over, curve, *at)?;
                Figure::quotient(*published, one / other)
            }
            Check::Difference {
                of,
                curve,
                over,
                at,
                published,
                precision,
            } => {
                let (one, other) = pair(of, curve, over, *at)?;
                Figure {
                    precision: *precision,
                    ..scaled(curves, of, one - other, *published, &None)?
                }
            }
            Check::Plateau {
                of,
                curve,
                within,
                published,
            } => Figure {
                published: *published,
                predicted: plateau(curves, of, curve, *within)? as f64,
                unit: "B".into(),
                is_bound: false,
                precision: 0.0,
            },
            Check::Half {
                of,
                curve,
                published,
            } => Figure {
                published: *published,
                predicted: half(curves, of, curve)?,
                unit: "B".into(),
                is_bound: false,
                precision: 0.0,
            },
            _ => return None,
        };
        Some(figure.finding())
    }

    /// The finding of a check whose figure must reach a bound. `None`: the check is of another
    /// kind, or its curve was not measured.
    pub(super) fn bounded(&self, curves: &Curves) -> Option<Finding> {
        match self {
            Check::AtLeast {
                of,
                curve,
                at,
                published,
                unit,
            } => {
                let value = place(curves, of, curve, *at)?;
                let figure = Figure {
                    is_bound: true,
                    ..scaled(curves, of, value, *published, unit)?
                };
                let holds = figure.error() == 0.0;
                Some(figure.finding_that(holds))
            }
            _ => None,
        }
    }

    /// The finding of a check of a quotient for which there is no published figure. `None`: the
    /// check is of another kind, or its curves were not measured.
    pub(super) fn quotients(&self, found: &Curves) -> Option<Finding> {
        match self {
            Check::SweptRatio {
                of,
                curve,
                at,
                over,
                than,
                above,
            } => {
                let ratio = found.swept(of, curve, at)? / found.swept(over, curve, than)?;
                let measured = format!("{of} {at} / {over} {than}: {ratio:.3}");
                Some(Finding::of(ratio > *above, measured))
            }
            Check::PeakShare {
                of,
                curve,
                peak,
                at,
                above,
            } => {
                let share = found.at(of, curve, *at)? / found.peak(of, peak)?;
                let (size, percent) = (size_label(*at), share * 100.0);
                let measured = format!("{curve} at {size}: {percent:.0} % of {peak}'s highest");
                Some(Finding::of(share > *above, measured))
            }
            Check::Spread { of, curve, above } => {
                let points = &found.curve(of, curve)?.points;
                let values = points.iter().map(|(_, value)| *value);
                let most = values.clone().max_by(f64::total_cmp)?;
                let least = values.min_by(f64::total_cmp)?;
                let unit = found.unit(of).symbol();
                let (low, high) = (significant(least), significant(most));
                let measured = format!("{of}: {low} to {high} {unit}");
                Some(Finding::of(most / least >= *above, measured))
            }
            Check::InFlight {
                of,
                latency,
                curve,
                at,
                above,
            } => {
                // Megabytes per second times microseconds are bytes.
                let bytes = found.at(of, curve, *at)? * found.at(latency, curve, *at)?;
                let messages = bytes / *at as f64;
                let size = size_label(*at);
                let measured = format!("{curve}: {messages:.1} messages of {size} in flight");
                Some(Finding::of(messages >= *above, measured))
            }
            _ => None,
        }
    }
}

/// The smallest size or swept value whose result is below the highest one by at most the share
/// `within`. `None`: the curve was not measured.
fn plateau(curves: &Curves, of: &str, curve: &str, within: f64) -> Option<usize> {
    let curve = curves.curve(of, curve)?;
    let enough = curve.peak()? * (1.0 - within);
    let mut points = curve.points.iter();
    let first = points.find(|(_, value)| *value >= enough)?;
    Some(first.0)
}

/// The size at which the curve reaches half of its highest value, interpolated linearly. `None`:
/// the curve was not measured.
fn half(curves: &Curves, of: &str, curve: &str) -> Option<f64> {
    let curve = curves.curve(of, curve)?;
    let wanted = curve.peak()? / 2.0;
    let after = curve
        .points
        .iter()
        .position(|(_, value)| *value >= wanted)?;
    let (size, value) = curve.points[after];
    let Some((low, below)) = after.checked_sub(1).map(|before| curve.points[before]) else {
        return Some(size as f64);
    };
    let share = (wanted - below) / (value - below);
    Some(low as f64 + (size - low) as f64 * share)
}
