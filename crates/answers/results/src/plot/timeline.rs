//! A timeline: lanes with bars over one axis of time, and arrows between lanes.

use std::io::{self, Write};

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{GRID, LINE, broken};
use super::draw::{ImageFormat, PIXELS, png, register_fonts};
use super::pen::{Drawn, FAMILY, INK, font};
use crate::style::Colour;
use crate::ticks::{between, plain};

/// The width of a timeline, in pixels before scaling.
const WIDTH: u32 = 1000;
/// The width of the lanes' names, in pixels before scaling.
const NAMES: u32 = 210;
/// The margin around a timeline, in pixels before scaling.
const MARGIN: u32 = 16;
/// The height of the title and of the legend, in pixels before scaling.
const HEAD: u32 = 66;
/// The height of the numbers and of the label of the axis, in pixels before scaling.
const AXIS: u32 = 44;
/// The height of a lane, and of its bars, in pixels before scaling.
const LANE: (u32, u32) = (24, 17);
/// The average width of a letter of a bar's text, in pixels before scaling.
const LETTER: f64 = 6.6;
/// The average width of a letter of the notes, in pixels before scaling.
const NOTE_LETTER: u32 = 6;
const ARROW: RGBColor = RGBColor(90, 90, 90);

/// A picture of what happened when. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The title above the lanes.
    pub title: String,
    /// The label of the axis, without its unit.
    pub quantity: String,
    /// The first and the last moment of the axis.
    pub span: (f64, f64),
    /// The kinds of bars: the name of each in the legend, if a bar has it, and its colour.
    pub kinds: Vec<(&'static str, Colour)>,
    /// The lanes, from top to bottom.
    pub lanes: Vec<Lane>,
    /// The arrows between lanes.
    pub arrows: Vec<Arrow>,
    /// Sentences below the axis.
    pub notes: Vec<String>,
}

/// A lane of a timeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// The name on the left.
    pub name: String,
    /// True if a line above the lane sets it off from those before.
    pub begins_group: bool,
    /// The bars, which do not overlap.
    pub bars: Vec<Bar>,
}

/// A bar of a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The moment at which the bar begins.
    pub from: f64,
    /// The moment at which the bar ends.
    pub until: f64,
    /// The number of the bar's kind.
    pub kind: usize,
    /// The text of the bar, which is drawn where it fits.
    pub text: String,
}

/// An arrow between two lanes: for each end the number of the lane, and the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrow {
    /// The end without a head.
    pub from: (usize, f64),
    /// The end with a head.
    pub to: (usize, f64),
}

impl Timeline {
    /// Writes the picture in a format.
    pub fn write(&self, format: ImageFormat, to: &mut dyn Write) -> io::Result<()> {
        register_fonts();
        match format {
            ImageFormat::Svg => {
                let mut text = String::new();
                let area = SVGBackend::with_string(&mut text, (WIDTH, self.height()));
                self.draw(&area.into_drawing_area(), 1)?;
                to.write_all(text.as_bytes())
            }
            ImageFormat::Png => {
                let size = (WIDTH * PIXELS, self.height() * PIXELS);
                let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
                let backend = BitMapBackend::with_buffer(&mut pixels, size);
                self.draw(&backend.into_drawing_area(), PIXELS)?;
                png(to, &pixels, size).map_err(io::Error::other)
            }
        }
    }

    fn height(&self) -> u32 {
        let notes = self.note_lines().len() as u32 * LINE;
        HEAD + LANE.0 * self.lanes.len() as u32 + AXIS + notes + MARGIN
    }

    fn note_lines(&self) -> Vec<String> {
        let lines = |note: &String| broken(note, ((WIDTH - 2 * MARGIN) / NOTE_LETTER) as usize);
        self.notes.iter().flat_map(lines).collect()
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> io::Result<()> {
        let sheet = Sheet {
            timeline: self,
            area,
            scale: scale as i32,
        };
        let drawn = sheet.all();
        drawn.map_err(|why| io::Error::other(why.to_string()))
    }
}

/// A drawing area for a timeline.
struct Sheet<'a, B: DrawingBackend> {
    timeline: &'a Timeline,
    area: &'a DrawingArea<B, Shift>,
    scale: i32,
}

