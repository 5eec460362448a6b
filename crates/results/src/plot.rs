//! Plots of measurements as SVG or PNG, by the suffix of the file's name.
//!
//! The font is part of this crate (`assets/`), so a PNG has text on a machine without fonts.

use std::ops::Range;
use std::path::Path;
use std::sync::Once;

use anyhow::{Context, Result, anyhow, bail};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::register_font;

use crate::sizes::size_label;
use crate::table::distinct;
use crate::unit::Unit;

const FONT: &[u8] = include_bytes!("../assets/roboto-subset.ttf");
const FAMILY: &str = "sans-serif";
/// Width and height of one panel, before scaling.
const PANEL: (u32, u32) = (800, 500);
/// Pixels of a bitmap for each unit of length: more than one, for smooth letters.
const PIXELS: u32 = 2;

/// Colours that are distinct for any colour vision (Okabe and Ito), strongest first.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
const GRID: RGBColor = RGBColor(225, 225, 225);
const SHADE: RGBColor = RGBColor(244, 226, 190);
const INK: RGBColor = RGBColor(50, 50, 50);

/// The format of a plot's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Network Graphics.
    Png,
}

impl ImageFormat {
    /// The format that the suffix of `path` names. Callers ask before they measure, so that a wrong
    /// name fails at once.
    pub fn of(path: &Path) -> Result<ImageFormat> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => Ok(ImageFormat::Svg),
            Some("png") => Ok(ImageFormat::Png),
            _ => bail!(
                "--plot {}: the file's name must end in .svg or .png",
                path.display()
            ),
        }
    }
}

/// Draws the panels on one page, two in a row.
pub fn draw(panels: &[Panel], path: &Path) -> Result<()> {
    draw_in_columns(panels, if panels.len() > 1 { 2 } else { 1 }, path)
}

/// Draws the panels on one page, each below the one before.
pub fn draw_below(panels: &[Panel], path: &Path) -> Result<()> {
    draw_in_columns(panels, 1, path)
}

fn draw_in_columns(panels: &[Panel], columns: usize, path: &Path) -> Result<()> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        assert!(
            register_font(FAMILY, FontStyle::Normal, FONT).is_ok(),
            "the font is well formed"
        );
    });
    let rows = panels.len().div_ceil(columns);
    let size = |scale: u32| {
        (
            PANEL.0 * columns as u32 * scale,
            PANEL.1 * rows as u32 * scale,
        )
    };
    match ImageFormat::of(path)? {
        ImageFormat::Svg => {
            let area = SVGBackend::new(path, size(1)).into_drawing_area();
            page(&area, panels, (rows, columns), 1)
        }
        ImageFormat::Png => {
            let area = BitMapBackend::new(path, size(PIXELS)).into_drawing_area();
            page(&area, panels, (rows, columns), PIXELS)
        }
    }
    .with_context(|| format!("cannot draw {}", path.display()))
}

fn page<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    panels: &[Panel],
    grid: (usize, usize),
    scale: u32,
) -> Result<()> {
    let drawn = |error: DrawingAreaErrorKind<B::ErrorType>| anyhow!("{error}");
    area.fill(&WHITE).map_err(drawn)?;
    for (panel, part) in panels.iter().zip(area.split_evenly(grid)) {
        panel.draw(&part, scale).map_err(drawn)?;
    }
    area.present().map_err(drawn)
}

/// One coordinate system.
pub struct Panel {
    /// The text above it.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The kind of horizontal axis.
    pub across: Across,
    /// The label of the horizontal axis.
    pub quantity: String,
    /// The scale of the values of curves; bars have a linear one.
    pub values: Values,
    /// Ranges of the horizontal axis that are shaded behind curves.
    pub bands: Vec<Band>,
    /// The curves, or bars.
    pub series: Vec<Series>,
}

/// The scale of a panel's vertical axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Equal quotients are equally far apart.
    #[default]
    Logarithmic,
    /// Equal differences are equally far apart. The axis begins at 0.
    Linear,
}

impl Values {
    fn place(self, value: f64) -> f64 {
        match self {
            Values::Logarithmic => value.log10(),
            Values::Linear => value,
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Values::Logarithmic => 10f64.powf(place),
            Values::Linear => place,
        }
    }

