//! Tables with one figure for a size: of one library with its spread, or of several in columns,
//! with the ratios of the first to each of the others and to the best of them.

use results::sizes::size_label;
use results::table::{distinct, lines, number, ratio, ratio_legend};
use results::{Unit, stats};

use crate::measurement::Measurement;

pub(super) fn one(heading: &str, all: &[&Measurement]) -> String {
    let labels: Vec<&str> = distinct(all.iter().map(|m| m.label.as_str()));
    let keys = Keys::of(all);
    let mut header = keys.header();
    let alone = labels.len() == 1;
    if alone {
        details_header(&mut header, all)
    } else {
        comparison_header(&mut header, &labels, all[0].unit)
    }
    let mut rows = Vec::new();
    for key in distinct(all.iter().map(|m| Keys::key(m))) {
        let row: Vec<&Measurement> = all
            .iter()
            .copied()
            .filter(|m| Keys::key(m) == key)
            .collect();
        let mut cells = keys.cells(row[0]);
        if alone {
            details(&mut cells, row[0], shows_interval(all))
        } else {
            comparison(&mut cells, &labels, &row)
        }
        rows.push(cells);
    }
    let rows = lines(header, rows, keys.left());
    let title = title(heading, all, &keys);
    let ratios = ratios(&labels, all[0].unit);
    format!("{title}\n{rows}{}{ratios}", legend(all))
}

/// The explanation of the columns with ratios; empty if there are none.
fn ratios(labels: &[&str], unit: Unit) -> String {
    if labels.len() < 2 || unit == Unit::Percent {
        return String::new();
    }
    ratio_legend(labels[0], unit)
}

/// The columns that identify a row of a table. A field is true if the table has its column; a
/// column in which all rows are equal is left out.
pub(super) struct Keys {
    pub(super) parts: bool,
    pub(super) ranks: bool,
    pub(super) sizes: bool,
}

impl Keys {
    pub(super) fn of(all: &[&Measurement]) -> Keys {
        Keys {
            parts: distinct(all.iter().map(|m| m.benchmark.as_str())).len() > 1,
            ranks: all.iter().any(|m| {
                all.iter()
                    .any(|other| other.benchmark == m.benchmark && other.ranks != m.ranks)
            }),
            sizes: all.iter().any(|m| m.is_sized),
        }
    }

    pub(super) fn key(measurement: &Measurement) -> (&str, usize, usize) {
        (&measurement.benchmark, measurement.ranks, measurement.size)
    }

    /// The number of columns with text, which precede the columns of numbers.
    pub(super) fn left(&self) -> usize {
        usize::from(self.parts)
    }

    pub(super) fn header(&self) -> Vec<String> {
        let names = [
            (self.parts, "What"),
            (self.ranks, "Ranks"),
            (self.sizes, "Size"),
        ];
        names
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, name)| name.to_string())
            .collect()
    }

    pub(super) fn cells(&self, m: &Measurement) -> Vec<String> {
        let cells = [
            (
                self.parts,
                format!("{}, {}", part_title(&m.benchmark), m.unit.shown()),
            ),
            (self.ranks, m.ranks.to_string()),
            (self.sizes, size_label(m.size)),
        ];
        cells
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, text)| text)
            .collect()
    }
}

/// The title of a figure of a benchmark that has several, such as `init/private`.
pub(crate) fn part_title(benchmark: &str) -> String {
    match benchmark {
        "init" => "launcher, Init, Finalize".into(),
        "init/call" => "MPI_Init, slowest rank".into(),
        "init/resident" => "resident after Init".into(),
        "init/private" => "private after Init".into(),
        other => match other.strip_prefix("first-touch/") {
            Some(part) => first_touch_title(part),
            None => other.split_once('/').map_or(other, |(_, part)| part).into(),
        },
    }
}

fn first_touch_title(part: &str) -> String {
    match part.split_once('/') {
        None => format!("one of the first {part} messages"),
        Some((count, "pair")) => format!("memory of both ranks after {count}"),
        Some((count, _)) => format!("memory of a rank after {count}"),
    }
}

