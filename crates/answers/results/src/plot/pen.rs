//! The colours, lines, marks and letters of a plot on a drawing area.

use plotters::coord::CoordTranslate;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::content::{Plot, SeriesKind};
use crate::style::{Dash, Ground, Mark};

pub(super) const FAMILY: &str = "sans-serif";
pub(super) const SHADE: RGBColor = RGBColor(244, 226, 190);
pub(super) const INK: RGBColor = RGBColor(50, 50, 50);

/// The result of a drawing operation on a backend.
pub(super) type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// The style in which a series is drawn: its colour, dashes and mark.
pub(super) struct Pen {
    pub(super) colour: RGBColor,
    dash: Dash,
    mark: Mark,
    is_hollow: bool,
    kind: SeriesKind,
    pub(super) scale: u32,
}

impl Pen {
    /// The style of series `at` of a plot.
    pub(super) fn of(plot: &Plot, at: usize, scale: u32) -> Pen {
        let (numbers, count) = plot.colours();
        let colour = plot.palette.colour(numbers[at], count, Ground::Light);
        Pen {
            colour: RGBColor(colour.0, colour.1, colour.2),
            dash: Dash::of(at),
            mark: Mark::of(at),
            is_hollow: Mark::is_hollow(at) || plot.series[at].kind == SeriesKind::Marks,
            kind: plot.series[at].kind,
            scale,
        }
    }

    /// Draws a line through these positions.
    pub(super) fn line<B: DrawingBackend, C: CoordTranslate>(
        &self,
        area: &DrawingArea<B, C>,
        places: Vec<C::From>,
    ) -> Drawn<B>
    where
        C::From: Clone,
    {
        let style = self.colour.stroke_width(2 * self.scale);
        match self.dash.lengths() {
            None => area.draw(&PathElement::new(places, style)),
            Some((dash, gap)) => {
                let [dash, gap] = [dash, gap].map(|length| length * 2 * self.scale);
                area.draw(&DashedPathElement::new(places, dash, gap, style))
            }
        }
    }

    /// Draws the mark of a point.
    pub(super) fn mark<B: DrawingBackend, C: CoordTranslate>(
        &self,
        area: &DrawingArea<B, C>,
        place: C::From,
    ) -> Drawn<B>
    where
        C::From: Clone,
    {
        let radius = match self.kind {
            SeriesKind::Marks => 6,
            _ if self.is_hollow => 4,
            _ => 3,
        };
        let radius = radius * self.scale as i32;
        let outline = self.colour.stroke_width(self.outline() * self.scale);
        let near = |&(x, y): &(f64, f64)| {
            let pixels = |share: f64| (share * f64::from(radius)).round() as i32;
            (pixels(x), pixels(y))
        };
        let at = || EmptyElement::at(place.clone());
        if self.mark == Mark::Circle {
            let style = if self.is_hollow {
                outline
            } else {
                self.colour.filled()
            };
            return area.draw(&Circle::new(place, radius, style));
        }
        for line in self.mark.lines() {
            let line: Vec<_> = line.iter().map(near).collect();
            area.draw(&(at() + PathElement::new(line, outline)))?;
        }
        let mut corners: Vec<_> = self.mark.corners().iter().map(near).collect();
        match (corners.first().copied(), self.is_hollow) {
            (None, _) => Ok(()),
            (Some(first), true) => {
                corners.push(first);
                area.draw(&(at() + PathElement::new(corners, outline)))
            }
            (Some(_), false) => area.draw(&(at() + Polygon::new(corners, self.colour.filled()))),
        }
    }

    /// The width of a mark's outline, in pixels before scaling.
    fn outline(&self) -> u32 {
        match self.kind {
            SeriesKind::Marks => 2,
            _ => 1,
        }
    }

    /// Draws the line and the mark of a series, or a bar, around the middle of a legend's swatch.
    pub(super) fn swatch<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        (x, y): (i32, i32),
        half: i32,
    ) -> Drawn<B> {
        if self.kind.is_bars() {
            let corners = [(x - half / 2, y - half / 3), (x + half / 2, y + half / 3)];
            return area.draw(&Rectangle::new(corners, self.colour.filled()));
        }
        if self.kind == SeriesKind::Line {
            self.line(area, vec![(x - half, y), (x + half, y)])?;
        }
        self.mark(area, (x, y))
    }
}

/// The style of text of this size.
pub(super) fn font(size: u32, scale: u32) -> TextStyle<'static> {
    (FAMILY, size * scale, &INK).into_text_style(&(1, 1))
}
