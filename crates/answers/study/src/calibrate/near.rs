//! The search for the system of the catalogue that is nearest to some figures.

use std::path::Path;

use anyhow::{Context, Result};
use fabric::System;
use fabric::catalogue::Catalogue;
use fabric::components::Part;
use fabric::figures::Figures;
use fabric::rails::Rails;
use results::Console;
use results::stats::median;

use super::base::Base;
use super::runs::{predict, refused};
use crate::score::figures::{PublishedFigure, groups};

/// A system is a candidate only if its bandwidth and the highest measured one differ by at most
/// this factor.
const APART: f64 = 1.6;
/// The most candidate machines for which predictions are computed.
const MOST: usize = 24;

/// The nearest system, and the distances of the nearest few. A distance is the median of the
/// figures' errors.
pub(super) fn nearest(
    command: &Path,
    figures: &[PublishedFigure],
    console: &mut Console,
) -> Result<(Base, Vec<(String, f64)>)> {
    let catalogue = Catalogue::builtin();
    let mut candidates = candidates(&catalogue, figures);
    candidates.truncate(MOST);
    let (groups, reasons) = groups(figures, &|_: &str| Ok(String::new()));
    refused(figures, &reasons)?;
    let tasks = candidates.len() * groups.len();
    console.phase_without_line("the nearest machine", Some(tasks));
    let found = predict(command, figures, &groups, &candidates, console)?;
    let distance = |found: &Vec<f64>| -> f64 {
        let each = figures.iter().zip(found);
        let each = each.filter_map(|(figure, found)| Some((found / figure.number()?).ln().abs()));
        median(&each.collect::<Vec<f64>>())
    };
    let mut all = Vec::new();
    for (name, found) in candidates.into_iter().zip(&found) {
        all.push((name, distance(found)));
    }
    // Systems at equal distances keep the catalogue's order.
    all.sort_by(|one, other| one.1.total_cmp(&other.1));
    all.truncate(3);
    let name = all
        .first()
        .context("no system of the catalogue has this bandwidth; name one with --like")?;
    let base = Base {
        name: name.0.clone(),
        catalogue,
        text: String::new(),
    };
    Ok((base, all))
}

/// The systems with equal rails whose bandwidth is near the highest measured one, the nearest
/// first.
fn candidates(catalogue: &Catalogue, figures: &[PublishedFigure]) -> Vec<String> {
    let one_way = figures
        .iter()
        .filter(|one| one.test.ends_with("_bw") && one.unit == "MB/s");
    let most = one_way
        .filter_map(PublishedFigure::number)
        .max_by(f64::total_cmp);
    let entries = catalogue
        .entries()
        .filter(|entry| entry.kind == System::KIND);
    let mut found: Vec<(String, f64)> = Vec::new();
    for entry in entries {
        let Ok(system) = catalogue.system(entry.name) else {
            continue;
        };
        let Rails::Equal(rails) = system.rails else {
            continue;
        };
        // Skip machines of sockets: they are calibrated by measurements over links with known
        // rates.
        if system.hca.polled {
            continue;
        }
        let own = Figures::of(&system, 0).peak.as_mb_per_sec() * f64::from(rails);
        let apart = most.map_or(1.0, |most| (own / most).max(most / own));
        if apart <= APART {
            found.push((entry.name.to_owned(), apart));
        }
    }
    found.sort_by(|one, other| one.1.total_cmp(&other.1));
    found.into_iter().map(|(name, _)| name).collect()
}
