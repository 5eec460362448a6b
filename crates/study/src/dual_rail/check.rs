//! Checks of statements about curves: orderings, crossovers, steps and dips. Pure functions of
//! measured curves.

use results::sizes::size_label;
use results::table::significant;
use serde::{Deserialize, Serialize};

use super::curves::{Benchmark, Curves};

/// Greatest error of a value that is reproduced, as a share.
const CLOSE: f64 = 0.1;

/// A condition on measured curves. `of` is the benchmark, `from` and `to` are message sizes in
/// bytes, both included.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Check {
    /// The quotient of two curves lies between bounds at every measured size.
    Ratio {
        of: Benchmark,
        curve: String,
        over: String,
        from: usize,
        to: usize,
        #[serde(default)]
        above: Option<f64>,
        #[serde(default)]
        below: Option<f64>,
    },
    /// The quotient of the highest values of two curves is below a bound.
    PeakRatio {
        of: Benchmark,
        curve: String,
        over: String,
        below: f64,
    },
    /// At some size, a curve is better than the same machine in another benchmark.
    AnyAbove {
        of: Benchmark,
        curve: String,
        over: Benchmark,
    },
    /// A value is within [`CLOSE`] of the published one.
    Value {
        of: Benchmark,
        curve: String,
        at: usize,
        published: f64,
    },
    /// The smallest size from which one curve is better than another at every larger one is the
    /// published size, or one of its neighbours by a factor of two.
    Crossover {
        of: Benchmark,
        curve: String,
        over: String,
        at: usize,
    },
    /// One curve is better than another at the powers of two from `from` to below `to`, and not
    /// from `to` on. Documents draw curves through powers of two.
    Window {
        of: Benchmark,
        curve: String,
        over: String,
        from: usize,
        to: usize,
    },
    /// The value falls from `at` to the next larger measured size.
    StepDown {
        of: Benchmark,
        curve: String,
        at: usize,
    },
    /// The value rises from `at` to the next larger measured size by at least this factor.
    StepUp {
        of: Benchmark,
        curve: String,
        at: usize,
        above: f64,
    },
    /// The value at a size is at least this share of the highest value of another curve.
    PeakShare {
        of: Benchmark,
        curve: String,
        peak: String,
        at: usize,
        above: f64,
    },
    /// Between two sizes, the curve falls by at least this share below an earlier value.
    Dip {
        of: Benchmark,
        curve: String,
        from: usize,
        to: usize,
        deeper: f64,
    },
    /// The dip of one curve between two sizes is less deep than that of another.
    SmallerDip {
        of: Benchmark,
        curve: String,
        than: String,
        from: usize,
        to: usize,
    },
}

/// The result of a check: whether the condition holds, and the figures that decide it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) holds: bool,
    pub(crate) measured: String,
}

/// Finding of a check whose sizes were not measured.
fn unmeasured() -> Finding {
    Finding {
        holds: false,
        measured: "not measured".into(),
    }
}

