//! The content of a plot: its series, and the position of each value.

use super::axis::Axis;
use crate::style::Palette;

/// A plot: series on two axes.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// The title above the plot.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order of the legend. A later one is drawn on top of earlier ones.
    pub series: Vec<Series>,
    /// The text below the plot: conditions, and hints for the reader.
    pub caption: String,
    /// The choice of colours.
    pub palette: Palette,
    /// Ranges of the horizontal axis that are shaded behind the series.
    pub shades: Vec<Shade>,
}

/// One series of a plot.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points. A line joins them in this order.
    pub points: Vec<(f64, f64)>,
    /// The form in which the points are drawn: a line, marks or bars.
    pub kind: SeriesKind,
    /// The range of the values at each position, if it is known: position, least value, greatest
    /// value. It is drawn as an area around a line, or as a thin line at the end of a bar.
    pub band: Option<Vec<(f64, f64, f64)>>,
    /// The name of another series whose colour this series has. `None`: it has a colour of its own.
    pub colour_of: Option<String>,
}

/// The form in which a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesKind {
    /// A line with a mark at each point.
    #[default]
    Line,
    /// Marks without a line, on top of all lines: published or measured values.
    Marks,
    /// Bars from 0 to the value of each point.
    Bars,
    /// Stacked bars: each begins at the end of the bar of the stacked series before.
    Stacked,
}

impl SeriesKind {
    /// True if the points are drawn as bars.
    pub fn is_bars(self) -> bool {
        matches!(self, SeriesKind::Bars | SeriesKind::Stacked)
    }
}

impl Series {
    /// A series that is drawn as a line with a mark at each point.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            name: name.into(),
            points,
            ..Series::default()
        }
    }

    /// A series that is drawn as marks without a line.
    pub fn marks(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            kind: SeriesKind::Marks,
            ..Series::line(name, points)
        }
    }

    /// A series that is drawn as bars from 0.
    pub fn bars(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            kind: SeriesKind::Bars,
            ..Series::line(name, points)
        }
    }

    /// A series that is drawn as bars, stacked on those of the stacked series before.
    pub fn stacked(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            kind: SeriesKind::Stacked,
            ..Series::line(name, points)
        }
    }

    /// The value at a position; `None` if the series has no point there.
    fn value(&self, x: f64) -> Option<f64> {
        let mut points = self.points.iter();
        points.find(|point| point.0 == x).map(|point| point.1)
    }

    /// Gives the series the colour of the series with this name.
    pub fn with_colour_of(self, name: impl Into<String>) -> Series {
        Series {
            colour_of: Some(name.into()),
            ..self
        }
    }

    /// Adds a range of values at each position: position, least value, greatest value.
    pub fn with_band(self, band: Vec<(f64, f64, f64)>) -> Series {
        Series {
            band: Some(band),
            ..self
        }
    }
}

/// A range of the horizontal axis that is shaded behind the series.
#[derive(Clone, Debug, PartialEq)]
pub struct Shade {
    /// The lower end of the shaded range, a value of the horizontal axis.
    pub from: f64,
    /// The upper end of the shaded range, a value of the horizontal axis.
    pub to: f64,
    /// The name of the range in the legend. Ranges with equal names have one entry.
    pub name: String,
}

impl Plot {
    /// The number of the colour of each series, and the number of colours. Series that have no
    /// colour of another series are numbered in order.
    pub fn colours(&self) -> (Vec<usize>, usize) {
        let mut own: Vec<&str> = Vec::new();
        for series in &self.series {
            if self.colour_giver(series).is_none() {
                own.push(&series.name);
            }
        }
        let mut next = 0;
        let number = |series: &Series| match self.colour_giver(series) {
            Some(giver) => own.iter().position(|name| *name == giver).unwrap_or(0),
            None => {
                next += 1;
                next - 1
            }
        };
        (self.series.iter().map(number).collect(), own.len())
    }

