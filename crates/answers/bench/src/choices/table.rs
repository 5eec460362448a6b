//! The points of `--every-choice` as tables: a row for each size, with the choice of the default
//! settings, the best forced choice, and the regret.

use conditions::{Conditions, Proximity};
use results::sizes::size_label;
use results::stats::median;
use results::table::{aligned, distinct, number, ratio};

use super::point::{Point, Regret};

/// The most choices that the last column of the table lists.
const OTHERS: usize = 2;

/// One table for each benchmark, machine and number of ranks, and a summary.
pub(super) fn render(points: &[Point], conditions: Option<&Conditions>) -> String {
    fn key(point: &Point) -> (&str, Option<&str>, usize) {
        (&point.benchmark, point.fabric.as_deref(), point.ranks)
    }
    let keys = distinct(points.iter().map(key));
    let tables = keys.iter().map(|wanted| {
        let own: Vec<&Point> = points
            .iter()
            .filter(|point| key(point) == *wanted)
            .collect();
        table(&own)
    });
    let mut parts: Vec<String> = tables.collect();
    parts.push(legend(points) + &summary(points));
    if let Some(conditions) = conditions {
        let load = conditions.load;
        parts.push(format!("{}; the load was {load:.1}.\n", conditions.line()));
    }
    parts.join("\n")
}

fn table(points: &[&Point]) -> String {
    let first = points[0];
    let has_places = points
        .iter()
        .any(|point| point.places.iter().any(Option::is_some));
    let mut header = vec![
        "Size",
        "Default",
        "Choice",
        "Best forced",
        "Best",
        "Regret",
        "≤",
        "Noise",
    ];
    if has_places {
        header.push("Cores");
    }
    header.push("Others");
    let left = |column: usize| [2, 4, 8, 9].contains(&column);
    let header = header.into_iter().map(str::to_owned).collect();
    let rows = points.iter().map(|point| row(point, has_places));
    let rows = aligned(header, rows.collect(), left);
    let mut words = vec![first.benchmark.clone(), format!("{} ranks", first.ranks)];
    words.extend(first.fabric.iter().cloned());
    words.push(first.unit.shown().to_owned());
    if first.default.len() > 1 {
        words.push(format!("medians of {} rounds", first.default.len()));
    }
    format!("{}\n{rows}", words.join(", "))
}

fn row(point: &Point, has_places: bool) -> Vec<String> {
    let shown = |rounds: &[f64]| number(median(&point.counted(rounds)), point.unit);
    let mut cells = vec![
        match point.is_sized {
            true => size_label(point.size),
            false => "–".into(),
        },
        shown(&point.default),
        point.taken.clone(),
    ];
    match point.regret() {
        Some(regret) => cells.extend([
            shown(&regret.best.rounds),
            regret.best.name.clone(),
            ratio(regret.ratio),
            ratio(regret.bound) + if regret.is_met() { "" } else { " !" },
            regret.noise.map_or("–".into(), ratio),
        ]),
        None => cells.extend(["–"; 5].map(str::to_owned)),
    }
    if has_places {
        cells.push(point.place().map_or("several", word).to_owned());
    }
    let others = point.ranked().into_iter().skip(1).take(OTHERS);
    let others = others.map(|one| format!("{} {}", one.name, shown(&one.rounds)));
    cells.push(others.collect::<Vec<_>>().join(", "));
    cells
}

fn word(place: Proximity) -> &'static str {
    match place {
        Proximity::OneCore => "one-core",
        Proximity::Near => "near",
        Proximity::Far => "far",
    }
}

fn legend(points: &[Point]) -> String {
    let limits = distinct(points.iter().map(|point| ratio(point.limit())));
    format!(
        "Regret divides the time of the default by that of the best forced choice (rates: the other \
         way round); ≤ is its bound with a confidence of 95 %, with ! above {} + noise. Noise is the \
         difference between the default and its own choice, forced.\n",
        limits.join(" or ")
    )
}

/// A sentence with the share of points within their limits, and the worst point.
fn summary(points: &[Point]) -> String {
    let all: Vec<(&Point, Regret)> = points
        .iter()
        .filter_map(|point| Some((point, point.regret()?)))
        .collect();
    let met = all.iter().filter(|(_, regret)| regret.is_met()).count();
    let worst = all
        .iter()
        .filter(|(point, regret)| regret.is_of_choice(point))
        .max_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio));
    let share = 100.0 * met as f64 / all.len().max(1) as f64;
    let share = format!(
        "{met} of {} points ({share:.0} %) are within their limit.",
        all.len()
    );
    let Some((point, regret)) = worst else {
        return format!("{share} The default's choice is the best one at all of them.\n");
    };
    let machine = point.fabric.as_ref().map(|name| format!(" on {name}"));
    format!(
        "{share} The worst: {}{}, {} ranks, {}: regret {} (≤ {}), {} instead of {}.\n",
        point.benchmark,
        machine.unwrap_or_default(),
        point.ranks,
        size_label(point.size),
        ratio(regret.ratio),
        ratio(regret.bound),
        point.taken,
        regret.best.name
    )
}

#[cfg(test)]
mod tests {
    use super::super::point::tests::{choice, point};
    use super::*;

    #[test]
    fn a_row_has_default_best_regret_and_others() {
        let choices = |eager| vec![choice("eager", &[eager; 3]), choice("packets", &[1.5; 3])];
        let points = [
            point(8, &[1.0; 3], choices(1.0)),
            point(4096, &[2.0; 3], choices(2.0)),
        ];
        let text = render(&points, None);
        let wanted = "\
latency, 2 ranks, µs, medians of 3 rounds
  Size   Default   Choice   Best forced   Best      Regret        ≤   Noise   Cores      Others
──────────────────────────────────────────────────────────────────────────────────────────────────────
   8 B      1.00   eager           1.00   eager       1.00     1.00    0.00   one-core   packets 1.50
 4 KiB      2.00   eager           1.50   packets     1.33   1.33 !    0.00   one-core   eager 2.00

Regret divides the time";
        assert!(text.starts_with(wanted), "{text}");
        let end = "1 of 2 points (50 %) are within their limit. The worst: latency, 2 ranks, 4 KiB: \
                   regret 1.33 (≤ 1.33), eager instead of packets.\n";
        assert!(text.ends_with(end), "{text}");
    }
}