impl Check {
    /// The names of the curves that the check reads.
    pub(crate) fn curves(&mut self) -> Vec<&mut String> {
        match self {
            Check::Ratio { curve, over, .. }
            | Check::PeakRatio { curve, over, .. }
            | Check::Crossover { curve, over, .. }
            | Check::Window { curve, over, .. } => vec![curve, over],
            Check::PeakShare { curve, peak, .. } => vec![curve, peak],
            Check::SmallerDip { curve, than, .. } => vec![curve, than],
            Check::AnyAbove { curve, .. }
            | Check::Value { curve, .. }
            | Check::StepDown { curve, .. }
            | Check::StepUp { curve, .. }
            | Check::Dip { curve, .. } => vec![curve],
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
    pub(crate) fn decide(&self, found: &Curves) -> Finding {
        self.decided(found).unwrap_or_else(unmeasured)
    }

    // Over 80 lines: an arm for each kind of check.
    fn decided(&self, found: &Curves) -> Option<Finding> {
        match self {
            Check::Ratio {
                of,
                curve,
                over,
                from,
                to,
                above,
                below,
            } => {
                let mut ratios = found.ratios(*of, curve, over);
                ratios.retain(|(size, _)| (*from..=*to).contains(size));
                let least = *ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
                let most = *ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
                Some(Finding {
                    holds: above.is_none_or(|above| least.1 > above)
                        && below.is_none_or(|below| most.1 < below),
                    measured: format!("{curve} / {over} {}", span(least, most)),
                })
            }
            Check::PeakRatio {
                of,
                curve,
                over,
                below,
            } => {
                let ratio = found.peak(*of, curve)? / found.peak(*of, over)?;
                Some(Finding {
                    holds: ratio < *below,
                    measured: format!("{curve} / {over}, highest: {ratio:.3}"),
                })
            }
            Check::AnyAbove { of, curve, over } => any_above(found, *of, curve, *over),
            Check::Value {
                of,
                curve,
                at,
                published,
            } => {
                let value = found.at(*of, curve, *at)?;
                let error = value / published - 1.0;
                Some(Finding {
                    holds: error.abs() <= CLOSE,
                    measured: format!(
                        "{} {} ({:+.1} %)",
                        significant(value),
                        of.unit().name(),
                        error * 100.0
                    ),
                })
            }
            Check::Crossover {
                of,
                curve,
                over,
                at,
            } => crossover(found, *of, [curve, over], *at),
            Check::Window {
                of,
                curve,
                over,
                from,
                to,
            } => window(found, *of, [curve, over], [*from, *to]),
            Check::StepDown { of, curve, at } => step(found, *of, curve, *at, |ratio| ratio < 1.0),
            Check::StepUp {
                of,
                curve,
                at,
                above,
            } => step(found, *of, curve, *at, |ratio| ratio > *above),
            Check::PeakShare {
                of,
                curve,
                peak,
                at,
                above,
            } => {
                let share = found.at(*of, curve, *at)? / found.peak(*of, peak)?;
                let (size, percent) = (size_label(*at), share * 100.0);
                Some(Finding {
                    holds: share > *above,
                    measured: format!("{curve} at {size}: {percent:.0} % of {peak}'s highest"),
                })
            }
            Check::Dip {
                of,
                curve,
                from,
                to,
                deeper,
            } => {
                let dip = dip(found, *of, curve, [*from, *to])?;
                Some(Finding {
                    holds: dip.depth() >= *deeper,
                    measured: format!("{curve} {}", dip.shown()),
                })
            }
            Check::SmallerDip {
                of,
                curve,
                than,
                from,
                to,
            } => {
                let [one, other] = [curve, than].map(|name| dip(found, *of, name, [*from, *to]));
                let (one, other) = (one?, other?);
                Some(Finding {
                    holds: one.depth() < other.depth(),
                    measured: format!("{curve} {}; {than} {}", one.shown(), other.shown()),
                })
            }
        }
    }
}

/// A range of quotients with their sizes.
fn span(least: (usize, f64), most: (usize, f64)) -> String {
    let shown = |(size, ratio): (usize, f64)| format!("{ratio:.3} at {}", size_label(size));
    match least.0 == most.0 {
        true => shown(least),
        false => format!("{} to {}", shown(least), shown(most)),
    }
}

fn any_above(found: &Curves, of: Benchmark, curve: &str, over: Benchmark) -> Option<Finding> {
    let below = found.curve(over, curve)?;
    let points = found.curve(of, curve)?.points.iter();
    let ratios = points.filter_map(|&(size, value)| Some((size, value / below.at(size)?)));
    let (size, ratio) = ratios.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Finding {
        holds: ratio > 1.0,
        measured: format!(
            "{curve}, {} / {}: at most {ratio:.3}, at {}",
            of.name(),
            over.name(),
            size_label(size)
        ),
    })
}

fn crossover(
    found: &Curves,
    of: Benchmark,
    [curve, over]: [&str; 2],
    published: usize,
) -> Option<Finding> {
    let ratios = found.ratios(of, curve, over);
    let wins = |ratio: f64| (ratio > 1.0) == of.unit().more_is_better();
    let losing = ratios.iter().rposition(|&(_, ratio)| !wins(ratio));
    let Some(&(size, _)) = ratios.get(losing.map_or(0, |last| last + 1)) else {
        return Some(Finding {
            holds: false,
            measured: format!("{curve} is not better at the largest size"),
        });
    };
    Some(Finding {
        holds: (published / 2..=published * 2).contains(&size),
        measured: format!("{curve} is better from {} on", size_label(size)),
    })
}

fn window(
    found: &Curves,
    of: Benchmark,
    [curve, over]: [&str; 2],
    [from, to]: [usize; 2],
) -> Option<Finding> {
    let ratios = found.ratios(of, curve, over);
    let wins = |ratio: f64| (ratio > 1.0) == of.unit().more_is_better();
    let plotted = ratios.iter().filter(|(size, _)| size.is_power_of_two());
    let holds = plotted
        .filter(|(size, _)| *size >= from)
        .all(|&(size, ratio)| wins(ratio) == (size < to));
    let inside = ratios.iter().filter(|(size, _)| (from..to).contains(size));
    let (peak, most) = *inside.max_by(|a, b| a.1.total_cmp(&b.1))?;
    // The window around its largest ratio, over all measured sizes.
    let middle = ratios.iter().position(|(size, _)| *size == peak)?;
    let before = ratios[..middle].iter().rev();
    let after = ratios[middle..].iter();
    let first = before.take_while(|(_, ratio)| wins(*ratio)).last();
    let last = after.take_while(|(_, ratio)| wins(*ratio)).last()?;
    Some(Finding {
        holds,
        measured: format!(
            "{curve} is better from {} to {}, {most:.2} x at {}",
            size_label(first.map_or(peak, |first| first.0)),
            size_label(last.0),
            size_label(peak)
        ),
    })
}

fn step(
    found: &Curves,
    of: Benchmark,
    curve: &str,
    at: usize,
    enough: impl Fn(f64) -> bool,
) -> Option<Finding> {
    let points = &found.curve(of, curve)?.points;
    let here = points.iter().position(|(size, _)| *size == at)?;
    let (before, after) = (points[here], points.get(here + 1)?);
    Some(Finding {
        holds: enough(after.1 / before.1),
        measured: format!(
            "{curve}: {} at {}, {} {} at {}",
            significant(before.1),
            size_label(before.0),
            significant(after.1),
            of.unit().name(),
            size_label(after.0)
        ),
    })
}

/// A fall of a curve below an earlier value.
struct Fall {
    high: (usize, f64),
    low: (usize, f64),
}

impl Fall {
    fn depth(&self) -> f64 {
        1.0 - self.low.1 / self.high.1
    }

    fn shown(&self) -> String {
        match self.depth() > 0.0 {
            true => format!(
                "falls by {:.1} % from {} to {}",
                self.depth() * 100.0,
                size_label(self.high.0),
                size_label(self.low.0)
            ),
            false => "does not fall".into(),
        }
    }
}

/// The deepest fall between two sizes. If the curve only rises, the depth is not positive.
fn dip(found: &Curves, of: Benchmark, curve: &str, [from, to]: [usize; 2]) -> Option<Fall> {
    let points = found.curve(of, curve)?.points.iter();
    let points: Vec<_> = points
        .filter(|(size, _)| (from..=to).contains(size))
        .collect();
    let falls = points.iter().enumerate().flat_map(|(at, high)| {
        let later = points[at + 1..].iter();
        later.map(|low| Fall {
            high: **high,
            low: **low,
        })
    });
    falls.max_by(|a, b| a.depth().total_cmp(&b.depth()))
}

#[cfg(test)]
mod tests;
