//! A page as one HTML file.

use std::fmt::Write;

use askama::Template;
use results::origin::Made;
use results::plot::{Plot, SeriesKind};
use results::style::{Dash, Ground, Mark};
use results::table::{Table, distinct};
use serde_json::Value;

use crate::page::{Block, Page};
use crate::traces::figure;

const STYLES: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// Most letters of a cell that needs no width of its own.
const SHORT: usize = 30;

#[derive(Template)]
#[template(path = "page.html")]
struct PageTemplate<'a> {
    page: &'a Page,
    sections: Vec<SectionView<'a>>,
    styles: &'static str,
    script: &'static str,
    /// plotly.js as a script element; empty for a page without plots.
    library: String,
    /// The plots in JSON, without a character that ends a script.
    figures: String,
}

struct SectionView<'a> {
    number: usize,
    heading: &'a str,
    blocks: Vec<BlockView<'a>>,
}

enum BlockView<'a> {
    Text(&'a str),
    Table(TableView<'a>),
    Plot(PlotView<'a>),
    Made(&'a Made),
}

struct TableView<'a> {
    folded: Option<&'a str>,
    header: Vec<Cell<'a>>,
    rows: Vec<Vec<Cell<'a>>>,
}

struct Cell<'a> {
    text: &'a str,
    /// Classes of the style sheet.
    class: &'static str,
}

struct PlotView<'a> {
    number: usize,
    plot: &'a Plot,
    quantity: String,
    entries: Vec<Entry>,
    /// The names of shaded ranges.
    shades: Vec<&'a str>,
}

/// An entry of a legend.
struct Entry {
    series: usize,
    name: String,
    light: String,
    dark: String,
    /// SVG elements in a box of 32 by 12.
    swatch: String,
}

impl Page {
    /// The page as one HTML file, which needs no network. Equal pages give equal bytes.
    pub fn html(&self) -> String {
        let figures: Value = self.plots().map(figure).collect();
        let has_plots = self.plots().next().is_some();
        let mut plots = 0;
        let mut sections: Vec<SectionView> = Vec::new();
        for section in &self.sections {
            let blocks = section.blocks.iter().map(|block| view(block, &mut plots));
            sections.push(SectionView {
                number: sections.len(),
                heading: &section.heading,
                blocks: blocks.collect(),
            });
        }
        sections.extend(self.made.as_ref().map(|made| SectionView {
            number: sections.len(),
            heading: "How this page was made",
            blocks: vec![BlockView::Made(made)],
        }));
        let template = PageTemplate {
            page: self,
            sections,
            styles: STYLES,
            script: SCRIPT,
            library: if has_plots { library() } else { String::new() },
            figures: in_script(&figures),
        };
        template.render().expect("a template in memory renders")
    }
}

/// plotly.js as a script element. The sources of the crate have MathJax after it, which no page
/// needs.
fn library() -> String {
    const END: &str = "</script>";
    let mut sources = plotly::Plot::offline_js_sources();
    let end = sources.find(END).expect("a script element ends");
    sources.truncate(end + END.len());
    sources
}

/// JSON for a script element: no character of it begins markup.
fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Text for plotly.js, which takes some markup in names and labels.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn view<'a>(block: &'a Block, plots: &mut usize) -> BlockView<'a> {
    match block {
        Block::Text(text) => BlockView::Text(text),
        Block::Table(table) => BlockView::Table(TableView::of(table, None)),
        Block::Folded(line, table) => BlockView::Table(TableView::of(table, Some(line))),
        Block::Plot(plot) => {
            *plots += 1;
            BlockView::Plot(PlotView::of(plot, *plots - 1))
        }
    }
}

impl<'a> TableView<'a> {
    fn of(table: &'a Table, folded: Option<&'a str>) -> TableView<'a> {
        let row = |row: &'a Vec<String>| {
            let cells = row.iter().enumerate();
            let cell = |(column, text): (usize, &'a String)| Cell {
                text,
                class: match table.right_aligned.contains(&column) {
                    true => "right",
                    false if text.chars().count() > SHORT => "long",
                    false => "",
                },
            };
            cells.map(cell).collect()
        };
        TableView {
            folded,
            header: row(&table.header),
            rows: table.rows.iter().map(row).collect(),
        }
    }
}

