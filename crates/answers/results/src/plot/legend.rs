//! The legend of a plot: entries in rows between its title and its axes, where they cover nothing
//! else.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::content::{Plot, SeriesKind};
use super::pen::{Drawn, Pen, SHADE, font};
use crate::table::distinct;

/// The height of a row of the legend, in pixels before scaling.
const ENTRY: u32 = 20;
/// The width of a swatch (the sample of a series' line) in the legend, in pixels before scaling.
const SWATCH: u32 = 30;
/// The space around a swatch in the legend, in pixels before scaling.
const SPACE: u32 = 7;
/// The average width of a character in a wide font, in pixels before scaling: an SVG is drawn with
/// a font of the reader's computer.
const LETTER: f64 = 7.8;

/// The height of a plot's legend, in pixels before scaling.
pub(super) fn height(plot: &Plot, width: u32) -> u32 {
    rows(&names(plot), width).len() as u32 * ENTRY
}

/// The names of the series, then those of the shaded ranges. Empty if each series is a bar that the
/// axis names.
fn names(plot: &Plot) -> Vec<&str> {
    if !plot.x.names.is_empty() && has_one_bar_each(plot) {
        return Vec::new();
    }
    let shades = distinct(plot.shades.iter().map(|shade| shade.name.as_str()));
    let series = plot.series.iter().map(|series| series.name.as_str());
    series.chain(shades).collect()
}

/// The rows of a legend of this width: for each entry its number and its left end.
fn rows(names: &[&str], width: u32) -> Vec<Vec<(usize, u32)>> {
    let mut rows: Vec<Vec<(usize, u32)>> = Vec::new();
    let mut used = 0;
    for (at, name) in names.iter().enumerate() {
        let text = (name.chars().count() as f64 * LETTER).ceil() as u32;
        let needed = SWATCH + 4 * SPACE + text;
        match rows.last_mut() {
            Some(row) if used + needed <= width => row.push((at, used)),
            _ => {
                rows.push(vec![(at, 0)]);
                used = 0;
            }
        }
        used += needed;
    }
    rows
}

/// Draws the legend, with its upper left corner at `(left, top)`.
pub(super) fn draw<B: DrawingBackend>(
    plot: &Plot,
    area: &DrawingArea<B, Shift>,
    (left, top): (u32, u32),
    width: u32,
    scale: u32,
) -> Drawn<B> {
    let names = names(plot);
    let style = font(14, scale);
    let times = |length: u32| (length * scale) as i32;
    for (row, entries) in rows(&names, width).iter().enumerate() {
        for &(at, from) in entries {
            let x = times(left + from + SWATCH / 2);
            let y = times(top + ENTRY * row as u32 + ENTRY / 2);
            let half = times(SWATCH / 2);
            if at < plot.series.len() {
                Pen::of(plot, at, scale).swatch(area, (x, y), half)?;
            } else {
                let corners = [(x - half, y - half / 3), (x + half, y + half / 3)];
                area.draw(&Rectangle::new(corners, SHADE.filled()))?;
            }
            let place = (x + half + times(SPACE), y - times(6));
            area.draw(&Text::new(names[at], place, style.clone()))?;
        }
    }
    Ok(())
}

/// True if each series has a single bar, so that the axis names it.
fn has_one_bar_each(plot: &Plot) -> bool {
    let mut all = plot.series.iter();
    all.all(|series| series.kind == SeriesKind::Bars && series.points.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_beside_each_other_while_they_fit() {
        let names = ["a", "b", "a name of twenty let"];
        let one = SWATCH + 4 * SPACE + 8;
        assert_eq!(rows(&names, 1000), [vec![(0, 0), (1, one), (2, 2 * one)]]);
        assert_eq!(
            rows(&names, 2 * one + 100),
            [vec![(0, 0), (1, one)], vec![(2, 0)]]
        );
        // An entry that is wider than the legend gets a row of its own.
        assert_eq!(rows(&names, 10).len(), 3);
        assert_eq!(rows(&[], 10), Vec::<Vec<(usize, u32)>>::new());
    }
}
