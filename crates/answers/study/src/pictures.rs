//! Plots of a study's curves: those that answer the document's question, or else one for each
//! measurement. In the former, the sizes at which the second curve of a comparison is better are
//! shaded.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use results::origin::Made;
use results::plot::{Across, Band, Panel, Plot, Series, Values, draw_below};

use crate::answer::{Better, Range, ranges, sentence};
use crate::curves::Measured;
use crate::document::{Comparison, Measure};
use crate::outcome::Results;

/// Draws the curves into a folder, and returns the paths of the files.
pub(crate) fn draw(results: &Results, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let mut pages = answering(results);
    if pages.is_empty() {
        let all = measurements(results).into_iter();
        pages = all
            .map(|(measure, panel)| {
                let name = measure.picture.as_ref().unwrap_or(&measure.name);
                (name.clone(), measure.name.as_str(), vec![panel])
            })
            .collect();
    }
    let mut files = Vec::new();
    for (name, of, panels) in pages {
        let file = folder.join(name).with_extension("svg");
        // The remarks stand once, below the last panel.
        let last = panels.len() - 1;
        let plots = panels.iter().enumerate().map(|(at, panel)| Plot {
            caption: match at == last {
                true => with_remarks(results, of, conditions(results)),
                false => conditions(results),
            },
            ..Plot::from(panel)
        });
        draw_below(&plots.collect::<Vec<_>>(), &file)?;
        files.push(file);
    }
    Ok(files)
}

/// The remarks on a measurement, then `caption`.
pub(crate) fn with_remarks(results: &Results, of: &str, caption: String) -> String {
    let mut all = results.remarks(of);
    all.push(caption);
    all.join(" ")
}

/// A line with the conditions of all measurements of a study.
pub(crate) fn conditions(results: &Results) -> String {
    let made = Made {
        command: format!("fishplate study {}", results.name),
        machine: "modelled machines".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        date: None,
    };
    made.line()
}

/// The plots that answer the question of a document, each with its file name and the name of its
/// measurement; empty if the document has no comparisons.
pub(crate) fn answering(results: &Results) -> Vec<(String, &'static str, Vec<Panel>)> {
    match results.document.comparisons.is_empty() {
        true => Vec::new(),
        false => vec![
            (
                "bandwidth".into(),
                "bw",
                compared(results, "bw", [512, 4 << 20]),
            ),
            (
                "latency".into(),
                "latency",
                compared(results, "latency", [1, 64 << 10]),
            ),
            ("bidirectional".into(), "bibw", bidirectional(results)),
        ],
    }
}

/// A panel for each measurement that has more than one point.
pub(crate) fn measurements(results: &Results) -> Vec<(&Measure, Panel)> {
    let page = |(measure, measured)| Some((measure, measurement(results, measure, measured)?));
    results.measured().filter_map(page).collect()
}

/// The panel with all curves of a measurement. `None`: there is only a single point, or the swept
/// parameter is not a number.
fn measurement(results: &Results, measure: &Measure, measured: &Measured) -> Option<Panel> {
    let over = measure.sweep.as_ref().map(|sweep| sweep.over.as_str());
    let across = match over {
        Some("pairs" | "--qps") => Across::Ranks,
        _ => Across::Sizes,
    };
    let is_number = |value: &String| value.starts_with(|first: char| first.is_ascii_digit());
    let many = measured.curves.iter().any(|curve| curve.points.len() > 1);
    if !many || !measured.swept.iter().all(is_number) {
        return None;
    }
    let names = measured.curves.iter();
    let names: Vec<(String, &str)> = names
        .map(|curve| (curve.label.clone(), curve.label.as_str()))
        .collect();
    let quantity = match (&measure.quantity, across) {
        (Some(own), _) => own.clone(),
        (None, _) if over == Some("--qps") => "queue pairs".into(),
        (None, _) if over == Some("--mtu") => "MTU".into(),
        (None, Across::Ranks) => "pairs of ranks".into(),
        (None, _) => "message size".into(),
    };
    Some(Panel {
        title: format!("{} ({})", measure.title(), results.name),
        across,
        quantity,
        ..panel(results, &measure.name, &names, [0, usize::MAX])
    })
}

/// A panel for each comparison of the study that is drawn.
fn compared(results: &Results, of: &str, sizes: [usize; 2]) -> Vec<Panel> {
    let all = results.document.comparisons.iter();
    let all = all.filter(|comparison| comparison.drawn);
    all.map(|comparison| against_fdr(results, of, comparison, sizes))
        .collect()
}

