//! Any published figures beside predicted ones: a file of figures, a file of machines, and the
//! errors by kind of figure.

mod errors;
mod figures;
mod machines;

use std::path::Path;

use anyhow::Result;
use results::Console;
use results::table::{aligned, significant};
use serde_json::json;

use crate::check::factor;
use crate::experiments::Run;
use errors::Errors;
use figures::{Group, PublishedFigure, groups};
use machines::FigureMachines;

/// The figures of this project, and their machines.
const FIGURES: &str = include_str!("../../data/published.csv");
const MACHINES: &str = include_str!("../../data/published.toml");

/// Published figures with their predictions.
pub(crate) struct Scores(Vec<Scored>);

struct Scored {
    figure: PublishedFigure,
    /// The prediction in the figure's unit, or the reason that there is none.
    predicted: Result<f64, String>,
}

/// Predicts the figures of a file for the machines of another; none: those of this project.
pub(crate) fn run(
    command: &Path,
    figures: Option<&Path>,
    fabrics: Option<&Path>,
) -> Result<Scores> {
    let figures = figures::read(figures, FIGURES)?;
    let machines = FigureMachines::read(fabrics, MACHINES)?;
    let (groups, mut refused) = groups(&figures, &machines);
    let steps = groups.iter().map(|group| group.run.steps());
    let mut console = Console::without_libraries(steps.sum::<Result<usize>>()?);
    let mut found: Vec<Option<f64>> = vec![None; figures.len()];
    for Group { run, members } in &groups {
        let points = run.run(command, &mut console)?;
        for (at, size) in members {
            let value = points.iter().find(|(own, _)| own == size);
            match value.and_then(|(_, value)| in_unit(run, *value, &figures[*at].unit)) {
                Some(value) => found[*at] = Some(value),
                None => {
                    let unit = run.benchmark.unit().name();
                    let why = format!("{unit} cannot be given as {}", figures[*at].unit);
                    refused[*at] = Some(why);
                }
            }
        }
    }
    let all = figures.into_iter().zip(found).zip(refused);
    let scored = all.map(|((figure, found), refused)| Scored {
        figure,
        predicted: found.ok_or(refused.unwrap_or_default()),
    });
    Ok(Scores(scored.collect()))
}

fn in_unit(run: &Run, value: f64, unit: &str) -> Option<f64> {
    Some(value * factor(run.benchmark.unit(), unit)?)
}

impl Scored {
    /// The error as a share of the published value.
    fn error(&self) -> Option<f64> {
        let predicted = self.predicted.as_ref().ok()?;
        Some(predicted / self.figure.number()? - 1.0)
    }
}

impl Scores {
    fn errors(&self) -> Vec<(&'static str, Errors)> {
        let all = self.0.iter();
        let all = all.filter_map(|scored| Some((scored.figure.class(), scored.error()?)));
        errors::by_class(all)
    }

    /// A table of the figures, the reasons of those without prediction, and the errors by kind.
    pub(crate) fn text(&self) -> String {
        let mut rows = Vec::new();
        let mut reasons = Vec::new();
        for scored in &self.0 {
            let figure = &scored.figure;
            let first = [
                &figure.id,
                &figure.test,
                &figure.model_cfg,
                &figure.msg_size,
            ];
            let mut row: Vec<String> = first.map(String::clone).into();
            match (&scored.predicted, scored.error()) {
                (Ok(predicted), Some(error)) => {
                    let published = figure.number().unwrap_or(f64::NAN);
                    row.extend([published, *predicted].map(significant));
                    row.extend([figure.unit.clone(), format!("{:+.1} %", error * 100.0)]);
                    rows.push(row);
                }
                (predicted, _) => {
                    let why = predicted.as_ref().err().cloned().unwrap_or_default();
                    reasons.push(vec![figure.id.clone(), why]);
                }
            }
        }
        let header = [
            "figure",
            "test",
            "machine",
            "size",
            "published",
            "predicted",
            "",
            "error",
        ];
        let header = header.map(String::from).to_vec();
        let mut text = aligned(header, rows, |column| ![3, 4, 5, 7].contains(&column));
        if !reasons.is_empty() {
            let header = ["not predicted", "because"].map(String::from).to_vec();
            text += &format!("\n{}", aligned(header, reasons, |_| true));
        }
        text + &format!("\n{}", errors::table(&self.errors()))
    }

    /// One JSON object per line: the figures, then the errors by kind.
    pub(crate) fn json(&self) -> String {
        let mut lines = Vec::new();
        for scored in &self.0 {
            let figure = &scored.figure;
            let mut line = json!({
                "figure": figure.id, "test": figure.test, "machine": figure.model_cfg,
                "size": figure.msg_size, "published": figure.number(), "unit": figure.unit,
            });
            match &scored.predicted {
                Ok(predicted) => {
                    line["predicted"] = results::stats::digits(*predicted).into();
                    let percent = scored.error().map(|error| (error * 1e4).round() / 100.0);
                    line["error_percent"] = percent.into();
                    line["kind"] = figure.class().into();
                }
                Err(why) => line["because"] = why.as_str().into(),
            }
            lines.push(line.to_string());
        }
        for (class, errors) in self.errors() {
            lines.push(errors.json(class).to_string());
        }
        lines.join("\n") + "\n"
    }
}
