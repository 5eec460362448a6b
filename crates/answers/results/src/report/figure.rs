//! A plot as SVG. Coordinates are percentages of the axes, so a plot fills the width of its window,
//! while letters, marks and lines keep their size. Colours are CSS variables of the figure, and
//! follow the light or dark theme.

use crate::plot::{Plot, Scale, Series, SeriesKind};
use crate::style::Ground;
use crate::table::distinct;
use crate::ticks::plain;

use crate::report::labels::{
    LETTER, Label, WINDOWS, hide, shown_across, shown_slanted, shown_upward,
};
use crate::report::marks;
use crate::report::markup::Markup;

/// The most characters of a name below an axis.
const LONGEST: usize = 20;

/// The coordinate system of a plot in percent of the axes, downward from the upper left corner.
struct Figure<'a> {
    plot: &'a Plot,
    across: Scale,
    upward: Scale,
    /// For each class of browser windows: true if bars have their values next to them.
    has_values: [bool; 3],
}

/// Appends the plot with its title, legend and caption. `number` is the number of the figure on its
/// page.
pub(crate) fn figure(out: &mut Markup, plot: &Plot, number: usize) {
    let across = plot.across();
    let figure = Figure {
        plot,
        has_values: values_fit(plot, &across),
        across,
        upward: plot.upward(),
    };
    out.raw("<figure id=\"p").text(number).raw("\" style=\"");
    colours(out, plot);
    out.raw("\">\n<h3>").text(&plot.title);
    out.raw("</h3>\n<p class=\"quantity\">")
        .text(plot.y.title());
    out.raw("</p>\n");
    figure.draw(out);
    out.raw("<p class=\"across\">").text(plot.x.title());
    out.raw("</p>\n");
    legend(out, plot);
    if !plot.caption.is_empty() {
        out.raw("<figcaption>").text(&plot.caption);
        out.raw("</figcaption>\n");
    }
    out.raw("</figure>\n");
}

/// Appends the colour of each series, as a CSS variable.
fn colours(out: &mut Markup, plot: &Plot) {
    let (numbers, count) = plot.colours();
    for (at, number) in numbers.into_iter().enumerate() {
        let on = |ground| plot.palette.colour(number, count, ground).hex();
        out.raw("--s").text(at).raw(":light-dark(");
        out.text(on(Ground::Light)).raw(",");
        out.text(on(Ground::Dark)).raw(");");
    }
}

fn legend(out: &mut Markup, plot: &Plot) {
    out.raw("<div class=\"legend\" role=\"group\" aria-label=\"Series: press to show or hide\">\n");
    for (at, series) in plot.series.iter().enumerate() {
        out.raw("<button type=\"button\" aria-pressed=\"true\" data-series=\"");
        out.text(at).raw("\">");
        marks::swatch(out, series.kind, at);
        out.text(&series.name).raw("</button>\n");
    }
    for name in distinct(plot.shades.iter().map(|shade| shade.name.as_str())) {
        out.raw("<span class=\"entry\"><i class=\"shade\"></i>");
        out.text(name).raw("</span>\n");
    }
    out.raw("</div>\n");
}