impl<B: DrawingBackend> Sheet<'_, B> {
    fn all(&self) -> Drawn<B> {
        self.area.fill(&WHITE)?;
        self.head()?;
        self.grid()?;
        for (at, lane) in self.timeline.lanes.iter().enumerate() {
            self.lane(at, lane)?;
        }
        for arrow in &self.timeline.arrows {
            self.arrow(arrow)?;
        }
        self.notes()?;
        self.area.present()
    }

    /// The horizontal position of a moment, in pixels.
    fn x(&self, moment: f64) -> i32 {
        let (first, last) = self.timeline.span;
        let share = (moment.clamp(first, last) - first) / (last - first).max(1e-9);
        let wide = f64::from((WIDTH - NAMES - 2 * MARGIN) * self.scale as u32);
        (NAMES + MARGIN) as i32 * self.scale + (share * wide).round() as i32
    }

    /// The top of a lane, in pixels.
    fn y(&self, lane: usize) -> i32 {
        (HEAD as i32 + LANE.0 as i32 * lane as i32) * self.scale
    }

    fn middle(&self, lane: usize) -> i32 {
        self.y(lane) + LANE.0 as i32 * self.scale / 2
    }

    /// The title and the legend.
    fn head(&self) -> Drawn<B> {
        let scale = self.scale;
        let title = (MARGIN as i32 * scale, 10 * scale);
        let text = self.timeline.title.as_str();
        self.area
            .draw(&Text::new(text, title, font(18, scale as u32)))?;
        let mut left = (NAMES + MARGIN) as i32;
        for (at, (name, colour)) in self.timeline.kinds.iter().enumerate() {
            let mut bars = self.timeline.lanes.iter().flat_map(|lane| &lane.bars);
            if !bars.any(|bar| bar.kind == at) {
                continue;
            }
            let corners = [(left, 42), (left + 14, 54)].map(|(x, y)| (x * scale, y * scale));
            self.area
                .draw(&Rectangle::new(corners, paint(*colour).filled()))?;
            let place = ((left + 20) * scale, 43 * scale);
            self.area
                .draw(&Text::new(*name, place, font(13, scale as u32)))?;
            left += 44 + (name.chars().count() as f64 * 7.4) as i32;
        }
        Ok(())
    }

    /// The axis: vertical lines, their numbers, and the label with its unit.
    fn grid(&self) -> Drawn<B> {
        let lanes = self.timeline.lanes.len();
        let (top, bottom) = (self.y(0), self.y(lanes));
        let centred = |size| font(size, self.scale as u32).pos(Pos::new(HPos::Center, VPos::Top));
        for tick in between(self.timeline.span.0, self.timeline.span.1) {
            let x = self.x(tick);
            let line = vec![(x, top), (x, bottom + 4 * self.scale)];
            self.area.draw(&PathElement::new(
                line,
                GRID.stroke_width(self.scale as u32),
            ))?;
            let place = (x, bottom + 6 * self.scale);
            self.area
                .draw(&Text::new(number(tick), place, centred(13)))?;
        }
        let ends = [self.timeline.span.0, self.timeline.span.1].map(|end| (self.x(end), bottom));
        self.area.draw(&PathElement::new(
            ends.to_vec(),
            INK.stroke_width(self.scale as u32),
        ))?;
        let place = ((ends[0].0 + ends[1].0) / 2, bottom + 23 * self.scale);
        let label = format!("{}, µs", self.timeline.quantity);
        self.area.draw(&Text::new(label, place, centred(15)))
    }

    fn lane(&self, at: usize, lane: &Lane) -> Drawn<B> {
        let scale = self.scale;
        if lane.begins_group && at > 0 {
            let ends = [MARGIN as i32 * scale, self.x(self.timeline.span.1)];
            let line = ends.map(|x| (x, self.y(at)));
            let style = INK.mix(0.4).stroke_width(scale as u32);
            self.area.draw(&PathElement::new(line.to_vec(), style))?;
        }
        let right = font(13, scale as u32).pos(Pos::new(HPos::Right, VPos::Center));
        let place = ((NAMES + MARGIN - 8) as i32 * scale, self.middle(at));
        self.area
            .draw(&Text::new(lane.name.as_str(), place, right))?;
        for bar in &lane.bars {
            self.bar(at, bar)?;
        }
        Ok(())
    }

    fn bar(&self, at: usize, bar: &Bar) -> Drawn<B> {
        let scale = self.scale;
        let half = LANE.1 as i32 * scale / 2;
        let (left, right) = (self.x(bar.from), self.x(bar.until));
        let right = right.max(left + 1);
        let colour = self.timeline.kinds[bar.kind].1;
        let corners = [
            (left, self.middle(at) - half),
            (right, self.middle(at) + half),
        ];
        self.area
            .draw(&Rectangle::new(corners, paint(colour).filled()))?;
        // Bars that touch stay apart.
        let edge = vec![(left, corners[0].1), (left, corners[1].1)];
        if right - left > 3 * scale {
            self.area
                .draw(&PathElement::new(edge, WHITE.stroke_width(scale as u32)))?;
        }
        let room = f64::from(right - left) / f64::from(scale);
        if bar.text.chars().count() as f64 * LETTER + 6.0 > room {
            return Ok(());
        }
        let ink = if is_dark(colour) { WHITE } else { INK };
        let style = (FAMILY, 12 * scale as u32, &ink)
            .into_text_style(&(1, 1))
            .pos(Pos::new(HPos::Left, VPos::Center));
        let place = (left + 4 * scale, self.middle(at));
        self.area.draw(&Text::new(bar.text.as_str(), place, style))
    }

    fn arrow(&self, arrow: &Arrow) -> Drawn<B> {
        let ends = [arrow.from, arrow.to].map(|(lane, moment)| (self.x(moment), lane));
        let down = if arrow.to.0 > arrow.from.0 { 1 } else { -1 };
        let half = LANE.1 as i32 * self.scale / 2;
        let tail = (ends[0].0, self.middle(ends[0].1) + down * half);
        let head = (ends[1].0, self.middle(ends[1].1) - down * half);
        let style = ARROW.stroke_width(self.scale as u32);
        self.area.draw(&PathElement::new(vec![tail, head], style))?;
        let along = [f64::from(head.0 - tail.0), f64::from(head.1 - tail.1)];
        let length = along[0].hypot(along[1]).max(1.0);
        let unit = along.map(|part| part / length * f64::from(self.scale));
        let corner = |side: f64| {
            let part = |at: usize, across: f64| unit[at] * -8.0 + across * 3.5 * side;
            (
                head.0 + part(0, -unit[1]).round() as i32,
                head.1 + part(1, unit[0]).round() as i32,
            )
        };
        let corners = vec![head, corner(1.0), corner(-1.0)];
        self.area.draw(&Polygon::new(corners, ARROW.filled()))
    }

    fn notes(&self) -> Drawn<B> {
        let top = self.y(self.timeline.lanes.len()) + AXIS as i32 * self.scale;
        for (at, line) in self.timeline.note_lines().iter().enumerate() {
            let place = (
                MARGIN as i32 * self.scale,
                top + (LINE as i32 * at as i32 + 2) * self.scale,
            );
            self.area.draw(&Text::new(
                line.as_str(),
                place,
                font(13, self.scale as u32),
            ))?;
        }
        Ok(())
    }
}