    /// The ends of the axis for places from `low` to `high`.
    fn ends(self, low: f64, high: f64) -> (f64, f64) {
        match self {
            Values::Logarithmic => {
                let room = (high - low) * 0.06 + 0.02;
                (low - room, high + room)
            }
            Values::Linear => (0.0, high * 1.06),
        }
    }

    fn ticks(self, low: f64, high: f64) -> Vec<f64> {
        match self {
            Values::Logarithmic => decades(low, high),
            Values::Linear => steps(high),
        }
    }
}

/// A shaded range of the horizontal axis.
pub struct Band {
    /// Its ends, positions on the horizontal axis.
    pub from: f64,
    /// The other end.
    pub to: f64,
    /// Its name in the legend. Bands of one name have one entry.
    pub name: String,
}

/// The kind of a panel's horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Sizes in bytes, on a logarithmic scale.
    Sizes,
    /// Numbers of ranks, on a linear scale.
    Ranks,
    /// None: each series is a single bar.
    Nothing,
}

/// One curve or bar.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Position on the horizontal axis, and the value, which is above 0.
    pub points: Vec<(f64, f64)>,
}

impl Panel {
    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        if self.across == Across::Nothing {
            self.bars(area, scale)
        } else {
            self.lines(area, scale)
        }
    }

    fn lines<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let across = |x: f64| match self.across {
            Across::Sizes => x.log2(),
            _ => x,
        };
        let placed = |series: &Series| -> Vec<(f64, f64)> {
            let place = |&(x, value): &(f64, f64)| (across(x), self.values.place(value));
            series.points.iter().map(place).collect()
        };
        let points = || self.series.iter().flat_map(placed);
        let (left, right) = range(points().map(|point| point.0));
        let (low, high) = range(points().map(|point| point.1));
        let (low, high) = self.values.ends(low, high);
        let x_ticks = match self.across {
            Across::Sizes => doublings(left, right),
            _ => distinct(points().map(|point| point.0)),
        };
        let margin = ((right - left) * 0.02).max(0.1);
        let mut chart = self.frame(area, scale).build_cartesian_2d(
            Axis {
                range: left - margin..right + margin,
                ticks: x_ticks.clone(),
            },
            Axis {
                range: low..high,
                ticks: self.values.ticks(low, high),
            },
        )?;
        let x_label = |x: &f64| match self.across {
            Across::Sizes => size_label(x.exp2().round() as usize),
            _ => x.round().to_string(),
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK.stroke_width(scale))
            .label_style(font(13, scale))
            .x_labels(x_ticks.len())
            .x_label_formatter(&x_label)
            .y_label_formatter(&|y: &f64| plain(self.values.value(*y)))
            .x_desc(&self.quantity)
            .y_desc(format!("{}, {}", self.unit.quantity(), self.unit.shown()))
            .axis_desc_style(font(15, scale))
            .draw()?;
        self.shade(&mut chart, across, (low, high), scale)?;
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let points = placed(series);
            chart
                .draw_series(LineSeries::new(
                    points.iter().copied(),
                    colour.stroke_width(2 * scale),
                ))?
                .label(&series.name)
                .legend(move |(x, y)| {
                    let width = 20 * scale as i32;
                    PathElement::new([(x, y), (x + width, y)], colour.stroke_width(3 * scale))
                });
            let dots = points.iter();
            chart.draw_series(dots.map(|&point| Circle::new(point, 3 * scale, colour.filled())))?;
        }
        let corner = match self.unit.more_is_better() {
            true => SeriesLabelPosition::LowerRight,
            false => SeriesLabelPosition::UpperLeft,
        };
        chart
            .configure_series_labels()
            .position(corner)
            .margin(12 * scale)
            .legend_area_size(26 * scale)
            .background_style(WHITE.mix(0.85))
            .border_style(GRID)
            .label_font(font(14, scale))
            .draw()
    }

    /// Shades the bands from the lower to the upper end of the vertical axis.
    fn shade<B: DrawingBackend>(
        &self,
        chart: &mut ChartContext<B, Cartesian2d<Axis, Axis>>,
        across: impl Fn(f64) -> f64,
        (low, high): (f64, f64),
        scale: u32,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let mut named: Vec<&str> = Vec::new();
        for band in &self.bands {
            let corners = [(across(band.from), low), (across(band.to), high)];
            let drawn = chart.draw_series([Rectangle::new(corners, SHADE.filled())])?;
            if !named.contains(&band.name.as_str()) {
                named.push(&band.name);
                drawn.label(&band.name).legend(move |(x, y)| {
                    let (width, half) = (20 * scale as i32, 5 * scale as i32);
                    Rectangle::new([(x, y - half), (x + width, y + half)], SHADE.filled())
                });
            }
        }
        Ok(())
    }

    fn bars<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        scale: u32,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let values: Vec<f64> = self
            .series
            .iter()
            .filter_map(|series| Some(series.points.first()?.1))
            .collect();
        let highest = values
            .iter()
            .copied()
            .fold(0.0, f64::max)
            .max(f64::MIN_POSITIVE);
        let places: Vec<f64> = (0..values.len()).map(|at| at as f64).collect();
        let mut chart = self.frame(area, scale).build_cartesian_2d(
            Axis {
                range: -0.6..values.len() as f64 - 0.4,
                ticks: places,
            },
            0.0..highest * 1.15,
        )?;
        let name = |x: &f64| match self.series.get(x.round() as usize) {
            Some(series) if x.fract().abs() < 1e-6 => series.name.clone(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK.stroke_width(scale))
            .label_style(font(13, scale))
            .x_labels(values.len())
            .x_label_formatter(&name)
            .y_label_formatter(&|y: &f64| plain(*y))
            .y_desc(format!("{}, {}", self.unit.quantity(), self.unit.shown()))
            .axis_desc_style(font(15, scale))
            .draw()?;
        for (at, &value) in values.iter().enumerate() {
            let (x, colour) = (at as f64, COLOURS[at % COLOURS.len()]);
            let bar = Rectangle::new([(x - 0.3, 0.0), (x + 0.3, value)], colour.filled());
            let above = EmptyElement::at((x, value))
                + Text::new(
                    plain(value),
                    (-12 * scale as i32, -18 * scale as i32),
                    font(14, scale),
                );
            chart.draw_series([bar])?;
            chart.draw_series([above])?;
        }
        Ok(())
    }

    /// A chart with title and margins.
    fn frame<'a, 'b, B: DrawingBackend>(
        &self,
        area: &'a DrawingArea<B, Shift>,
        scale: u32,
    ) -> ChartBuilder<'a, 'b, B> {
        let mut frame = ChartBuilder::on(area);
        frame
            .caption(&self.title, font(19, scale))
            .margin(14 * scale)
            .margin_right(28 * scale)
            .x_label_area_size(48 * scale)
            .y_label_area_size(68 * scale);
        frame
    }
}

