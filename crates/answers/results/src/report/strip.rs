//! Strips: for each row of a comparison, the ranges of positions in which one of two sides is
//! better.

use crate::style::{Ground, Palette};

use crate::report::labels::{LETTER, Label, WINDOWS, hide, shown_across};
use crate::report::markup::Markup;

/// Strips with the same positions, one below the other.
#[derive(Clone, Debug, Default)]
pub struct Strips {
    /// The title above the strips.
    pub title: String,
    /// The quantity on the horizontal axis.
    pub across: String,
    /// The names of the positions, such as message sizes.
    pub positions: Vec<String>,
    /// The names of the two sides.
    pub sides: [String; 2],
    /// The strips.
    pub rows: Vec<Strip>,
    /// The text below the strips.
    pub caption: String,
}

/// One strip: a row of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// The name of the strip.
    pub name: String,
    /// The ranges of the strip. Positions that are in no range stay empty.
    pub ranges: Vec<StripRange>,
}

/// A range of a strip in which one side is better.
#[derive(Clone, Debug)]
pub struct StripRange {
    /// The numbers of the first and of the last position of the range.
    pub positions: [usize; 2],
    /// The number of the better side; `None`: both are equally good.
    pub better: Option<usize>,
    /// Further text about the range, shown with it.
    pub note: String,
}

/// Appends all strips, with title, names of positions and caption.
pub(crate) fn strips(out: &mut Markup, strips: &Strips) {
    out.raw("<figure class=\"strips\" style=\"");
    for at in 0..2 {
        let on = |ground| Palette::Distinct.colour(at, 2, ground).hex();
        out.raw("--s").text(at).raw(":light-dark(");
        out.text(on(Ground::Light)).raw(",");
        out.text(on(Ground::Dark)).raw(");");
    }
    out.raw("\">\n<h3>").text(&strips.title).raw("</h3>\n");
    for row in &strips.rows {
        out.raw("<p class=\"row\">").text(&row.name);
        out.raw("</p>\n<svg class=\"strip\" role=\"img\" aria-label=\"");
        out.text(&row.name).raw("\">\n");
        for range in &row.ranges {
            part(out, strips, range);
        }
        out.raw("</svg>\n");
    }
    positions(out, strips);
    out.raw("<p class=\"across\">").text(&strips.across);
    out.raw("</p>\n<div class=\"legend\">\n");
    let equal = "equally good".to_owned();
    for (at, name) in strips.sides.iter().chain([&equal]).enumerate() {
        out.raw("<span class=\"entry\"><i class=\"side\"");
        if at < 2 {
            out.raw(" style=\"background:var(--s").text(at).raw(")\"");
        }
        out.raw("></i>").text(name).raw("</span>\n");
    }
    out.raw("</div>\n");
    if !strips.caption.is_empty() {
        out.raw("<figcaption>").text(&strips.caption);
        out.raw("</figcaption>\n");
    }
    out.raw("</figure>\n");
}

/// Appends a range as a rectangle, with the name of the better side if there is room.
fn part(out: &mut Markup, strips: &Strips, range: &StripRange) {
    let count = strips.positions.len().max(1) as f64;
    let [from, to] = range.positions;
    let place = |position: usize| position as f64 / count * 100.0;
    let (left, width) = (place(from), place(to + 1) - place(from));
    let name = match range.better {
        Some(side) => strips.sides[side].as_str(),
        None => "equal",
    };
    out.raw("<rect");
    if let Some(side) = range.better {
        out.raw(" style=\"fill:var(--s").text(side).raw(")\"");
    }
    out.raw(" x=\"").percent(left).raw("\" width=\"");
    out.percent(width).raw("\" height=\"100%\"><title>");
    let ends = [from, to].map(|at| strips.positions.get(at).map_or("", String::as_str));
    out.text(ends[0]);
    if from != to {
        out.raw(" to ").text(ends[1]);
    }
    out.raw(": ").text(name);
    if !range.note.is_empty() {
        out.raw(", ").text(&range.note);
    }
    out.raw("</title></rect>");
    let needed = (name.chars().count() + 1) as f64 * LETTER;
    let has_room = WINDOWS
        .each_ref()
        .map(|window| width / 100.0 * window.axes.0 >= needed);
    if has_room.contains(&true) {
        out.raw("<text class=\"");
        out.raw(if range.better.is_some() { "on" } else { "" });
        hide(out, has_room);
        out.raw("\" y=\"50%\" dy=\".35em\" x=\"")
            .percent(left + width / 2.0);
        out.raw("\">").text(name).raw("</text>");
    }
    out.raw("\n");
}

/// Appends the names of the positions below the last strip.
fn positions(out: &mut Markup, strips: &Strips) {
    let count = strips.positions.len().max(1) as f64;
    let named = strips.positions.iter().enumerate();
    let labels = named.map(|(at, name)| Label {
        place: (at as f64 + 0.5) / count * 100.0,
        text: name.clone(),
    });
    let labels: Vec<Label> = labels.collect();
    let shown = WINDOWS
        .each_ref()
        .map(|window| shown_across(&labels, window.axes.0));
    out.raw("<svg class=\"positions\" aria-hidden=\"true\">\n");
    for (at, label) in labels.iter().enumerate() {
        out.raw("<text class=\"");
        hide(out, shown.each_ref().map(|shown| shown[at]));
        out.raw("\" y=\"14\" x=\"").percent(label.place);
        out.raw("\">").text(&label.text).raw("</text>\n");
    }
    out.raw("</svg>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> String {
        let range = |positions, better| StripRange {
            positions,
            better,
            note: "up to 7 %".into(),
        };
        let mut out = Markup::default();
        let page = Strips {
            title: "by size".into(),
            positions: (0..10).map(|at| format!("{} B", 1 << at)).collect(),
            sides: ["one".into(), "<two>".into()],
            rows: vec![Strip {
                name: "latency".into(),
                ranges: vec![
                    range([0, 3], Some(0)),
                    range([4, 4], None),
                    range([5, 9], Some(1)),
                ],
            }],
            ..Strips::default()
        };
        strips(&mut out, &page);
        out.finish()
    }

    #[test]
    fn ranges_fill_their_positions() {
        let html = drawn();
        for (x, width) in [("0%", "40%"), ("40%", "10%"), ("50%", "50%")] {
            let place = format!("x=\"{x}\" width=\"{width}\"");
            assert_eq!(html.matches(&place).count(), 1, "{place}");
        }
        assert!(html.contains("<title>1 B to 8 B: one, up to 7 %</title>"));
        assert!(html.contains("<title>16 B: equal, up to 7 %</title>"));
    }

    #[test]
    fn names_are_text() {
        assert!(!drawn().contains("<two>"));
        assert!(drawn().contains("&lt;two&gt;"));
    }

    #[test]
    fn a_narrow_range_has_no_name_in_it() {
        // 10 % of the narrowest axis are 24 pixels, and five letters need 44.
        assert!(
            drawn().contains("<text class=\" n\" y=\"50%\" dy=\".35em\" x=\"45%\">equal</text>")
        );
    }
}