impl<'a> PlotView<'a> {
    fn of(plot: &'a Plot, number: usize) -> PlotView<'a> {
        let (numbers, count) = plot.colours();
        let all = plot.series.iter().zip(numbers).enumerate();
        let entries = all.map(|(at, (series, number))| {
            let on = |ground| plot.palette.colour(number, count, ground).hex();
            Entry {
                series: at,
                name: series.name.clone(),
                light: on(Ground::Light),
                dark: on(Ground::Dark),
                swatch: swatch(series.kind, at),
            }
        });
        let shades = plot.shades.iter().map(|shade| shade.name.as_str());
        PlotView {
            number,
            quantity: plot.y.title(),
            entries: entries.collect(),
            shades: distinct(shades),
            plot,
        }
    }
}

/// Line and mark of series `at` as SVG elements, around 0 in a box of 32 by 12.
fn swatch(kind: SeriesKind, at: usize) -> String {
    let (dash, mark) = (Dash::of(at), Mark::of(at));
    if kind == SeriesKind::Bars {
        return r#"<rect x="-10" y="-5" width="20" height="10" fill="currentColor"/>"#.into();
    }
    let mut svg = String::new();
    let mut add = |element: std::fmt::Arguments| svg.write_fmt(element).expect("a string grows");
    let (fill, radius) = match kind {
        SeriesKind::Line => {
            let lengths = dash
                .lengths()
                .map(|(dash, gap)| format!("{} {}", 2 * dash, 2 * gap));
            let lengths = lengths.unwrap_or("none".into());
            add(format_args!(
                r#"<path d="M-15 0H15" stroke="currentColor" stroke-width="2" stroke-dasharray="{lengths}"/>"#
            ));
            match Mark::is_hollow(at) {
                true => ("none", 4.0),
                false => ("currentColor", 3.5),
            }
        }
        _ => ("none", 5.0),
    };
    let place = |(x, y): (f64, f64)| format!("{:.1} {:.1}", x * radius, y * radius);
    let mut path = String::new();
    for (at, &corner) in mark.corners().iter().enumerate() {
        path += if at == 0 { "M" } else { "L" };
        path += &place(corner);
    }
    path += if path.is_empty() { "" } else { "Z" };
    for [from, to] in mark.lines() {
        path += &format!("M{}L{}", place(*from), place(*to));
    }
    match path.is_empty() {
        true => add(format_args!(
            r#"<circle r="{radius}" fill="{fill}" stroke="currentColor" stroke-width="1.5"/>"#
        )),
        false => add(format_args!(
            r#"<path d="{path}" fill="{fill}" stroke="currentColor" stroke-width="1.5"/>"#
        )),
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Section, Series};

    const EVIL: &str = "</script><script>alert('a&b')</script>";

    fn page() -> Page {
        let plot = Plot {
            title: EVIL.into(),
            x: Axis::sizes(EVIL),
            y: Axis::logarithmic("time", EVIL),
            series: vec![Series::line(EVIL, vec![(1.0, 2.0), (2.0, 3.0)])],
            caption: EVIL.into(),
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
        // plotly.js, the figures, the page's own script.
        assert_eq!(html.matches("</script>").count(), 3);
    }

    #[test]
    fn equal_pages_have_equal_bytes_and_one_library() {
        let html = page().html();
        assert_eq!(html, page().html());
        assert_eq!(html.matches("* plotly.js v").count(), 1);
        assert!(
            html.len() < 5_000_000,
            "plotly.js has 4.7 MB; MathJax would be 2 MB more"
        );
    }

    #[test]
    fn a_page_without_plots_has_no_library() {
        let page = Page {
            sections: vec![Section::new("a", vec![Block::Text("b".into())])],
            ..Page::default()
        };
        assert!(page.html().len() < 20_000);
    }
}
