//! Plots of measurements.

use anyhow::Result;
use conditions::this_host;
use results::origin::Made;
use results::plot::{Across, Panel, Plot, PlotFile, Series, Values};
use results::stats::{max, min};
use results::table::distinct;

use crate::rounds::Measurement;
use crate::table::part_title;

/// Draws one panel for each benchmark, or for each of its numbers if it has several (`init`). The
/// caption names the origin with its date, and has the notes on the measurement.
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
        caption: [notes.join(" "), made.line()].join(" "),
        ..Plot::from(&panel(name, all))
    });
    file.draw(&plots.collect::<Vec<_>>())
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
            // Empty messages have no place on a logarithmic scale.
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
        // The range of rounds, which shows as a band around the line of medians.
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
    let rounds = own.iter().map(|m| m.rounds.len()).max().unwrap_or(1);
    match rounds > 1 {
        true if across == Across::Nothing => title += &format!(", median of {rounds} rounds"),
        true => title += &format!(", median of {rounds} rounds (band: least to most)"),
        false => {}
    }
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