pub(super) fn title(benchmark: &str, all: &[&Measurement], keys: &Keys) -> String {
    let mut words = vec![benchmark.to_owned()];
    if all.iter().all(|m| m.ranks == all[0].ranks) {
        words.push(format!("{} ranks", all[0].ranks));
    }
    if !keys.parts {
        words.push(all[0].unit.shown().into());
    }
    let rounds = all.iter().map(|m| m.rounds.len()).max().unwrap_or(1);
    if rounds > 1 {
        words.push(format!("median of {rounds} rounds"));
    }
    words.join(", ")
}

/// The lines that explain the labels: for each, the name of its library.
pub(super) fn legend(all: &[&Measurement]) -> String {
    let libraries = distinct(all.iter().map(|m| (m.label.as_str(), m.library.as_str())));
    let lines = libraries.iter().filter(|(label, library)| label != library);
    lines
        .map(|(label, library)| format!("{label}: {library}\n"))
        .collect()
}

fn details_header(header: &mut Vec<String>, all: &[&Measurement]) {
    let several = all.iter().any(|m| m.rounds.len() > 1);
    header.push(all[0].label.clone());
    if several {
        header.extend(["Least".into(), "Most".into()]);
    }
    if shows_interval(all) {
        header.push("95 %".into());
    }
    if all.iter().any(|m| !m.extremes.is_empty()) {
        header.extend(["Fastest rank".into(), "Slowest rank".into()]);
    }
    header.extend(all[0].percentiles.iter().map(|(p, _)| format!("p{p}")));
}

/// True if an interval of a median differs from the least and greatest value, which needs several
/// rounds.
fn shows_interval(all: &[&Measurement]) -> bool {
    all.iter().any(|m| {
        let extremes = (stats::min(&m.rounds), stats::max(&m.rounds));
        stats::median_interval(&m.rounds).is_some_and(|interval| interval != extremes)
    })
}

fn details(cells: &mut Vec<String>, m: &Measurement, interval: bool) {
    let show = |value: f64| number(value, m.unit);
    cells.push(show(m.median()));
    if m.rounds.len() > 1 {
        cells.extend([show(stats::min(&m.rounds)), show(stats::max(&m.rounds))]);
    }
    if interval {
        let shown = stats::median_interval(&m.rounds);
        cells.push(shown.map_or_else(String::new, |(low, high)| {
            format!("{}–{}", show(low), show(high))
        }));
    }
    if !m.extremes.is_empty() {
        let (fastest, slowest): (Vec<f64>, Vec<f64>) = m.extremes.iter().copied().unzip();
        cells.extend([show(stats::median(&fastest)), show(stats::median(&slowest))]);
    }
    cells.extend(
        m.percentiles
            .iter()
            .map(|(_, values)| show(stats::median(values))),
    );
}

fn comparison_header(header: &mut Vec<String>, labels: &[&str], unit: Unit) {
    header.extend(labels.iter().map(|label| label.to_string()));
    if unit == Unit::Percent {
        return;
    }
    let first = labels[0];
    header.extend(labels[1..].iter().map(|label| format!("{first} / {label}")));
    if labels.len() > 2 {
        header.push(format!("{first} / best"));
    }
}

fn comparison(cells: &mut Vec<String>, labels: &[&str], row: &[&Measurement]) {
    let median = |label: &str| row.iter().find(|m| m.label == label).map(|m| m.median());
    let medians: Vec<f64> = labels
        .iter()
        .map(|label| median(label).unwrap_or(f64::NAN))
        .collect();
    let unit = row[0].unit;
    cells.extend(medians.iter().map(|&value| number(value, unit)));
    if unit == Unit::Percent {
        // A ratio of shares is meaningless, since shares of 0 % are frequent.
        return;
    }
    cells.extend(medians[1..].iter().map(|&peer| ratio(medians[0] / peer)));
    if labels.len() > 2 {
        cells.push(ratio(medians[0] / best(&medians[1..], unit)));
    }
}

/// The best of the values of the other libraries.
pub(crate) fn best(peers: &[f64], unit: Unit) -> f64 {
    if unit.more_is_better() {
        stats::max(peers)
    } else {
        stats::min(peers)
    }
}