impl Figure<'_> {
    /// Appends the drawing: shaded ranges and axes first, then bands, lines, and marks on top.
    fn draw(&self, out: &mut Markup) {
        let ticks = [self.ticks_across(), self.ticks_upward()];
        let width = |label: &Label| label.text.chars().count();
        let [bottom, left] = ticks
            .each_ref()
            .map(|all| all.iter().map(width).max().unwrap_or(0));
        out.raw("<div class=\"plot");
        let slanted = self.slanted(&ticks[0]);
        for (window, slanted) in WINDOWS.iter().zip(slanted) {
            if slanted {
                out.raw(" ").raw(window.slants);
            }
        }
        out.raw("\" style=\"--left:").text(left + 2);
        out.raw("ch;--bottom:").text(bottom).raw("ch\">\n");
        out.raw("<svg class=\"axes\" role=\"group\" aria-label=\"");
        out.text(&self.plot.title).raw("\">\n");
        self.shades(out);
        self.axis_across(out, &ticks[0], slanted);
        self.axis_upward(out, &ticks[1]);
        for (at, series) in self.plot.series.iter().enumerate() {
            self.band(out, at, series);
        }
        for at in self.plot.drawing_order() {
            self.series(out, at, &self.plot.series[at]);
        }
        if self.upward.ends.0 < 0.0 && !self.upward.is_logarithmic {
            out.raw("<svg y=\"").percent(self.top(0.0));
            out.raw("\"><line class=\"zero\" x2=\"100%\"/></svg>\n");
        }
        out.raw("</svg>\n</div>\n");
    }

    /// A position on the horizontal scale, in percent from the left.
    fn left(&self, place: f64) -> f64 {
        let (low, high) = self.across.ends;
        (place - low) / (high - low) * 100.0
    }

    /// A position on the vertical scale, in percent from the top.
    fn top(&self, place: f64) -> f64 {
        let (low, high) = self.upward.ends;
        (high - place) / (high - low) * 100.0
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            self.left(self.across.place(x)),
            self.top(self.upward.place(y)),
        )
    }

    fn ticks_across(&self) -> Vec<Label> {
        let label = |&tick: &f64| Label {
            place: self.left(self.across.place(tick)),
            text: shortened(self.plot.x.tick(tick)),
        };
        self.across.ticks.iter().map(label).collect()
    }

    fn ticks_upward(&self) -> Vec<Label> {
        let label = |&tick: &f64| Label {
            place: self.top(self.upward.place(tick)),
            text: self.plot.y.tick(tick),
        };
        self.upward.ticks.iter().map(label).collect()
    }

    /// For each class of browser windows: true if the names of the horizontal axis are slanted,
    /// because some would otherwise be omitted for lack of width.
    fn slanted(&self, ticks: &[Label]) -> [bool; 3] {
        WINDOWS.each_ref().map(|window| {
            let is_shown = shown_across(ticks, window.axes.0);
            !self.plot.x.names.is_empty() && is_shown.contains(&false)
        })
    }

    fn axis_across(&self, out: &mut Markup, ticks: &[Label], slanted: [bool; 3]) {
        let shown = [0, 1, 2].map(|at| {
            let width = WINDOWS[at].axes.0;
            match slanted[at] {
                true => shown_slanted(ticks, width),
                false => shown_across(ticks, width),
            }
        });
        for (at, tick) in ticks.iter().enumerate() {
            out.raw("<svg class=\"xtick");
            hide(out, shown.each_ref().map(|shown| shown[at]));
            out.raw("\" x=\"").percent(tick.place).raw("\">");
            if !self.plot.has_bars() {
                out.raw("<line y2=\"100%\"/>");
            }
            out.raw("<svg y=\"100%\"><text y=\"18\">").text(&tick.text);
            out.raw("</text></svg></svg>\n");
        }
    }

    fn axis_upward(&self, out: &mut Markup, ticks: &[Label]) {
        let shown = WINDOWS
            .each_ref()
            .map(|window| shown_upward(ticks, window.axes.1));
        for (at, tick) in ticks.iter().enumerate() {
            out.raw("<svg class=\"ytick");
            hide(out, shown.each_ref().map(|shown| shown[at]));
            out.raw("\" y=\"").percent(tick.place);
            out.raw("\"><line x2=\"100%\"/><text x=\"-8\" dy=\".35em\">");
            out.text(&tick.text).raw("</text></svg>\n");
        }
    }

    /// Appends the shaded ranges of the horizontal axis, over the whole height of the plot.
    fn shades(&self, out: &mut Markup) {
        for shade in &self.plot.shades {
            let end = |value: f64| self.left(self.across.place(value)).clamp(0.0, 100.0);
            let (from, to) = (end(shade.from), end(shade.to));
            out.raw("<rect class=\"shade\" x=\"").percent(from);
            out.raw("\" width=\"").percent(to - from);
            out.raw("\" height=\"100%\"><title>").text(&shade.name);
            out.raw("</title></rect>\n");
        }
    }

    /// Appends the range of values at the end of each bar of series `at`.
    fn ranges_of_bars(&self, out: &mut Markup, at: usize, series: &Series) {
        for (x, least, most) in self.plot.placed_band(series) {
            let (from, to) = self.plot.bar(at, x);
            let middle = self.left((from + to) / 2.0);
            let [low, high] = [least, most].map(|value| self.top(self.upward.place(value)));
            out.raw("<line class=\"range\" x1=\"").percent(middle);
            out.raw("\" x2=\"").percent(middle);
            out.raw("\" y1=\"").percent(low);
            out.raw("\" y2=\"").percent(high).raw("\"/>\n");
        }
    }

    /// Appends the range of values of series `at`, as an area.
    fn band(&self, out: &mut Markup, at: usize, series: &Series) {
        if series.kind.is_bars() {
            return;
        }
        let band = self.plot.placed_band(series);
        let there = band.iter().map(|&(x, least, _)| (x, least));
        let back = band.iter().rev().map(|&(x, _, most)| (x, most));
        let outline: Vec<_> = there.chain(back).collect();
        if outline.is_empty() {
            return;
        }
        group(out, at, "band");
        self.path(out, &outline);
        out.raw("Z\"/></svg></g>\n");
    }

    fn series(&self, out: &mut Markup, at: usize, series: &Series) {
        let points = self.plot.placed(series);
        match series.kind {
            SeriesKind::Bars | SeriesKind::Stacked => {
                group(out, at, "bars");
                out.raw("\n");
                for point in points {
                    self.bar(out, at, point);
                }
                self.ranges_of_bars(out, at, series);
            }
            SeriesKind::Marks => group(out, at, "points"),
            SeriesKind::Line => {
                group(out, at, "line");
                if points.len() > 1 {
                    self.path(out, &points);
                    out.raw("\"");
                    marks::dashes(out, at);
                    out.raw("/></svg>");
                }
            }
        }
        if !series.kind.is_bars() {
            out.raw("\n");
            for point in self.plot.placed(series) {
                let (left, top) = self.place(point);
                out.raw("<use");
                marks::reference(out, series.kind, at);
                out.raw(" x=\"").percent(left);
                out.raw("\" y=\"").percent(top).raw("\">");
                self.value(out, series, point);
                out.raw("</use>\n");
            }
        }
        out.raw("</g>\n");
    }

    /// Begins a path through these points, in a box that is stretched to the size of the axes.
    fn path(&self, out: &mut Markup, points: &[(f64, f64)]) {
        out.raw("<svg viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\"><path d=\"");
        for (at, &point) in points.iter().enumerate() {
            out.raw(if at == 0 { "M" } else { "L" });
            out.place(self.place(point));
        }
    }

    /// Appends a bar of series `at`, with its value as text.
    fn bar(&self, out: &mut Markup, at: usize, (x, value): (f64, f64)) {
        let (from, to) = self.plot.bar(at, x);
        let (left, right) = (self.left(from), self.left(to));
        let (foot, end) = self.plot.reach(at, (x, value));
        let floor = match self.upward.is_logarithmic {
            true => 100.0,
            false => self.top(foot),
        };
        let end = self.top(self.upward.place(end));
        out.raw("<rect x=\"").percent(left);
        out.raw("\" y=\"").percent(end.min(floor));
        out.raw("\" width=\"").percent(right - left);
        out.raw("\" height=\"")
            .percent((end - floor).abs())
            .raw("\">");
        self.value(out, &self.plot.series[at], (x, value));
        out.raw("</rect>");
        let Some(total) = self.plot.total(at, (x, value)) else {
            out.raw("\n");
            return;
        };
        out.raw("<text class=\"value");
        let text = plain(total);
        hide(out, self.has_values);
        out.raw("\" x=\"").percent((left + right) / 2.0);
        let is_below = end > floor;
        let foot = match is_below {
            true => end,
            false => self.top(self.upward.place(self.plot.label_foot(at, (x, value)))),
        };
        out.raw("\" y=\"").percent(foot);
        out.raw(if is_below {
            "\" dy=\"14\">"
        } else {
            "\" dy=\"-5\">"
        });
        out.text(text).raw("</text>\n");
    }

    /// Appends the tooltip of a mark or bar: the series, the position and the value, each on a
    /// line.
    fn value(&self, out: &mut Markup, series: &Series, (x, y): (f64, f64)) {
        out.raw("<title>").text(&series.name);
        out.raw("\n").text(self.plot.x.text(x));
        out.raw("\n").text(self.plot.y.text(y)).raw("</title>");
    }
}

