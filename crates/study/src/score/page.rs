//! The page of scores: all errors of the model against published figures, in one place.

use std::path::Path;

use anyhow::Result;
use fabric::accuracy::Accuracy;
use results::stats::{median, percentile};

use super::anchors;
use super::intervals::{self, COVERAGE, KindIntervals, Origin, WIDTH};
use super::{ScoreRequest, Scores};
use crate::experiments::Effort;
use crate::scoreboard::Scoreboard;

/// Quotients of machines that one document has both of.
const PAIRS: &str = include_str!("../../data/pairs.csv");

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Published figures by kind and by machine, this library's protocols, intervals
    Figures,
    /// Machines that are calibrated by three and by four figures
    Anchors,
    /// Statements of the five studies
    Statements,
}

/// The parts of the page, in its order.
pub(crate) const PARTS: [Part; 3] = [Part::Figures, Part::Anchors, Part::Statements];

const HEAD: &str = "\
# Scores

Errors of predictions against published figures. `build/bin/fishplate study scores > docs/scores.md` writes this page, in ten minutes on two
cores, seven of them for the studies; `tests/all.py scores` compares it with fresh runs. [Studies](studies.md) says what is run and by which rule a
statement holds, [the model](model.md) where errors come from. An error is that of the prediction, as a share of the published figure.

";

/// The page, or some of its parts without its head.
pub(crate) fn page(command: &Path, parts: &[Part]) -> Result<String> {
    let mut text = String::new();
    if parts == PARTS {
        text += HEAD;
    }
    for part in parts {
        text += &match part {
            Part::Figures => figures(command)?,
            Part::Anchors => anchored(command)?,
            Part::Statements => statements(command)?,
        };
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// The table of errors that crate `fabric` keeps.
pub(crate) fn accuracy(command: &Path) -> Result<String> {
    Ok(intervals::table(&all_intervals(
        &super::run(command, ScoreRequest::default())?,
        &pairs(command)?,
    )))
}

fn pairs(command: &Path) -> Result<Scores> {
    super::predict(
        command,
        super::figures::parse("pairs.csv", PAIRS)?,
        ScoreRequest::default(),
    )
}

fn all_intervals(figures: &Scores, pairs: &Scores) -> Vec<KindIntervals> {
    let by_machine = origins(figures, |scored| scored.figure.model_cfg.clone());
    let by_document = origins(pairs, |scored| {
        let source = &scored.figure.source;
        source.split(':').next().unwrap_or(source).to_owned()
    });
    intervals::by_kind(&[by_machine, by_document].concat())
}

fn origins(scores: &Scores, source: impl Fn(&super::Scored) -> String) -> Vec<Origin> {
    let each = scores.0.iter().filter_map(|scored| {
        Some(Origin {
            kind: intervals::kind(&scored.figure)?,
            source: source(scored),
            quotient: 1.0 / (1.0 + scored.error()?),
        })
    });
    each.collect()
}

/// A table in the form of documents; columns of numbers are aligned to the right.
fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
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

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Count, median, 90th percentile and share within 10 % of errors.
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

fn figures(command: &Path) -> Result<String> {
    let named = super::run(command, ScoreRequest::default())?;
    let own = super::run(
        command,
        ScoreRequest {
            own: true,
            ..ScoreRequest::default()
        },
    )?;
    let pairs = pairs(command)?;
    let count = errors_of(&named, |_| true).len();
    let mut text = format!(
        "## Published figures\n\n{count} figures of other machines (`crates/study/data/published.csv`), as `fishplate study score` predicts them, with the \
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
        row.extend(summed(of(&named)));
        let own = summed(of(&own));
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
        let errors = errors_of(&named, |scored| {
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
    text += &ratios(&pairs);
    Ok(text + &shown(&all_intervals(&named, &pairs)))
}

/// The quotients of machines.
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
        "## Ratios between machines\n\nWhere one document has a figure of two machines (`crates/study/data/pairs.csv`), the error of their quotient. Role: \
         *calibration* if a value of the catalogue used the figures.\n\n{table}"
    )
}

/// The intervals.
fn shown(all: &[KindIntervals]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            let Accuracy {
                kind,
                figures,
                sources,
                factor,
                ..
            } = &one.accuracy;
            vec![
                kind.name().to_owned(),
                format!("{figures} of {sources}"),
                format!("{:.2}", factor),
                format!("{} of {}", one.inside, one.held),
                percent(one.width),
                percent(one.far),
                if one.is_narrow() { "yes" } else { "**no**" }.to_owned(),
            ]
        })
        .collect();
    let (inside, held) = all
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.inside, sum.1 + one.held));
    let share = inside as f64 / held as f64;
    let met = if (COVERAGE[0]..=COVERAGE[1]).contains(&share) {
        "met"
    } else {
        "**missed**"
    };
    format!(
        "## Intervals of nine in ten\n\nA figure of a kind lies within the factor of its prediction, up or down, nine times in ten. *Inside*: figures within the \
         interval that the other machines (for ratios, the other documents) give. *Half-width*: the median of these intervals; wanted is at most {WIDTH} times the \
         90th percentile of the kind's errors. `study score` and `fabric explain` show the interval beside a prediction (`crates/fabric/data/accuracy.csv`, \
         written by `fishplate study scores --errors`).\n\n{}In all {inside} of {held} figures are inside, {}; wanted are {:.0} to {:.0} %: {met}.\n\n",
        markdown(
            &[
                "kind",
                "figures, machines",
                "factor",
                "inside",
                "half-width",
                "90th percentile",
                "narrow enough"
            ],
            &rows
        ),
        percent(share),
        COVERAGE[0] * 100.0,
        COVERAGE[1] * 100.0,
    )
}

fn anchored(command: &Path) -> Result<String> {
    let found = anchors::run(command, ScoreRequest::default())?;
    let (header, rows) = found.rows();
    Ok(format!(
        "## Machines calibrated by a few figures\n\n`fishplate study score --anchors`. Anchors: the shortest latency, that nearest to 16 KiB, the bandwidth of the \
         longest messages; with a fourth, the bandwidth nearest to 8 KiB. At most six values of the catalogue that are inferred or assumed move. Latencies within a \
         factor of four of an anchor's size are not scored. Of streams only anchors are left out: nearly all of 2 to 63 KiB are within a factor of four of \
         8 KiB. Each cell has median and 90th percentile. How far a figure may be off, by kind, was chosen with these machines in view.\n\n{}",
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
