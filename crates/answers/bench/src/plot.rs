//! Plots of measurements.

use anyhow::Result;
use conditions::this_host;
use results::origin::Made;
use results::plot::{Across, Panel, Plot, PlotFile, Series, Values};
use results::sizes::size_label;
use results::stats::{max, min};
use results::table::distinct;

use crate::measurement::Measurement;
use crate::table::part_title;

/// Draws one panel for each benchmark, or for each of its figures if it has several (`init`). The
/// caption contains the machine, the date, and the notes on the measurement.
pub(crate) fn draw(
    all: &[Measurement],
    date: Option<String>,
    notes: &[String],
    file: PlotFile,
) -> Result<()> {
    let names = distinct(all.iter().map(|m| m.benchmark.as_str()));
    let is_modelled = all.iter().all(|measurement| measurement.fabric.is_some());
    let made = Made {
        machine: match is_modelled {
            true => "modelled machines".into(),
            false => this_host(),
        },
        date,
        ..Made::here()
    };
    let plots = names.iter().map(|name| Plot {
        caption: [rounds(all), notes.join(" "), made.line()].join(" "),
        ..Plot::from(&panel(name, all))
    });
    file.draw(&plots.collect::<Vec<_>>())
}

/// The explanation of the values in a plot, if there were several rounds.
fn rounds(all: &[Measurement]) -> String {
    match all.iter().map(|one| one.rounds.len()).max() {
        None | Some(0 | 1) => String::new(),
        Some(rounds) => format!("Medians of {rounds} rounds; bands are from least to most."),
    }
}

fn panel(name: &str, all: &[Measurement]) -> Panel {
    let own: Vec<&Measurement> = all.iter().filter(|m| m.benchmark == name).collect();
    let ranks = distinct(own.iter().map(|m| m.ranks));
    let across = if distinct(own.iter().map(|m| m.size)).len() > 1 {
        Across::Sizes
    } else if ranks.len() > 1 {
        Across::Ranks
    } else {
        Across::Nothing
    };
    let split = across == Across::Sizes && ranks.len() > 1;
    let mut series: Vec<Series> = Vec::new();
    for m in own.iter().filter(|m| m.median() > 0.0) {
        let value = m.unit.scaled(m.median());
        let point = match across {
            // A size of 0 cannot be drawn on a logarithmic scale.
            Across::Sizes if m.size == 0 => continue,
            Across::Sizes => (m.size as f64, value),
            Across::Ranks => (m.ranks as f64, value),
            Across::Nothing => (0.0, value),
        };
        let name = if split {
            format!("{}, {} ranks", m.label, m.ranks)
        } else {
            m.label.clone()
        };
        // The least and the greatest value of all rounds, drawn as a band around the line of
        // medians.
        let scaled = |value: f64| m.unit.scaled(value);
        let range = (point.0, scaled(min(&m.rounds)), scaled(max(&m.rounds)));
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => {
                series.points.push(point);
                series.band.iter_mut().for_each(|band| band.push(range));
            }
            None => {
                let line = Series::line(name, vec![point]);
                series.push(match m.rounds.len() > 1 && across != Across::Nothing {
                    true => line.with_band(vec![range]),
                    false => line,
                });
            }
        }
    }
    let mut title = part_title(name);
    if ranks.len() == 1 {
        title += &format!(", {} ranks", ranks[0]);
    }
    let found = match across {
        Across::Sizes if !split => finding(&series, own[0].unit.more_is_better()),
        _ => None,
    };
    title += &found.map_or(String::new(), |found| format!(": {found}"));
    Panel {
        title,
        unit: own[0].unit,
        across,
        quantity: match across {
            Across::Sizes => "message size".into(),
            _ => "ranks".into(),
        },
        values: Values::Logarithmic,
        bands: Vec::new(),
        series,
    }
}

/// Values that differ by at most this share count as equal.
const EQUAL: f64 = 0.05;
/// The most ranges of message sizes that the title of a plot names.
const RANGES: usize = 4;

