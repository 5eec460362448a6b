//! Plots of measurements: values in a known unit, by size or by number of ranks, or single bars.

use super::axis::Axis;
use super::content::{Plot, Series, SeriesKind, Shade};
use crate::style::Palette;
use crate::unit::Unit;

/// A plot of measurements.
pub struct Panel {
    /// The title above the plot.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The kind of horizontal axis.
    pub across: Across,
    /// The label of the horizontal axis.
    pub quantity: String,
    /// The scale of the values of curves; bars always have a linear one.
    pub values: Values,
    /// Ranges of the horizontal axis that are shaded behind curves.
    pub bands: Vec<Band>,
    /// The curves, or bars.
    pub series: Vec<Series>,
}

/// The scale of a panel's vertical axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// A logarithmic scale.
    #[default]
    Logarithmic,
    /// A linear scale that begins at 0.
    Linear,
}

/// A shaded range of the horizontal axis.
pub type Band = Shade;

/// The kind of a panel's horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Sizes in bytes, on a logarithmic scale.
    Sizes,
    /// Numbers of ranks, on a linear scale.
    Ranks,
    /// No axis: each series is a single bar.
    Nothing,
}

impl From<&Panel> for Plot {
    fn from(panel: &Panel) -> Plot {
        let label = panel.quantity.clone();
        let is_barred = panel.across == Across::Nothing;
        Plot {
            title: panel.title.clone(),
            x: match panel.across {
                Across::Sizes => Axis::sizes(label),
                Across::Ranks => Axis::linear(label, ""),
                Across::Nothing => {
                    let names = panel.series.iter().map(|series| series.name.clone());
                    Axis::named("", names.collect())
                }
            },
            y: Axis {
                log2: panel.values == Values::Logarithmic && !is_barred,
                ..Axis::linear(panel.unit.quantity(), panel.unit.shown())
            },
            series: match is_barred {
                true => bars(&panel.series),
                false => panel.series.clone(),
            },
            palette: Palette::of_names(panel.series.iter().map(|series| series.name.as_str())),
            shades: panel.bands.clone(),
            ..Plot::default()
        }
    }
}

/// Each series as a single bar, one next to the other.
fn bars(all: &[Series]) -> Vec<Series> {
    let bar = |(at, series): (usize, &Series)| {
        let place = |&(_, value): &(f64, f64)| (at as f64, value);
        Series {
            points: series.points.iter().take(1).map(place).collect(),
            kind: SeriesKind::Bars,
            ..series.clone()
        }
    };
    all.iter().enumerate().map(bar).collect()
}

impl From<&Plot> for Plot {
    fn from(plot: &Plot) -> Plot {
        plot.clone()
    }
}
