//! The ends and ticks of a plot's axes.

use super::axis::Axis;
use super::content::Plot;
use crate::table::distinct;
use crate::ticks::{around_doublings, between, decades, doublings, steps};

/// The most different positions on a linear axis that are all labelled.
const MOST_LABELLED: usize = 12;

/// The ends and the ticks of an axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// True if values are placed by their logarithms.
    pub is_logarithmic: bool,
    /// The positions of both ends. The position of a value is its common logarithm on a logarithmic
    /// axis, and the value itself on a linear one.
    pub ends: (f64, f64),
    /// The values at which the axis has ticks.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// The position of a value on the axis: its logarithm on a logarithmic axis.
    pub fn place(&self, value: f64) -> f64 {
        match self.is_logarithmic {
            true => value.log10(),
            false => value,
        }
    }
}

impl Plot {
    /// The scale of the plot's horizontal axis.
    pub fn across(&self) -> Scale {
        let places = self.series.iter().flat_map(|series| self.placed(series));
        let mut places: Vec<f64> = places.map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        let places = distinct(places.into_iter());
        let (first, last) = range(&places, &self.x);
        let is_logarithmic = self.x.log2;
        let (ends, ticks) = if !self.x.names.is_empty() {
            let count = self.x.names.len();
            let ticks = (0..count).map(|place| place as f64).collect();
            ((-0.6, count as f64 - 0.4), ticks)
        } else if self.x.has_sizes() {
            let (left, right) = around_doublings(first.log2(), last.log2());
            let margin = ((right - left) * 0.02).max(0.1);
            let ends = (left - margin, right + margin);
            let ticks = doublings(left, right).into_iter().map(f64::exp2).collect();
            (both(ends, |power| power * 2f64.log10()), ticks)
        } else if is_logarithmic {
            let ends = widened(first.log10(), last.log10());
            (
                ends,
                decades(ends.0, ends.1).into_iter().map(power).collect(),
            )
        } else {
            let ends = widened(first, last);
            let ticks = match (2..=MOST_LABELLED).contains(&places.len()) {
                true => places,
                false => between(ends.0, ends.1),
            };
            (ends, ticks)
        };
        Scale {
            is_logarithmic,
            ends,
            ticks,
        }
    }

    /// The scale of the plot's vertical axis.
    pub fn upward(&self) -> Scale {
        let all = self.series.iter().enumerate();
        let ends = all.flat_map(|(at, series)| {
            let points = self.placed(series).into_iter();
            points.map(move |point| self.reach(at, point).1)
        });
        let bands = self
            .series
            .iter()
            .flat_map(|series| self.placed_band(series));
        let bands = bands.flat_map(|(_, least, most)| [least, most]);
        let values: Vec<f64> = ends.chain(bands).collect();
        let (low, high) = range(&values, &self.y);
        if !self.y.log2 {
            // Leave room for the values above bars.
            let room = if self.has_bars() { 1.15 } else { 1.06 };
            let ends = (low.min(0.0) * room, high.max(0.0) * room);
            let ticks = match ends.0 < 0.0 {
                true => between(ends.0, ends.1),
                false => steps(ends.1),
            };
            return Scale {
                is_logarithmic: false,
                ends,
                ticks,
            };
        }
        let (low, high) = (low.log10(), high.log10());
        let room = (high - low) * 0.06 + 0.02;
        // On a logarithmic axis bars begin below the least value.
        let below = if self.has_bars() { 0.3 } else { 0.0 };
        let ends = (low - room - below, high + room);
        Scale {
            is_logarithmic: true,
            ends,
            ticks: decades(ends.0, ends.1).into_iter().map(power).collect(),
        }
    }

    /// True if any series of the plot is drawn as bars.
    pub fn has_bars(&self) -> bool {
        let mut all = self.series.iter();
        all.any(|series| series.kind.is_bars())
    }
}

/// The least and the greatest value; without values, a range that any axis can show.
fn range(values: &[f64], axis: &Axis) -> (f64, f64) {
    let ends = |(low, high): (f64, f64), value: &f64| (low.min(*value), high.max(*value));
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    match (low <= high, axis.log2) {
        (true, false) if low == 0.0 && high == 0.0 => (0.0, 1.0),
        (true, _) => (low, high),
        (false, true) => (1.0, 10.0),
        (false, false) => (0.0, 1.0),
    }
}

/// The ends of an axis with a margin; they differ even for a single value.
fn widened(first: f64, last: f64) -> (f64, f64) {
    let margin = match last > first {
        true => (last - first) * 0.02,
        false => (last.abs() * 0.5).max(0.5),
    };
    (first - margin, last + margin)
}

fn both(ends: (f64, f64), change: impl Fn(f64) -> f64) -> (f64, f64) {
    (change(ends.0), change(ends.1))
}

fn power(place: f64) -> f64 {
    10f64.powf(place)
}

#[cfg(test)]
mod tests {
    use super::super::content::Series;
    use super::*;

    fn plot(x: Axis, y: Axis, points: &[(f64, f64)]) -> Plot {
        Plot {
            x,
            y,
            series: vec![Series::line("a", points.to_vec())],
            ..Plot::default()
        }
    }

    #[test]
    fn a_single_point_has_several_ticks_on_both_axes() {
        let axes = [
            (Axis::sizes("size"), Axis::logarithmic("time", "us")),
            (Axis::linear("ranks", ""), Axis::linear("time", "us")),
            (Axis::logarithmic("ranks", ""), Axis::linear("time", "us")),
        ];
        for (x, y) in axes {
            let plot = plot(x, y, &[(8.0, 1.6)]);
            for scale in [plot.across(), plot.upward()] {
                assert!(scale.ticks.len() > 1, "{scale:?}");
                let inside =
                    |tick: &f64| (scale.ends.0..=scale.ends.1).contains(&scale.place(*tick));
                assert!(scale.ticks.iter().all(inside), "{scale:?}");
            }
        }
    }

    #[test]
    fn no_value_still_gives_axes() {
        for y in [Axis::linear("a", ""), Axis::logarithmic("a", "")] {
            for points in [&[][..], &[(1.0, 0.0)]] {
                let plot = plot(Axis::sizes("b"), y.clone(), points);
                for scale in [plot.across(), plot.upward()] {
                    assert!(scale.ends.0 < scale.ends.1, "{scale:?}");
                }
            }
        }
    }

    #[test]
    fn few_positions_are_all_labelled() {
        let points: Vec<(f64, f64)> = [2.0, 5.0, 9.0].map(|x| (x, 1.0)).into();
        let plot = plot(
            Axis::linear("ranks", ""),
            Axis::linear("time", "us"),
            &points,
        );
        assert_eq!(plot.across().ticks, [2.0, 5.0, 9.0]);
    }
}