fn paint(colour: Colour) -> RGBColor {
    RGBColor(colour.0, colour.1, colour.2)
}

/// True if white text is legible on a colour.
fn is_dark(colour: Colour) -> bool {
    let [red, green, blue] = [colour.0, colour.1, colour.2].map(f64::from);
    0.3 * red + 0.59 * green + 0.11 * blue < 150.0
}

/// A number of the axis: all digits before the point, and those behind it that ticks differ in.
fn number(tick: f64) -> String {
    match tick.abs() >= 1000.0 {
        true => {
            let text = format!("{tick:.3}");
            text.trim_end_matches('0').trim_end_matches('.').into()
        }
        false => plain(tick),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline() -> Timeline {
        let bar = |from, until, text: &str| Bar {
            from,
            until,
            kind: 0,
            text: text.into(),
        };
        Timeline {
            title: "two ranks".into(),
            quantity: "virtual time".into(),
            span: (10.0, 20.0),
            kinds: vec![("call", Colour(0, 114, 178)), ("unused", Colour(0, 0, 0))],
            lanes: vec![
                Lane {
                    name: "rank 0".into(),
                    begins_group: true,
                    bars: vec![bar(10.0, 15.0, "MPI_Send"), bar(16.0, 16.1, "MPI_Recv")],
                },
                Lane {
                    name: "rank 1".into(),
                    begins_group: true,
                    bars: vec![bar(5.0, 19.0, "MPI_Recv")],
                },
            ],
            arrows: vec![Arrow {
                from: (0, 15.0),
                to: (1, 18.0),
            }],
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn lanes_bars_and_the_axis_are_drawn() {
        let mut svg = Vec::new();
        timeline().write(ImageFormat::Svg, &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        for text in [
            "two ranks",
            "rank 0",
            "rank 1",
            "MPI_Send",
            "virtual time, µs",
            "a note",
            "12",
        ] {
            assert!(svg.contains(text), "{text}\n{svg}");
        }
        assert!(!svg.contains("unused"), "{svg}");
        // A short bar has no text, and each lane has its own.
        assert_eq!(svg.matches("MPI_Recv").count(), 1, "{svg}");
        assert_eq!(svg.matches("<polygon").count(), 1, "{svg}");
    }

    #[test]
    fn a_bitmap_has_twice_the_pixels() {
        let mut bytes = Vec::new();
        timeline().write(ImageFormat::Png, &mut bytes).unwrap();
        assert_eq!(&bytes[1..4], b"PNG");
        let width = u32::from_be_bytes(bytes[16..20].try_into().unwrap());
        assert_eq!(width, WIDTH * PIXELS);
    }

    #[test]
    fn numbers_of_the_axis_keep_their_digits() {
        assert_eq!(number(123_456.5), "123456.5");
        assert_eq!(number(0.25), "0.25");
    }
}