/// For each class of browser windows: true if there is room for the values of all bars.
fn values_fit(plot: &Plot, across: &Scale) -> [bool; 3] {
    let all = plot.series.iter().enumerate();
    let bars = all.filter(|(_, series)| series.kind.is_bars());
    let needed = bars.flat_map(|(at, series)| {
        let points = plot.placed(series).into_iter();
        points.filter_map(move |(x, value)| {
            let (left, right) = plot.bar(at, x);
            let text = plain(plot.total(at, (x, value))?);
            // The text may be wider than its bar by a quarter.
            Some(text.chars().count() as f64 * LETTER / (1.25 * (right - left)))
        })
    });
    let needed = needed.fold(0.0, f64::max) * (across.ends.1 - across.ends.0);
    WINDOWS.each_ref().map(|window| needed <= window.axes.0)
}

/// Appends the opening tag of the group of elements of series `at`.
fn group(out: &mut Markup, at: usize, class: &'static str) {
    out.raw("<g class=\"").raw(class);
    out.raw("\" data-series=\"").text(at);
    out.raw("\" style=\"color:var(--s").text(at).raw(")\">");
}

/// A name, with an ellipsis in its middle if it is too long for an axis.
fn shortened(name: String) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST {
        return name;
    }
    let (begin, end) = (LONGEST / 2, letters.len() - (LONGEST - 1) / 2);
    let [begin, end] = [&letters[..begin], &letters[end..]].map(String::from_iter);
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests;
