//! Checks of statements about the shapes of curves.

use results::sizes::size_label;
use results::table::significant;

use super::{APART, Bounds, Check, Finding};
use crate::curves::Curves;

impl Check {
    /// The finding of a check of a curve's shape. `None`: the check is of another kind, or its
    /// curves were not measured.
    // Over 80 lines: an arm for each kind of check.
    pub(super) fn shape(&self, found: &Curves) -> Option<Finding> {
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
                let ratios = found.ratios(of, curve, over);
                let names = format!("{curve} / {over}");
                within(ratios, [*from, *to], Bounds(*above, *below), &names)
            }
            Check::Between {
                of,
                over,
                curve,
                from,
                to,
                above,
                below,
            } => {
                let ratios = found.quotients([of, curve], [over, curve]);
                let names = format!("{of} / {over}");
                within(ratios, [*from, *to], Bounds(*above, *below), &names)
            }
            Check::PeakRatio {
                of,
                curve,
                over,
                above,
                below,
            } => {
                let ratio = found.peak(of, curve)? / found.peak(of, over)?;
                Some(Finding::of(
                    Bounds(*above, *below).hold(ratio, ratio),
                    format!("{curve} / {over}, highest: {ratio:.3}"),
                ))
            }
            Check::AnyAbove { of, curve, over } => any_above(found, of, curve, over),
            Check::Crossover {
                of,
                curve,
                over,
                at,
            } => crossover(found, of, [curve, over], *at),
            Check::Window {
                of,
                curve,
                over,
                from,
                to,
            } => window(found, of, [curve, over], [*from, *to]),
            Check::Widens {
                of,
                curve,
                over,
                at,
            } => widens(found, of, [curve, over], *at),
            Check::StepDown { of, curve, at } => step(found, of, curve, *at, |ratio| ratio < 1.0),
            Check::StepUp {
                of,
                curve,
                at,
                above,
            } => step(found, of, curve, *at, |ratio| ratio > *above),
            Check::Steps {
                of,
                curve,
                packet,
                deeper,
            } => steps(found, of, curve, *packet, *deeper),
            Check::Dip {
                of,
                curve,
                from,
                to,
                deeper,
            } => {
                let dip = dip(found, of, curve, [*from, *to])?;
                let measured = format!("{curve} {}", dip.shown());
                Some(Finding::of(dip.depth() >= *deeper, measured))
            }
            Check::SmallerDip {
                of,
                curve,
                than,
                from,
                to,
            } => {
                let [one, other] = [curve, than].map(|name| dip(found, of, name, [*from, *to]));
                let (one, other) = (one?, other?);
                Some(Finding::of(
                    other.depth() - one.depth().max(0.0) >= APART,
                    format!("{curve} {}; {than} {}", one.shown(), other.shown()),
                ))
            }
            _ => None,
        }
    }
}

/// The finding whether quotients lie between bounds at every size from `from` to `to`. `None`: no
/// such size was measured.
fn within(
    mut ratios: Vec<(usize, f64)>,
    [from, to]: [usize; 2],
    bounds: Bounds,
    names: &str,
) -> Option<Finding> {
    ratios.retain(|(size, _)| (from..=to).contains(size));
    let least = *ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = *ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let measured = format!("{names} {}", span(least, most));
    Some(Finding::of(bounds.hold(least.1, most.1), measured))
}

/// The finding whether two curves are further apart at every size above `at` than at every size up
/// to it. `None`: the curves were not measured on both sides of `at`.
fn widens(found: &Curves, of: &str, [curve, over]: [&str; 2], at: usize) -> Option<Finding> {
    let other = found.curve(of, over)?;
    let points = found.curve(of, curve)?.points.iter();
    let gaps = points.filter_map(|&(size, value)| Some((size, (value - other.at(size)?).abs())));
    let (short, long): (Vec<_>, Vec<_>) = gaps.partition(|(size, _)| *size <= at);
    let most = short.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let least = long.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let unit = found.unit(of).symbol();
    let shown =
        |(size, gap): (usize, f64)| format!("{} {unit} at {}", significant(gap), size_label(size));
    let at = size_label(at);
    Some(Finding::of(
        least.1 > most.1,
        format!(
            "difference up to {at}: at most {}, above: at least {}",
            shown(most),
            shown(least)
        ),
    ))
}

