//! The page of scores: all errors of the model against published figures, in one document.

use std::path::Path;

use anyhow::Result;
use results::stats::{median, percentile};

use super::machines::FigureMachines;
use super::{ScoreRequest, Scores, anchors, intervals, unseen};
use crate::experiments::Effort;
use crate::scoreboard::Scoreboard;

/// Quotients of figures of two machines, each pair from one document.
const PAIRS: &str = include_str!("../../data/pairs.csv");

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Published figures by kind and by machine, this library's protocols, ratios of machines
    Figures,
    /// Figures of systems from which no value was inferred, intervals, orders of machines
    Unseen,
    /// Machines that are calibrated by three and by four figures
    Anchors,
    /// Statements of the five studies
    Statements,
}

/// All parts of the page, in its order.
pub(crate) const PARTS: [Part; 4] = [Part::Figures, Part::Unseen, Part::Anchors, Part::Statements];

const HEAD: &str = "\
# Scores

Errors of predictions against published figures. `build/bin/fishplate study scores > docs/figures/scores.md` writes this page, in about half an
hour on two cores, ten minutes of it for calibrations and seven for the studies; `tests/all.py scores` compares it with fresh runs. [Studies](../user/studies.md) says what is run and by which rule a
statement holds, [the model](../user/model.md) where errors come from. An error is that of the prediction, as a share of the published figure.

";

/// The page, or some of its parts without its head.
pub(crate) fn page(command: &Path, parts: &[Part]) -> Result<String> {
    let mut text = String::new();
    if parts == PARTS {
        text += HEAD;
    }
    let reads_seen = |part: &Part| [Part::Figures, Part::Unseen].contains(part);
    let seen = match parts.iter().any(reads_seen) {
        true => Seen::run(command)?,
        false => Seen::default(),
    };
    for part in parts {
        text += &match part {
            Part::Figures => figures(&seen),
            Part::Unseen => unseen::run(command, &seen.pairs)?.markdown(&seen.named, &seen.own),
            Part::Anchors => anchored(command)?,
            Part::Statements => statements(command)?,
        };
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// The table of errors by network, level and size, of unseen systems beside seen ones.
pub(crate) fn beside(command: &Path) -> Result<(Vec<&'static str>, Vec<Vec<String>>)> {
    let seen = super::run(command, ScoreRequest::default())?;
    unseen::named(command)?.rows(&seen)
}

/// The rows of a table as JSON, an object for each.
pub(crate) fn json(header: &[&str], rows: &[Vec<String>]) -> String {
    let object = |row: &Vec<String>| {
        let cells = header.iter().zip(row);
        let cells = cells.map(|(name, cell)| ((*name).to_owned(), cell.as_str().into()));
        let object: serde_json::Map<String, serde_json::Value> = cells.collect();
        format!("{}\n", serde_json::Value::Object(object))
    };
    rows.iter().map(object).collect()
}

/// The table of errors that crate `fabric` includes.
pub(crate) fn accuracy(command: &Path) -> Result<String> {
    let found = unseen::run(command, &pairs(command)?)?;
    Ok(intervals::table(&intervals::by_kind(&found.origins())))
}

fn pairs(command: &Path) -> Result<Scores> {
    super::predict(
        command,
        super::figures::parse("pairs.csv", PAIRS)?,
        &FigureMachines::read(None, super::MACHINES)?,
        false,
    )
}

/// The predictions of seen figures: those from which values of the catalogue were inferred.
#[derive(Default)]
struct Seen {
    named: Scores,
    /// The predictions with this library, in place of the library that the machine names.
    own: Scores,
    pairs: Scores,
}

impl Seen {
    fn run(command: &Path) -> Result<Seen> {
        Ok(Seen {
            named: super::run(command, ScoreRequest::default())?,
            own: super::run(command, ScoreRequest::OWN)?,
            pairs: pairs(command)?,
        })
    }
}

/// A Markdown table; columns of numbers are aligned to the right.
pub(super) fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(header.iter().map(|cell| (*cell).to_owned()).collect());
    let is_number = |column: usize| {
        let cells = rows.iter().map(|row| row[column].as_str());
        let mut cells = cells.filter(|cell| !cell.is_empty() && *cell != "–");
        cells.all(|cell| {
            cell.len() < 24 && cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c))
        })
    };
    let marks = (0..header.len()).map(|column| if is_number(column) { "---:" } else { "---" });
    text += &line(marks.map(str::to_owned).collect());
    text.extend(rows.iter().map(|row| line(row.clone())));
    text + "\n"
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The number, the median, the 90th percentile, and the share within 10 % of errors.
fn summed(mut errors: Vec<f64>) -> Vec<String> {
    errors.sort_by(f64::total_cmp);
    let close = errors
        .iter()
        .filter(|error| **error <= crate::check::CLOSE)
        .count();
    vec![
        errors.len().to_string(),
        percent(median(&errors)),
        percent(percentile(&errors, 90.0)),
        format!("{:.0} %", 100.0 * close as f64 / errors.len() as f64),
    ]
}

