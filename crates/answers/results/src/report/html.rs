//! A page as one HTML file.

use crate::origin::Made;
use crate::table::Table;

use crate::report::figure::figure;
use crate::report::marks;
use crate::report::markup::Markup;
use crate::report::network;
use crate::report::page::{Block, Page};
use crate::report::strip;

const STYLES: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");

/// The most characters of a table cell that needs no minimum width.
const SHORT: usize = 30;
/// The fewest sections for which the page has a list of sections.
const MANY: usize = 3;

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>"#;

impl Page {
    /// The page as one HTML file, which needs no network. Equal pages give equal bytes.
    pub fn html(&self) -> String {
        let mut out = Markup::default();
        out.raw(HEAD).text(&self.title);
        out.raw("</title>\n<style>\n").raw(STYLES);
        out.raw("</style>\n</head>\n<body>\n");
        if self.plots().next().is_some() {
            marks::definitions(&mut out);
        }
        self.header(&mut out);
        out.raw("<main>\n");
        let mut plots = 0;
        for (number, section) in self.sections.iter().enumerate() {
            begin(&mut out, number, &section.heading);
            for block in &section.blocks {
                append(&mut out, block, &mut plots);
            }
            out.raw("</section>\n");
        }
        if let Some(made) = &self.made {
            begin(&mut out, self.sections.len(), ORIGIN);
            origin(&mut out, made);
            out.raw("</section>\n");
        }
        out.raw("</main>\n<script>\n").raw(SCRIPT);
        out.raw("</script>\n</body>\n</html>\n");
        out.finish()
    }

    fn header(&self, out: &mut Markup) {
        out.raw("<header>\n<button id=\"theme\" type=\"button\" hidden></button>\n<h1>");
        out.text(&self.title).raw("</h1>\n");
        if !self.answer.is_empty() {
            out.raw("<p class=\"answer\">").text(&self.answer);
            if !self.certainty.is_empty() {
                out.raw(" <span>").text(&self.certainty).raw("</span>");
            }
            out.raw("</p>\n");
        }
        if !self.lead.is_empty() {
            out.raw("<p class=\"lead\">").text(&self.lead).raw("</p>\n");
        }
        let sections = self.sections.iter().map(|section| section.heading.as_str());
        let sections = sections.chain(self.made.as_ref().map(|_| ORIGIN));
        let headings: Vec<&str> = sections.collect();
        if headings.len() >= MANY {
            out.raw("<nav aria-label=\"Sections\"><ul>\n");
            for (number, heading) in headings.iter().enumerate() {
                out.raw("<li><a href=\"#s").text(number).raw("\">");
                out.text(heading).raw("</a></li>\n");
            }
            out.raw("</ul></nav>\n");
        }
        out.raw("</header>\n");
    }
}

/// The heading of the section about the origin of a page.
const ORIGIN: &str = "How this page was made";

fn begin(out: &mut Markup, number: usize, heading: &str) {
    out.raw("<section id=\"s").text(number).raw("\">\n<h2>");
    out.text(heading).raw("</h2>\n");
}

fn append(out: &mut Markup, block: &Block, plots: &mut usize) {
    match block {
        Block::Text(text) => {
            out.raw("<p>").text(text).raw("</p>\n");
        }
        Block::Table(table) => append_table(out, table),
        Block::Folded(line, table) => {
            out.raw("<details><summary>").text(line).raw("</summary>\n");
            append_table(out, table);
            out.raw("</details>\n");
        }
        Block::Plot(plot) => {
            figure(out, plot, *plots);
            *plots += 1;
        }
        Block::Strips(strips) => strip::strips(out, strips),
        Block::Network(picture) => network::network(out, picture),
    }
}

/// Appends a table, in a part of the page that scrolls separately.
fn append_table(out: &mut Markup, table: &Table) {
    out.raw("<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>");
    cells(out, table, &table.header, ["<th", "</th>"]);
    out.raw("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.raw("<tr>");
        cells(out, table, row, ["<td", "</td>"]);
        out.raw("</tr>\n");
    }
    out.raw("</tbody>\n</table></div>\n");
}

fn cells(out: &mut Markup, table: &Table, row: &[String], [begin, end]: [&'static str; 2]) {
    for (column, text) in row.iter().enumerate() {
        out.raw(begin);
        out.raw(match table.right_aligned.contains(&column) {
            true => " class=\"right\">",
            false if text.chars().count() > SHORT => " class=\"long\">",
            false => ">",
        });
        out.text(text).raw(end);
    }
}

fn origin(out: &mut Markup, made: &Made) {
    out.raw("<dl>\n<dt>Command</dt><dd><code>")
        .text(&made.command);
    out.raw("</code></dd>\n<dt>Version</dt><dd>fishplate ");
    out.text(&made.version).raw("</dd>\n");
    if !made.machine.is_empty() {
        out.raw("<dt>Machine</dt><dd>").text(&made.machine);
        out.raw("</dd>\n");
    }
    if let Some(date) = &made.date {
        out.raw("<dt>Date</dt><dd>").text(date).raw("</dd>\n");
    }
    out.raw("</dl>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Axis, Plot, Section, Series, Shade};

    const EVIL: &str = "</script><script>alert('a&b')</script>";

    fn page() -> Page {
        let plot = Plot {
            title: EVIL.into(),
            x: Axis::sizes(EVIL),
            y: Axis::logarithmic("time", EVIL),
            series: vec![Series::line(EVIL, vec![(1.0, 2.0), (2.0, 3.0)])],
            caption: EVIL.into(),
            shades: vec![Shade {
                from: 1.0,
                to: 2.0,
                name: EVIL.into(),
            }],
            ..Plot::default()
        };
        let table = Table::of_text(vec![EVIL.into()], vec![vec![EVIL.into()]]);
        let blocks = vec![
            Block::Text(EVIL.into()),
            Block::Folded(EVIL.into(), table),
            plot.into(),
        ];
        Page {
            title: EVIL.into(),
            answer: EVIL.into(),
            certainty: EVIL.into(),
            lead: EVIL.into(),
            sections: vec![Section::new(EVIL, blocks)],
            made: Some(Made {
                command: format!("fishplate compare {EVIL}"),
                version: EVIL.into(),
                machine: EVIL.into(),
                date: Some(EVIL.into()),
            }),
        }
    }

    #[test]
    fn text_of_users_is_never_markup() {
        let html = page().html();
        assert!(!html.contains("<script>alert"), "markup of a user");
        assert_eq!(html.matches("</script>").count(), 1, "the page's own");
        // Ten outside the plot. In the plot: the title twice, both axes, the series in the legend
        // and in marks, the unit in marks, the shade twice, and the caption. In the origin: four.
        let text = "&lt;/script&gt;&lt;script&gt;alert(&#39;a&amp;b&#39;)&lt;/script&gt;";
        assert_eq!(html.matches(text).count(), 26);
    }

    #[test]
    fn equal_pages_have_equal_bytes() {
        let html = page().html();
        assert_eq!(html, page().html());
        assert!(html.len() < 30_000, "{} bytes", html.len());
    }

    #[test]
    fn a_page_needs_no_network() {
        let html = page().html();
        for word in ["http://", "https://", " src=", "@import", "url("] {
            assert!(!html.contains(word), "{word}");
        }
    }

    #[test]
    fn a_page_without_plots_defines_no_marks() {
        let page = Page {
            sections: vec![Section::new("a", vec![Block::Text("b".into())])],
            ..Page::default()
        };
        let html = page.html();
        assert!(!html.contains("<svg"));
        assert!(html.len() < 15_000, "{} bytes", html.len());
    }
}