    /// The name of the series that gives its colour to this series: another one, with a colour of
    /// its own. `None`: there is no such series.
    fn colour_giver<'a>(&self, series: &'a Series) -> Option<&'a str> {
        let name = series.colour_of.as_deref()?;
        let mut all = self.series.iter();
        let gives = |other: &Series| other.name == name && other.colour_of.is_none();
        all.any(gives).then_some(name)
    }

    /// The indices of the series in the order of drawing: marks without lines are drawn on top of
    /// lines.
    pub fn drawing_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.series.len()).collect();
        order.sort_by_key(|&at| self.series[at].kind == SeriesKind::Marks);
        order
    }

    /// The left and the right end of the bar of series `at` at position `x`, next to the bars of
    /// other series.
    pub fn bar(&self, at: usize, x: f64) -> (f64, f64) {
        if self.series[at].kind == SeriesKind::Stacked {
            return (x - 0.35, x + 0.35);
        }
        let is_there =
            |series: &Series| series.kind == SeriesKind::Bars && series.value(x).is_some();
        let count = |series: &[Series]| series.iter().filter(|series| is_there(series)).count();
        let (before, all) = (count(&self.series[..at]), count(&self.series).max(1));
        let width = match all {
            1 => 0.6,
            all => 0.8 / all as f64,
        };
        let left = x - width * all as f64 / 2.0 + width * before as f64;
        (left, left + width)
    }

    /// The two values between which the bar of series `at` extends.
    pub fn reach(&self, at: usize, (x, value): (f64, f64)) -> (f64, f64) {
        if self.series[at].kind != SeriesKind::Stacked {
            return (0.0, value);
        }
        let below: f64 = self.stacked_at(&self.series[..at], x).sum();
        (below, below + value)
    }

    /// The value to write at the end of the bar of series `at`: the sum of the bar and all bars
    /// below it. `None` if another bar is on top of it.
    pub fn total(&self, at: usize, (x, value): (f64, f64)) -> Option<f64> {
        let is_covered = self.series[at].kind == SeriesKind::Stacked
            && self.stacked_at(&self.series[at + 1..], x).next().is_some();
        (!is_covered).then(|| self.reach(at, (x, value)).1)
    }

    /// The value above which the text of the bar of series `at` is written: the end of the bar, or
    /// of its range.
    pub fn label_foot(&self, at: usize, (x, value): (f64, f64)) -> f64 {
        let (_, end) = self.reach(at, (x, value));
        let mut ranges = self.series[at].band.iter().flatten();
        let range = ranges.find(|range| range.0 == x);
        range.map_or(end, |(_, _, most)| most.max(end))
    }

    fn stacked_at<'a>(&self, all: &'a [Series], x: f64) -> impl Iterator<Item = f64> + use<'a> {
        let stacked = all
            .iter()
            .filter(|series| series.kind == SeriesKind::Stacked);
        stacked.filter_map(move |series| series.value(x))
    }

    /// The points of a series that have a position on both axes.
    pub fn placed(&self, series: &Series) -> Vec<(f64, f64)> {
        let points = series.points.iter().copied();
        let placed = points.filter(|&(x, y)| self.x.has_place(x) && self.y.has_place(y));
        placed.collect()
    }

    /// The band of a series, without positions that cannot be drawn on both axes.
    pub fn placed_band(&self, series: &Series) -> Vec<(f64, f64, f64)> {
        let band = series.band.iter().flatten().copied();
        let has_place = |&(x, least, most): &(f64, f64, f64)| {
            self.x.has_place(x) && self.y.has_place(least) && self.y.has_place(most)
        };
        band.filter(has_place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_points_have_the_colour_of_their_curve() {
        let line = |name: &str| Series::line(name, vec![(1.0, 1.0)]);
        let plot = Plot {
            series: vec![
                line("a"),
                line("a, published").with_colour_of("a"),
                line("b"),
                line("c").with_colour_of("absent"),
            ],
            ..Plot::default()
        };
        assert_eq!(plot.colours(), (vec![0, 0, 1, 2], 3));
    }

    #[test]
    fn a_stacked_bar_begins_where_the_one_below_ends() {
        let stacked = |name: &str, values: &[(f64, f64)]| Series::stacked(name, values.to_vec());
        let plot = Plot {
            series: vec![
                stacked("a", &[(0.0, 1.0), (1.0, 2.0)]),
                Series::bars("beside", vec![(0.0, 9.0)]),
                stacked("b", &[(0.0, 3.0)]),
            ],
            ..Plot::default()
        };
        assert_eq!(plot.reach(0, (0.0, 1.0)), (0.0, 1.0));
        assert_eq!(plot.reach(2, (0.0, 3.0)), (1.0, 4.0));
        assert_eq!(plot.total(0, (0.0, 1.0)), None);
        assert_eq!(plot.total(0, (1.0, 2.0)), Some(2.0));
        assert_eq!(plot.total(2, (0.0, 3.0)), Some(4.0));
        assert_eq!(plot.total(1, (0.0, 9.0)), Some(9.0));
        assert_eq!(plot.bar(0, 1.0), plot.bar(2, 1.0));
        assert!(plot.upward().ends.1 >= 9.0);
    }

    #[test]
    fn points_without_a_place_are_left_out() {
        let series = Series::line("a", vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)])
            .with_band(vec![(0.0, 1.0, 2.0), (2.0, 2.5, 3.5)]);
        let plot = Plot {
            x: Axis::sizes("size"),
            ..Plot::default()
        };
        assert_eq!(plot.placed(&series), [(2.0, 3.0)]);
        assert_eq!(plot.placed_band(&series), [(2.0, 2.5, 3.5)]);
    }
}