/// A linear scale with given ticks.
struct Axis {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        low + (share * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

fn font(size: u32, scale: u32) -> TextStyle<'static> {
    (FAMILY, size * scale, &INK).into_text_style(&(1, 1))
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let range = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), range);
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Powers of two to label: at most a dozen, each the same number of doublings apart.
fn doublings(left: f64, right: f64) -> Vec<f64> {
    let (first, last) = (left.ceil() as i32, right.floor() as i32);
    let apart = (last - first) / 12 + 1;
    (first..=last)
        .step_by(apart as usize)
        .map(f64::from)
        .collect()
}

/// Ticks at 1, 2 and 5 times every power of ten; over a wide range only at the powers.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high - low > 3.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let decades = low.floor() as i32..=high.ceil() as i32;
    let ticks = decades.flat_map(|decade| steps.iter().map(move |s| f64::from(decade) + s.log10()));
    ticks.filter(|tick| (low..=high).contains(tick)).collect()
}

/// Five to ten ticks from 0 to `high`, at 1, 2 or 5 times a power of ten.
fn steps(high: f64) -> Vec<f64> {
    let decade = 10f64.powf(high.log10().floor());
    let step = [0.1, 0.2, 0.5, 1.0].map(|part| part * decade);
    let step = step
        .into_iter()
        .find(|step| high / step <= 10.0)
        .unwrap_or(decade);
    (0..=(high / step) as u32)
        .map(|n| f64::from(n) * step)
        .collect()
}

/// A number for an axis, without trailing zeros.
fn plain(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
