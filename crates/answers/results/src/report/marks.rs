//! The lines and marks of series in SVG. Each kind of mark is defined once on a page.

use crate::plot::SeriesKind;
use crate::style::{Dash, Mark};

use crate::report::markup::Markup;

/// The number of different forms that the marks of series have.
const FORMS: usize = 7;
/// The sizes of marks: of a filled mark on a line, of an outline on a line, and of a mark without a
/// line.
const RADII: [f64; 3] = [3.5, 4.0, 6.0];

/// Appends the definitions of all marks. A style sheet can scale them in narrow windows.
pub(crate) fn definitions(out: &mut Markup) {
    out.raw("<svg id=\"marks\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>");
    for at in 0..FORMS {
        for (style, radius) in RADII.into_iter().enumerate() {
            out.raw("\n<path id=\"m").text(at * RADII.len() + style);
            // A reference does not inherit the context of the definition, so each definition has
            // its own class.
            out.raw("\" class=\"mark")
                .raw(["-solid", "", "-bold"][style]);
            out.raw("\" d=\"");
            outline(out, Mark::of(at), radius);
            out.raw("\"/>");
        }
    }
    out.raw("\n</defs></svg>\n");
}

/// Appends the outline of a mark around the origin, as the data of an SVG path.
fn outline(out: &mut Markup, mark: Mark, radius: f64) {
    let place = |(x, y): (f64, f64)| (x * radius, y * radius);
    if mark == Mark::Circle {
        // A circle consists of two half circles.
        for (command, x) in [("M", -radius), ("A", radius), ("A", -radius)] {
            out.raw(command);
            if command == "A" {
                out.place((radius, radius)).raw(" 0 1 1 ");
            }
            out.place((x, 0.0));
        }
        out.raw("Z");
    }
    for (at, &corner) in mark.corners().iter().enumerate() {
        out.raw(if at == 0 { "M" } else { "L" })
            .place(place(corner));
    }
    if !mark.corners().is_empty() {
        out.raw("Z");
    }
    for [from, to] in mark.lines() {
        out.raw("M").place(place(*from));
        out.raw("L").place(place(*to));
    }
}

/// Appends the reference to the mark that series `at` has at its points.
pub(crate) fn reference(out: &mut Markup, kind: SeriesKind, at: usize) {
    let style = match kind {
        SeriesKind::Marks => 2,
        _ => usize::from(Mark::is_hollow(at)),
    };
    out.raw(" href=\"#m").text(at % FORMS * RADII.len() + style);
    out.raw("\"");
}

/// Appends the dashes of the line of series `at`, as an attribute.
pub(crate) fn dashes(out: &mut Markup, at: usize) {
    // A line is 2 pixels wide.
    if let Some((dash, gap)) = Dash::of(at).lengths() {
        out.raw(" stroke-dasharray=\"").text(2 * dash).raw(" ");
        out.text(2 * gap).raw("\"");
    }
}

/// Appends the line and the mark of series `at`, around the origin, in a box of 32 by 12.
pub(crate) fn swatch(out: &mut Markup, kind: SeriesKind, at: usize) {
    out.raw("<svg class=\"swatch\" viewBox=\"-16 -6 32 12\" style=\"color:var(--s");
    out.text(at).raw(")\" aria-hidden=\"true\">");
    if kind.is_bars() {
        out.raw("<rect x=\"-10\" y=\"-5\" width=\"20\" height=\"10\"/></svg>");
        return;
    }
    if kind == SeriesKind::Line {
        out.raw("<path d=\"M-15 0H15\"");
        dashes(out, at);
        out.raw("/>");
    }
    out.raw("<use");
    reference(out, kind, at);
    out.raw("/></svg>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reference_has_one_definition() {
        let mut out = Markup::default();
        definitions(&mut out);
        let defined = out.finish();
        for at in 0..2 * FORMS {
            for kind in [SeriesKind::Line, SeriesKind::Marks] {
                let mut out = Markup::default();
                reference(&mut out, kind, at);
                let name = out.finish().replace(" href=\"#", " id=\"");
                assert_eq!(defined.matches(&name).count(), 1, "{name}");
            }
        }
    }

    #[test]
    fn every_form_of_mark_has_an_outline() {
        let mut out = Markup::default();
        definitions(&mut out);
        assert!(!out.finish().contains(" d=\"\""));
    }

    #[test]
    fn a_later_series_has_gaps() {
        let dashes = |at| {
            let mut out = Markup::default();
            dashes(&mut out, at);
            out.finish()
        };
        assert_eq!(dashes(0), "");
        assert_eq!(dashes(1), " stroke-dasharray=\"10 4\"");
    }
}
