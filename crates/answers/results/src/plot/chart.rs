//! The drawing of one plot on a drawing area.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;

use super::content::{Plot, Series, SeriesKind};
use super::legend;
use super::pen::{Drawn, INK, Pen, SHADE, font};
use super::scale::Scale;
use crate::ticks::plain;

pub(super) const GRID: RGBColor = RGBColor(225, 225, 225);
/// The width and height of one plot without its title, legend and caption, in pixels before
/// scaling.
pub(super) const SIZE: (u32, u32) = (800, 470);
/// The height of a line of the caption, in pixels before scaling.
pub(super) const LINE: u32 = 17;
/// The margin around a plot, in pixels before scaling.
const MARGIN: u32 = 14;
/// The average width of a character of the caption, in pixels before scaling.
const LETTER: u32 = 6;
/// The average width of a character of the title, in pixels before scaling.
const TITLE_LETTER: u32 = 9;
/// The height of a line of the title, in pixels before scaling.
const TITLE_LINE: u32 = 26;
/// The greatest width of title, legend and caption, in pixels before scaling.
const WIDE: u32 = SIZE.0 - 6 * MARGIN;

/// A coordinate system of the positions that [`Scale::place`] returns.
pub(super) type Places<'a, B> = ChartContext<'a, B, Cartesian2d<Line, Line>>;

/// Draws a plot with its title and legend above it and its caption below it.
pub(super) fn chart<B: DrawingBackend>(
    plot: &Plot,
    area: &DrawingArea<B, Shift>,
    scale: u32,
) -> Drawn<B> {
    let lines = caption_lines(&plot.caption);
    let height = area.dim_in_pixel().1 - LINE * lines.len() as u32 * scale;
    let (upper, lower) = area.split_vertically(height);
    for (at, line) in lines.iter().enumerate() {
        let place = (3 * MARGIN * scale, LINE * at as u32 * scale);
        let place = (place.0 as i32, place.1 as i32 - 4 * scale as i32);
        lower.draw(&Text::new(line.as_str(), place, font(12, scale)))?;
    }
    let (head, upper) = upper.split_vertically(head_height(plot) * scale);
    for (at, line) in title_lines(&plot.title).iter().enumerate() {
        let top = MARGIN + TITLE_LINE * at as u32;
        let place = ((3 * MARGIN * scale) as i32, (top * scale) as i32);
        head.draw(&Text::new(line.as_str(), place, font(19, scale)))?;
    }
    let below = head_height(plot) - legend::height(plot, WIDE);
    legend::draw(plot, &head, (3 * MARGIN, below), WIDE, scale)?;
    let (across, upward) = (plot.across(), plot.upward());
    let mut chart = ChartBuilder::on(&upper)
        .margin(MARGIN * scale)
        .margin_right(2 * MARGIN * scale)
        .x_label_area_size(48 * scale)
        .y_label_area_size(68 * scale)
        .build_cartesian_2d(Line::of(&across), Line::of(&upward))?;
    mesh(plot, &mut chart, [&across, &upward], scale)?;
    shade(plot, &mut chart, [&across, &upward])?;
    let drawing = |at| Drawing {
        plot,
        at,
        scales: [&across, &upward],
        pen: Pen::of(plot, at, scale),
    };
    for (at, series) in plot.series.iter().enumerate() {
        drawing(at).band(&chart, series)?;
    }
    for at in plot.drawing_order() {
        drawing(at).series(&chart, &plot.series[at])?;
    }
    Ok(())
}

/// The height of the title and the legend of a plot, in pixels before scaling.
pub(super) fn head_height(plot: &Plot) -> u32 {
    let lines = title_lines(&plot.title).len() as u32;
    MARGIN + TITLE_LINE * lines + legend::height(plot, WIDE)
}

/// The lines of a title, which fit above a plot.
fn title_lines(title: &str) -> Vec<String> {
    broken(title, (WIDE / TITLE_LETTER) as usize)
}

/// The lines of a caption, which fit below a plot.
pub(super) fn caption_lines(caption: &str) -> Vec<String> {
    broken(caption, (WIDE / LETTER) as usize)
}

/// The text, broken into lines of at most `most` characters.
pub(super) fn broken(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

fn mesh<B: DrawingBackend>(
    plot: &Plot,
    chart: &mut Places<B>,
    [across, upward]: [&Scale; 2],
    scale: u32,
) -> Drawn<B> {
    let value = |scale: &Scale, place: f64| match scale.is_logarithmic {
        true => 10f64.powf(place),
        false => place,
    };
    let mut mesh = chart.configure_mesh();
    if plot.has_bars() {
        mesh.disable_x_mesh();
    }
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK.stroke_width(scale))
        .label_style(font(13, scale))
        .x_labels(across.ticks.len())
        .y_labels(upward.ticks.len())
        .x_label_formatter(&|x| plot.x.tick(value(across, *x)))
        .y_label_formatter(&|y| plot.y.tick(value(upward, *y)))
        .x_desc(plot.x.title())
        .y_desc(plot.y.title())
        .axis_desc_style(font(15, scale))
        .draw()
}

