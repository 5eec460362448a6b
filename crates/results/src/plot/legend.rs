//! The legend of a plot, in the corner where it covers least.

use plotters::prelude::*;

use super::chart::{Drawn, GRID, Pen, Places, SHADE, font};
use super::{Plot, Scale, SeriesKind};
use crate::table::distinct;

/// Sizes before scaling: height of an entry, width of a swatch, space around.
const ENTRY: i32 = 19;
const SWATCH: i32 = 30;
const SPACE: i32 = 7;
/// Distance from the axes.
const MARGIN: i32 = 12;
/// Places on a line between two points at which the legend would cover it.
const BETWEEN: usize = 8;

/// Draws the legend. Bars with names on their axis need none.
pub(super) fn draw<B: DrawingBackend>(
    plot: &Plot,
    chart: &Places<B>,
    scales: [&Scale; 2],
    scale: u32,
) -> Drawn<B> {
    let has_names = !plot.x.names.is_empty() && has_one_bar_each(plot);
    let shades = distinct(plot.shades.iter().map(|shade| shade.name.as_str()));
    let names = plot.series.iter().map(|series| series.name.as_str());
    let names: Vec<&str> = names.chain(shades.iter().copied()).collect();
    if has_names || names.is_empty() {
        return Ok(());
    }
    let area = chart.plotting_area().strip_coord_spec();
    let style = font(14, scale);
    let times = |length: i32| length * scale as i32;
    let mut widest = 0;
    for name in &names {
        widest = widest.max(area.estimate_text_size(name, &style)?.0 as i32);
    }
    let width = widest + times(SWATCH + 3 * SPACE);
    let height = times(ENTRY * names.len() as i32 + SPACE);
    let (left, top) = corner(plot, &area, scales, (width, height), times(MARGIN));
    let frame = [(left, top), (left + width, top + height)];
    area.draw(&Rectangle::new(frame, WHITE.mix(0.85).filled()))?;
    area.draw(&Rectangle::new(frame, GRID.stroke_width(scale)))?;
    for (at, name) in names.iter().enumerate() {
        let (x, y) = (
            left + times(SPACE + SWATCH / 2),
            top + times(ENTRY * at as i32 + SPACE / 2 + ENTRY / 2),
        );
        if at < plot.series.len() {
            Pen::of(plot, at, scale).swatch(&area, (x, y), times(SWATCH / 2))?;
        } else {
            let half = times(SWATCH / 2);
            let corners = [(x - half, y - half / 3), (x + half, y + half / 3)];
            area.draw(&Rectangle::new(corners, SHADE.filled()))?;
        }
        let place = (left + times(SWATCH + 2 * SPACE), y - times(5));
        area.draw(&Text::new(*name, place, style.clone()))?;
    }
    Ok(())
}

/// Whether each series has a single bar, so that the axis names it.
fn has_one_bar_each(plot: &Plot) -> bool {
    let mut all = plot.series.iter();
    all.all(|series| series.kind == SeriesKind::Bars && series.points.len() == 1)
}

/// The upper left end of a legend of this size. Of equal corners the lower right one is first.
fn corner<B: DrawingBackend>(
    plot: &Plot,
    area: &DrawingArea<B, plotters::coord::Shift>,
    scales: [&Scale; 2],
    (width, height): (i32, i32),
    margin: i32,
) -> (i32, i32) {
    let (wide, high) = area.dim_in_pixel();
    let (right, below) = (wide as i32 - width - margin, high as i32 - height - margin);
    let share = |scale: &Scale, value: f64| {
        let (low, high) = scale.ends;
        (scale.place(value) - low) / (high - low)
    };
    let pixel = |(x, y): (f64, f64)| {
        (
            share(scales[0], x) * f64::from(wide),
            (1.0 - share(scales[1], y)) * f64::from(high),
        )
    };
    let mut places: Vec<(f64, f64)> = Vec::new();
    for series in &plot.series {
        let points: Vec<_> = plot.placed(series).into_iter().map(pixel).collect();
        for pair in points.windows(2) {
            let between = (0..BETWEEN).map(|at| at as f64 / BETWEEN as f64);
            let [(x, y), (to_x, to_y)] = [pair[0], pair[1]];
            places.extend(between.map(|at| (x + (to_x - x) * at, y + (to_y - y) * at)));
        }
        places.extend(points.last());
    }
    let covered = |&(left, top): &(i32, i32)| {
        let inside = |from: i32, length: i32, at: f64| {
            (f64::from(from)..=f64::from(from + length)).contains(&at)
        };
        let is_covered =
            |place: &&(f64, f64)| inside(left, width, place.0) && inside(top, height, place.1);
        places.iter().filter(is_covered).count()
    };
    let corners = [
        (right, below),
        (margin, margin),
        (right, margin),
        (margin, below),
    ];
    corners
        .into_iter()
        .min_by_key(covered)
        .expect("there are four corners")
}
