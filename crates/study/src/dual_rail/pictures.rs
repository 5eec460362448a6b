//! Pictures of the curves. The sizes at which FDR is better are shaded.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use results::plot::{Across, Band, Panel, Series, Values, draw_below};

use super::Results;
use super::answer::{Better, Range, ranges};
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
    let third = match *rails {
        "stripe" => ("QDR", "QDR"),
        _ => ("2 x QDR, default striping", "stripe"),
    };
    let names = [
        ("FDR".to_owned(), *fdr),
        (format!("2 x QDR, {policy}"), *rails),
        (third.0.to_owned(), third.1),
    ];
    Panel {
        title: format!("{}: two rails of QDR with {policy}, and FDR", of.title()),
        bands: windows(results, of, [rails, fdr], sizes),
        ..panel(results, of, &names, sizes)
    }
}

/// The sizes at which the second curve is better, from one crossing of the lines to the next.
fn windows(
    results: &Results,
    of: Benchmark,
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

/// The size at which the logarithm of a quotient, drawn as a line over the logarithm of the size
/// from one point to the next, is 0. Without such a size: that of the first point.
fn crossing(here: (usize, f64), next: Option<(usize, f64)>) -> f64 {
    let logarithms = |(size, ratio): (usize, f64)| ((size as f64).ln(), ratio.ln());
    let (x, y) = logarithms(here);
    match next.map(logarithms) {
        Some((to_x, to_y)) if y * to_y < 0.0 => (x + (to_x - x) * y / (y - to_y)).exp(),
        _ => x.exp(),
    }
}

/// All policies, and the dip around 12 KiB.
fn bidirectional(results: &Results) -> Vec<Panel> {
    let of = Benchmark::Bibw;
    // In both panels a curve has one colour.
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
            title: of.title().into(),
            ..panel(results, of, &names, [512, 4 << 20])
        },
        Panel {
            title: format!("{} where eager turns into rendezvous", of.title()),
            ..panel(results, of, dip, [8 << 10, 24 << 10])
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
        let points = points.map(|&(size, value)| (size as f64, value));
        Some(Series::line(shown.clone(), points.collect()))
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