/// Shades ranges of the horizontal axis over the whole height of the plot.
fn shade<B: DrawingBackend>(
    plot: &Plot,
    chart: &mut Places<B>,
    [across, upward]: [&Scale; 2],
) -> Drawn<B> {
    let ranges = plot.shades.iter().map(|shade| {
        let corner = |x: f64, y: f64| (across.place(x).clamp(across.ends.0, across.ends.1), y);
        let corners = [
            corner(shade.from, upward.ends.0),
            corner(shade.to, upward.ends.1),
        ];
        Rectangle::new(corners, SHADE.filled())
    });
    chart.draw_series(ranges)?;
    Ok(())
}

/// The context in which one series of a plot is drawn.
struct Drawing<'a> {
    plot: &'a Plot,
    at: usize,
    scales: [&'a Scale; 2],
    pen: Pen,
}

impl Drawing<'_> {
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.scales[0].place(x), self.scales[1].place(y))
    }

    /// Draws the range of values at the end of each bar as a thin line.
    fn ranges_of_bars<B: DrawingBackend>(&self, chart: &Places<B>, series: &Series) -> Drawn<B> {
        let style = BLACK.stroke_width(self.pen.scale);
        for (x, least, most) in self.plot.placed_band(series) {
            let (left, right) = self.plot.bar(self.at, x);
            let middle = (left + right) / 2.0;
            let ends = [least, most].map(|value| (middle, self.place((x, value)).1));
            let line = PathElement::new(ends.to_vec(), style);
            chart.plotting_area().draw(&line)?;
        }
        Ok(())
    }

    /// Draws the range of values around a line as an area.
    fn band<B: DrawingBackend>(&self, chart: &Places<B>, series: &Series) -> Drawn<B> {
        if series.kind.is_bars() {
            return Ok(());
        }
        let band = self.plot.placed_band(series);
        let there = band.iter().map(|&(x, least, _)| (x, least));
        let back = band.iter().rev().map(|&(x, _, most)| (x, most));
        let outline: Vec<_> = there.chain(back).map(|point| self.place(point)).collect();
        match outline.is_empty() {
            true => Ok(()),
            false => {
                let style = self.pen.colour.mix(0.2).filled();
                chart.plotting_area().draw(&Polygon::new(outline, style))
            }
        }
    }

    fn series<B: DrawingBackend>(&self, chart: &Places<B>, series: &Series) -> Drawn<B> {
        let points = self.plot.placed(series);
        if series.kind.is_bars() {
            self.bars(chart, &points)?;
            return self.ranges_of_bars(chart, series);
        }
        let places: Vec<_> = points.iter().map(|&point| self.place(point)).collect();
        if series.kind == SeriesKind::Line {
            self.pen.line(chart.plotting_area(), places.clone())?;
        }
        for place in places {
            self.pen.mark(chart.plotting_area(), place)?;
        }
        Ok(())
    }

    /// Draws a bar with its value for each point. Several bars at one position are next to each
    /// other, or stacked.
    fn bars<B: DrawingBackend>(&self, chart: &Places<B>, points: &[(f64, f64)]) -> Drawn<B> {
        let ends = self.scales[1].ends;
        let floor = match self.scales[1].is_logarithmic {
            true => ends.0,
            false => 0.0,
        };
        for &(x, value) in points {
            let (left, right) = self.plot.bar(self.at, x);
            let (foot, end) = self.plot.reach(self.at, (x, value));
            let (_, top) = self.place((x, end));
            let foot = match foot {
                0.0 => floor,
                foot => self.place((x, foot)).1,
            };
            let style = self.pen.colour.filled();
            let area = chart.plotting_area();
            area.draw(&Rectangle::new([(left, foot), (right, top)], style))?;
            let Some(total) = self.plot.total(self.at, (x, value)) else {
                continue;
            };
            let scale = self.pen.scale;
            let shift = (-12 * scale as i32, -18 * scale as i32);
            let text = Text::new(plain(total), shift, font(14, scale));
            let (_, top) = self.place((x, self.plot.label_foot(self.at, (x, value))));
            area.draw(&(EmptyElement::at(((left + right) / 2.0, top)) + text))?;
        }
        Ok(())
    }
}

/// A linear scale of positions on an axis, with given ticks.
pub(super) struct Line {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Line {
    fn of(scale: &Scale) -> Line {
        Line {
            range: scale.ends.0..scale.ends.1,
            ticks: scale.ticks.iter().map(|&tick| scale.place(tick)).collect(),
        }
    }
}

impl Ranged for Line {
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