fn errors_of(scores: &Scores, wanted: impl Fn(&super::Scored) -> bool) -> Vec<f64> {
    let wanted = scores.0.iter().filter(|scored| wanted(scored));
    wanted
        .filter_map(|scored| Some(scored.error()?.abs()))
        .collect()
}

fn figures(seen: &Seen) -> String {
    let Seen { named, own, pairs } = seen;
    let count = errors_of(named, |_| true).len();
    let mut text = format!(
        "## Published figures\n\n{count} figures of other machines (`crates/answers/study/data/published.csv`), as `fishplate study score` predicts them, with the \
         protocols of the library that a machine names; beside them those of this library (`--own`).\n\n"
    );
    let mut rows = Vec::new();
    for (class, _) in named.errors() {
        let of = |scores: &Scores| {
            errors_of(scores, |scored| {
                class == super::errors::ALL || scored.figure.class() == class
            })
        };
        let mut row = vec![class.to_owned()];
        row.extend(summed(of(named)));
        let own = summed(of(own));
        row.push(format!("{}, {}", own[1], own[2]));
        rows.push(row);
    }
    text += &markdown(
        &[
            "kind",
            "figures",
            "median",
            "90th percentile",
            "within 10 %",
            "own: median, 90th",
        ],
        &rows,
    );
    text += "By machine and kind:\n\n";
    let mut rows = Vec::new();
    for (machine, class) in named.machines() {
        let errors = errors_of(named, |scored| {
            scored.figure.model_cfg == machine && scored.figure.class() == class
        });
        let mut row = vec![format!("{machine}, {class}")];
        row.extend(summed(errors));
        rows.push(row);
    }
    text += &markdown(
        &[
            "machine and kind",
            "figures",
            "median",
            "90th percentile",
            "within 10 %",
        ],
        &rows,
    );
    text + &ratios(pairs)
}

/// The section about ratios between machines.
fn ratios(pairs: &Scores) -> String {
    let rows: Vec<Vec<String>> = pairs
        .0
        .iter()
        .filter_map(|scored| {
            let figure = &scored.figure;
            let predicted = *scored.predicted.as_ref().ok()?;
            let over = figure.over.as_deref().unwrap_or_default();
            Some(vec![
                format!("{} {} over {over}", figure.id, figure.model_cfg),
                format!("{} of {} B", figure.test, figure.msg_size),
                figure.value.clone(),
                format!("{predicted:.3}"),
                format!("{:+.1} %", scored.error()? * 100.0),
                figure.role.clone(),
            ])
        })
        .collect();
    let table = markdown(
        &[
            "machines",
            "test",
            "published",
            "predicted",
            "error",
            "role",
        ],
        &rows,
    );
    format!(
        "## Ratios between machines\n\nWhere one document has a figure of two machines (`crates/answers/study/data/pairs.csv`), the error of their quotient. Role: \
         *calibration* if a value of the catalogue used the figures.\n\n{table}"
    )
}

fn anchored(command: &Path) -> Result<String> {
    let found = anchors::run(command, ScoreRequest::default())?;
    let unseen = anchors::of_unseen(command)?;
    let (header, rows) = found.rows();
    let (unseen_header, unseen_rows) = unseen.rows();
    Ok(format!(
        "## Machines calibrated by a few figures\n\n`fishplate study score --anchors`. Each machine that has them is calibrated by three figures of one test: latencies of 8 B, 16 KiB and 1 MiB, or streams of 64 B, 8 KiB and \
         1 MiB, or the nearest within a factor of two. Of other figures of the same level (messages or requests) the errors are those before and after; *of the kind*: latencies with latencies as anchors, streams with \
         streams. Each cell has median and 90th percentile. {} of {} anchors are within 1 %.\n\n### Unseen systems\n\n{}### Seen systems\n\n{}",
        unseen.reached().0 - unseen.reached().1 + found.reached().0 - found.reached().1,
        unseen.reached().0 + found.reached().0,
        markdown(&unseen_header, &unseen_rows),
        markdown(&header, &rows)
    ))
}

fn statements(command: &Path) -> Result<String> {
    let board = Scoreboard::run(command, Effort::default())?;
    Ok(format!(
        "## Statements of published studies\n\n`fishplate study all`. A statement that gives another's figure again has a verdict and is counted once.\n\n{}",
        board.markdown(markdown)
    ))
}
