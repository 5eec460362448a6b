//! The system of the catalogue that is nearest to figures.

use std::path::Path;

use anyhow::{Context, Result};
use fabric::System;
use fabric::catalogue::Catalogue;
use fabric::components::Part;
use fabric::figures::Figures;
use fabric::rails::Rails;
use results::Console;
use results::stats::median;

use super::runs::predict;
use super::{Base, observed, refused};
use crate::score::figures::{PublishedFigure, groups};

/// A system whose bandwidth differs from the highest measured one by more than this factor is no
/// candidate.
const APART: f64 = 1.6;
/// Most systems that are measured.
const MOST: usize = 24;

/// The nearest system, and the distances of the nearest few: the median of the figures' errors.
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
    let distance = |found: &Vec<f64>| -> Result<f64> {
        let each = figures.iter().zip(found).map(|(figure, found)| {
            let one = observed(figure)?;
            Ok((found / one.value).ln().abs())
        });
        Ok(median(&each.collect::<Result<Vec<f64>>>()?))
    };
    let mut all = Vec::new();
    for (name, found) in candidates.into_iter().zip(&found) {
        all.push((name, distance(found)?));
    }
    // Equal distances stay in the catalogue's order.
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

/// Systems with equal rails whose bandwidth is near the highest measured one, the nearest first.
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
        // Sockets are calibrated by measurements over links of known rates.
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