/// The finding about the deepest fall after a whole number of packets. `None`: the curve was not
/// measured there.
fn steps(found: &Curves, of: &str, curve: &str, packet: usize, deeper: f64) -> Option<Finding> {
    let points = &found.curve(of, curve)?.points;
    let pairs = points.windows(2).filter(|pair| pair[0].0 % packet == 0);
    let falls = pairs.map(|pair| Fall {
        high: pair[0],
        low: pair[1],
    });
    let deepest = falls.max_by(|a, b| a.depth().total_cmp(&b.depth()))?;
    let measured = format!("{curve} {}", deepest.shown());
    Some(Finding::of(deepest.depth() >= deeper, measured))
}

/// A range of quotients as text, with the sizes at which they were found.
fn span(least: (usize, f64), most: (usize, f64)) -> String {
    let shown = |(size, ratio): (usize, f64)| format!("{ratio:.3} at {}", size_label(size));
    match least.0 == most.0 {
        true => shown(least),
        false => format!("{} to {}", shown(least), shown(most)),
    }
}

fn any_above(found: &Curves, of: &str, curve: &str, over: &str) -> Option<Finding> {
    let below = found.curve(over, curve)?;
    let points = found.curve(of, curve)?.points.iter();
    let ratios = points.filter_map(|&(size, value)| Some((size, value / below.at(size)?)));
    let (size, ratio) = ratios.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Finding {
        figure: None,
        holds: ratio > 1.0,
        measured: format!(
            "{curve}, {} / {}: at most {ratio:.3}, at {}",
            of,
            over,
            size_label(size)
        ),
    })
}

fn crossover(
    found: &Curves,
    of: &str,
    [curve, over]: [&str; 2],
    published: usize,
) -> Option<Finding> {
    let ratios = found.ratios(of, curve, over);
    let wins = |ratio: f64| (ratio > 1.0) == found.unit(of).more_is_better();
    let losing = ratios.iter().rposition(|&(_, ratio)| !wins(ratio));
    let Some(&(size, _)) = ratios.get(losing.map_or(0, |last| last + 1)) else {
        return Some(Finding {
            figure: None,
            holds: false,
            measured: format!("{curve} is not better at the largest size"),
        });
    };
    Some(Finding {
        figure: None,
        holds: (published / 2..=published * 2).contains(&size),
        measured: format!("{curve} is better from {} on", size_label(size)),
    })
}

fn window(
    found: &Curves,
    of: &str,
    [curve, over]: [&str; 2],
    [from, to]: [usize; 2],
) -> Option<Finding> {
    let ratios = found.ratios(of, curve, over);
    let wins = |ratio: f64| (ratio > 1.0) == found.unit(of).more_is_better();
    let plotted = ratios.iter().filter(|(size, _)| size.is_power_of_two());
    let holds = plotted
        .filter(|(size, _)| *size >= from)
        .all(|&(size, ratio)| wins(ratio) == (size < to));
    let inside = ratios.iter().filter(|(size, _)| (from..to).contains(size));
    let (peak, most) = *inside.max_by(|a, b| a.1.total_cmp(&b.1))?;
    // Extend the window from its largest ratio over all measured sizes.
    let middle = ratios.iter().position(|(size, _)| *size == peak)?;
    let before = ratios[..middle].iter().rev();
    let after = ratios[middle..].iter();
    let first = before.take_while(|(_, ratio)| wins(*ratio)).last();
    let last = after.take_while(|(_, ratio)| wins(*ratio)).last()?;
    Some(Finding {
        figure: None,
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
    of: &str,
    curve: &str,
    at: usize,
    enough: impl Fn(f64) -> bool,
) -> Option<Finding> {
    let points = &found.curve(of, curve)?.points;
    let here = points.iter().position(|(size, _)| *size == at)?;
    let (before, after) = (points[here], points.get(here + 1)?);
    Some(Finding {
        figure: None,
        holds: enough(after.1 / before.1),
        measured: format!(
            "{curve}: {} at {}, {} {} at {}",
            significant(before.1),
            size_label(before.0),
            significant(after.1),
            found.unit(of).symbol(),
            size_label(after.0)
        ),
    })
}

/// A point at which a curve falls below one of its earlier values.
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

/// The deepest fall of a curve between two sizes. If the curve only rises, the depth is not
/// positive. `None`: fewer than two points were measured between them.
fn dip(found: &Curves, of: &str, curve: &str, [from, to]: [usize; 2]) -> Option<Fall> {
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
