//! Pictures of the curves. The sizes at which FDR is better are shaded.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use results::plot::{Across, Band, Panel, Series, Values, draw_below};

use super::Results;
use super::answer::{Better, ranges};
use super::curves::Benchmark;
use super::show::{COMPARISONS, Comparison};

/// Draws the curves into a folder, and returns the paths of the files.
pub(crate) fn draw(results: &Results, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let pages = [
        (
            "bandwidth",
            compared(results, Benchmark::Bw, [512, 4 << 20]),
        ),
        (
            "latency",
            compared(results, Benchmark::Latency, [1, 64 << 10]),
        ),
        ("bidirectional", bidirectional(results)),
    ];
    let mut files = Vec::new();
    for (name, panels) in pages {
        let file = folder.join(name).with_extension("svg");
        draw_below(&panels, &file)?;
        files.push(file);
    }
    Ok(files)
}

/// One panel for each comparison.
fn compared(results: &Results, of: Benchmark, sizes: [usize; 2]) -> Vec<Panel> {
    COMPARISONS
        .iter()
        .map(|comparison| against_fdr(results, of, comparison, sizes))
        .collect()
}

fn against_fdr(
    results: &Results,
    of: Benchmark,
    comparison: &Comparison,
    sizes: [usize; 2],
) -> Panel {
    let Comparison { policy, rails, fdr } = comparison;
    let ranges = ranges(&results.curves, of, rails, fdr);
    let bands = ranges
        .iter()
        .filter(|range| range.better == Better::Second && range.sizes[1] >= sizes[0]);
    let bands = bands.map(|range| Band {
        // A window of one size still has a width.
        from: range.sizes[0].max(sizes[0]) as f64 / 1.04,
        to: range.sizes[1].min(sizes[1]) as f64 * 1.04,
        name: "FDR is better".into(),
    });
    let names = [
        ("FDR".to_owned(), *fdr),
        (format!("2 x QDR, {policy}"), *rails),
        ("QDR".to_owned(), "QDR"),
    ];
    Panel {
        title: format!("{}: {policy}", of.title()),
        bands: bands.collect(),
        ..panel(results, of, &names, sizes)
    }
}

/// All policies, and the dip around 12 KiB.
fn bidirectional(results: &Results) -> Vec<Panel> {
    let of = Benchmark::Bibw;
    let names = [
        "FDR",
        "stripe",
        "stripe-8K",
        "round-robin",
        "adaptive",
        "QDR",
    ];
    let names = names.map(|name| (name.to_owned(), name));
    let dip = ["stripe", "round-robin", "QDR"].map(|name| (name.to_owned(), name));
    vec![
        Panel {
            title: of.title().into(),
            ..panel(results, of, &names, [512, 4 << 20])
        },
        Panel {
            title: format!("{} where eager turns into rendezvous", of.title()),
            ..panel(results, of, &dip, [4 << 10, 16 << 10])
        },
    ]
}

/// A panel with the curves of these names (in the legend, and in the results).
fn panel(
    results: &Results,
    of: Benchmark,
    names: &[(String, &str)],
    [from, to]: [usize; 2],
) -> Panel {
    let series = names.iter().filter_map(|(shown, name)| {
        let points = results.curves.curve(of, name)?.points.iter();
        let points = points.filter(|(size, _)| (from..=to).contains(size));
        Some(Series {
            name: shown.clone(),
            points: points.map(|&(size, value)| (size as f64, value)).collect(),
        })
    });
    Panel {
        title: String::new(),
        unit: of.unit(),
        across: Across::Sizes,
        quantity: "message size".into(),
        values: match of.unit().more_is_better() {
            true => Values::Linear,
            false => Values::Logarithmic,
        },
        bands: Vec::new(),
        series: series.collect(),
    }
}