fn against_fdr(results: &Results, of: &str, comparison: &Comparison, sizes: [usize; 2]) -> Panel {
    let [rails, fdr] = [comparison.first.as_str(), &comparison.second];
    let third = match rails {
        "stripe" => "QDR",
        _ => "stripe",
    };
    let curves = results.document.curves.iter();
    let shown = |name: &str| {
        let mut found = curves.clone().filter(|curve| curve.name == name);
        found.next().map_or(name, |curve| curve.shown()).to_owned()
    };
    let names = [fdr, rails, third].map(|name| (shown(name), name));
    Panel {
        title: sentence(&results.curves, of, comparison),
        bands: windows(results, of, [rails, fdr], sizes),
        ..panel(results, of, &names, sizes)
    }
}

/// The bands of sizes at which the second curve is better, each from one crossing of the lines to
/// the next.
fn windows(
    results: &Results,
    of: &str,
    [first, second]: [&str; 2],
    [from, to]: [usize; 2],
) -> Vec<Band> {
    let mut ratios = results.curves.ratios(of, first, second);
    ratios.retain(|(size, _)| (from..=to).contains(size));
    let inside = ranges(&results.curves, of, first, second)
        .into_iter()
        .filter(|range| range.better == Better::Second);
    let band = |range: Range| {
        let place = |size: usize| ratios.iter().position(|(at, _)| *at == size);
        let [begin, end] = [
            place(range.sizes[0].max(from))?,
            place(range.sizes[1].min(to))?,
        ];
        let before = begin.checked_sub(1).map(|at| ratios[at]);
        Some(Band {
            from: crossing(ratios[begin], before),
            to: crossing(ratios[end], ratios.get(end + 1).copied()),
            name: "FDR is better".into(),
        })
    };
    inside.filter_map(band).collect()
}

/// The size at which the line between two points crosses the quotient 1, on logarithmic axes. If it
/// does not cross it, the size of the first point.
fn crossing(here: (usize, f64), next: Option<(usize, f64)>) -> f64 {
    let logarithms = |(size, ratio): (usize, f64)| ((size as f64).ln(), ratio.ln());
    let (x, y) = logarithms(here);
    match next.map(logarithms) {
        Some((to_x, to_y)) if y * to_y < 0.0 => (x + (to_x - x) * y / (y - to_y)).exp(),
        _ => x.exp(),
    }
}

/// A panel with all rail policies, and a panel with the dip around 12 KiB.
fn bidirectional(results: &Results) -> Vec<Panel> {
    let of = "bibw";
    let title = title(results, of);
    // The order of the names gives each curve the same colour in both panels.
    let names = [
        "FDR",
        "stripe",
        "round-robin",
        "QDR",
        "adaptive",
        "stripe-8K",
    ];
    let names = names.map(|name| (name.to_owned(), name));
    let dip = &names[..4];
    vec![
        Panel {
            title: title.into(),
            ..panel(results, of, &names, [512, 4 << 20])
        },
        Panel {
            title: format!("{title} where eager turns into rendezvous"),
            ..panel(results, of, dip, [8 << 10, 24 << 10])
        },
    ]
}

fn title<'a>(results: &'a Results, of: &str) -> &'a str {
    let measured = results.curves.0.get(of);
    measured.map_or("", |measured| measured.benchmark.title())
}

/// A panel with the curves of these names. Each name is a pair: in the legend, and in the results.
fn panel(results: &Results, of: &str, names: &[(String, &str)], [from, to]: [usize; 2]) -> Panel {
    let unit = results.curves.unit(of);
    let series = names.iter().filter_map(|(shown, name)| {
        let points = results.curves.curve(of, name)?.points.iter();
        let points = points.filter(|(size, _)| (from..=to).contains(size));
        let points = points.map(|&(size, value)| (size as f64, unit.scaled(value)));
        Some(Series::line(shown.clone(), points.collect()))
    });
    Panel {
        title: String::new(),
        unit,
        across: Across::Sizes,
        quantity: "message size".into(),
        values: match unit.more_is_better() {
            true => Values::Linear,
            false => Values::Logarithmic,
        },
        bands: Vec::new(),
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cross_between_points() {
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-9);
        close(crossing((4, 0.5), Some((16, 2.0))), 8.0);
        close(crossing((4, 0.25), Some((32, 2.0))), 16.0);
        close(crossing((4, 0.5), Some((16, 0.9))), 4.0);
        close(crossing((4, 0.5), None), 4.0);
    }
}