/// A text that names the best series at each size. `None`: there is only one series, or no size
/// that all have.
fn finding(series: &[Series], more_is_better: bool) -> Option<String> {
    let (first, others) = series
        .split_first()
        .filter(|(_, others)| !others.is_empty())?;
    // Ranges of sizes with the number of the best series; neighbouring sizes with the same one are
    // joined.
    let mut ranges: Vec<(usize, Vec<usize>)> = Vec::new();
    for &(size, value) in &first.points {
        let at = |other: &Series| {
            let found = other.points.iter().find(|point| point.0 == size);
            found.map(|point| point.1)
        };
        let Some(rest) = others.iter().map(at).collect::<Option<Vec<f64>>>() else {
            continue;
        };
        let gain = |value: &f64| if more_is_better { *value } else { 1.0 / value };
        let gains: Vec<f64> = [value].iter().chain(&rest).map(gain).collect();
        let best = (0..gains.len()).max_by(|one, other| gains[*one].total_cmp(&gains[*other]))?;
        // The best series of the range before remains the best if it is nearly as good.
        let last = ranges.last().map_or(0, |range| range.0);
        let best = match gains[last] * (1.0 + EQUAL) >= gains[best] {
            true => last,
            false => best,
        };
        match ranges.last_mut() {
            Some(range) if range.0 == best => range.1.push(size as usize),
            _ => ranges.push((best, vec![size as usize])),
        }
    }
    let name = |at: usize| series[at].name.as_str();
    match ranges.as_slice() {
        [] => None,
        [(best, _)] => Some(format!("{} is best at all sizes", name(*best))),
        [(best, sizes), more @ ..] if more.len() < RANGES => {
            let up_to = |sizes: &[usize]| size_label(sizes[sizes.len() - 1]);
            let mut text = format!("{} is best up to {}", name(*best), up_to(sizes));
            for (number, (best, sizes)) in more.iter().enumerate() {
                let to = match number + 1 == more.len() {
                    true => "on".to_owned(),
                    false => format!("to {}", up_to(sizes)),
                };
                text += &format!(", {} from {} {to}", name(*best), size_label(sizes[0]));
            }
            Some(text)
        }
        many => {
            let all: usize = many.iter().map(|range| range.1.len()).sum();
            let own = many.iter().filter(|range| range.0 == 0);
            let own: usize = own.map(|range| range.1.len()).sum();
            Some(format!("{} is best at {own} of {all} sizes", name(0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(times: [&[f64]; 2]) -> Option<String> {
        let line = |name: &str, times: &[f64]| {
            let sizes = (0..).map(|bits| f64::from(1 << bits));
            Series::line(name, sizes.zip(times.iter().copied()).collect())
        };
        finding(&[line("own", times[0]), line("peer", times[1])], false)
    }

    #[test]
    fn a_title_says_which_library_is_best() {
        let found = |one: &[f64], other: &[f64]| found([one, other]).unwrap();
        assert_eq!(found(&[1.0, 2.0], &[2.0, 3.0]), "own is best at all sizes");
        assert_eq!(
            found(&[1.0, 2.0, 4.0], &[2.0, 3.0, 3.0]),
            "own is best up to 2 B, peer from 4 B on"
        );
        assert_eq!(
            found(&[3.0, 2.0, 2.1, 4.0], &[2.0, 3.0, 2.0, 3.0]),
            "peer is best up to 1 B, own from 2 B to 4 B, peer from 8 B on"
        );
        assert_eq!(
            found(&[1.0, 3.0, 1.0, 3.0, 1.0], &[2.0; 5]),
            "own is best at 3 of 5 sizes"
        );
    }

    #[test]
    fn a_library_alone_is_not_the_best() {
        let alone = Series::line("own", vec![(1.0, 1.0)]);
        assert_eq!(finding(&[alone], false), None);
        assert_eq!(found([&[], &[1.0]]), None);
    }
}
