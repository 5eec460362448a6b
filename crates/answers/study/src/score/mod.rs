//! Scores: compares published figures with predicted ones, given a file of figures and a file of
//! machines, and sums up the errors by kind of figure.

pub(crate) mod anchors;
mod beside;
pub(crate) mod congestion;
pub(crate) mod dahu;
mod errors;
pub(crate) mod figures;
mod intervals;
mod kinds;
mod machines;
mod orders;
pub(crate) mod page;
mod unseen;

use std::path::Path;

use anyhow::Result;
use fabric::accuracy::Case;
use results::Console;
use results::stats::{median, percentile};
use results::table::{aligned, significant};
use serde_json::json;

use crate::check::factor;
use crate::experiments::{Run, at_once};
use errors::Errors;
use figures::{PublishedFigure, groups};
use machines::FigureMachines;

/// The published figures that are part of this project, as CSV.
const FIGURES: &str = include_str!("../../data/published.csv");
/// The machines on which those figures were measured, as TOML.
const MACHINES: &str = include_str!("../../data/published.toml");

/// Published figures with their predictions.
#[derive(Default)]
pub(crate) struct Scores(Vec<Scored>);

#[derive(Clone)]
struct Scored {
    figure: PublishedFigure,
    /// The case of the machine, or of both machines of a quotient: libraries are named or assumed,
    /// or messages travel by TCP. `None`: there is no such machine.
    case: Option<Case>,
    /// The prediction in the figure's unit, or the reason why there is none.
    predicted: Result<f64, String>,
}

/// A request for predictions: the figures and their machines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScoreRequest<'a> {
    /// The file of figures. `None`: the figures of this project.
    pub(crate) figures: Option<&'a Path>,
    /// The file of machines. `None`: the machines of this project.
    pub(crate) fabrics: Option<&'a Path>,
    /// True to predict our library instead of the one that a machine names.
    pub(crate) own: bool,
}

impl ScoreRequest<'_> {
    /// The request for all figures of this project with our own library.
    const OWN: ScoreRequest<'static> = ScoreRequest {
        figures: None,
        fabrics: None,
        own: true,
    };
}

/// Predicts the figures that a request names.
pub(crate) fn run(command: &Path, request: ScoreRequest) -> Result<Scores> {
    let figures = figures::read(request.figures, FIGURES)?;
    let machines = FigureMachines::read(request.fabrics, MACHINES)?;
    predict(command, figures, &machines, request.own)
}

/// Predicts figures. `own`: of our library instead of the one that a machine names.
fn predict(
    command: &Path,
    figures: Vec<PublishedFigure>,
    machines: &FigureMachines,
    own: bool,
) -> Result<Scores> {
    let (mut groups, mut refused) = groups(&figures, &|name: &str| machines.word(name));
    for group in &mut groups {
        group.run.named = !own;
    }
    let runs: Vec<Run> = groups.iter().map(|group| group.run.clone()).collect();
    let mut console = Console::without_libraries(runs.len());
    let points = at_once(command, &runs, &mut console)?;
    // For each figure, its value, and for a quotient also the value in the denominator.
    let mut found: Vec<[Option<f64>; 2]> = vec![[None; 2]; figures.len()];
    for (group, points) in groups.iter().zip(&points) {
        for member in &group.members {
            let value = points.iter().find(|(own, _)| *own == member.size);
            let figure = &figures[member.figure];
            let unit = group.run.benchmark.unit();
            let value = value.and_then(|(_, value)| match figure.unit.as_str() {
                QUOTIENT => Some(*value),
                other => Some(value * factor(unit, other)?),
            });
            if value.is_none() {
                let why = format!("{} cannot be given as {}", unit.name(), figure.unit);
                refused[member.figure] = Some(why);
            }
            found[member.figure][usize::from(member.is_below)] = value;
        }
    }
    let all = figures.into_iter().zip(found).zip(refused);
    let scored = all.map(|((figure, found), refused)| {
        let value = match (figure.unit.as_str(), found) {
            (QUOTIENT, [Some(over), Some(under)]) => Some(over / under),
            (QUOTIENT, _) => None,
            (_, [value, _]) => value,
        };
        let no_other = || match figure.unit.as_str() {
            QUOTIENT => "a quotient needs another machine in the column over".to_owned(),
            _ => String::new(),
        };
        let predicted = match refused {
            Some(why) => Err(why),
            None => value.ok_or_else(no_other),
        };
        Scored {
            case: machines.case(&figure, own),
            figure,
            predicted,
        }
    });
    Ok(Scores(scored.collect()))
}

/// The unit of a figure that is a quotient of two machines.
const QUOTIENT: &str = "x";

impl Scored {
    /// The error of the prediction, as a share of the published value; `None` without a prediction.
    fn error(&self) -> Option<f64> {
        let predicted = self.predicted.as_ref().ok()?;
        Some(predicted / self.figure.number()? - 1.0)
    }

    /// The interval around the prediction in which nine of ten published figures lie. `None`: too
    /// few figures of this kind are published.
    fn interval(&self) -> Option<[f64; 2]> {
        let accuracy = self.figure.kind()?.accuracy(self.case?)?;
        Some(accuracy.interval(*self.predicted.as_ref().ok()?))
    }
}

impl Scores {
    /// The pairs of a machine and a kind of its figures, in the order of the file.
    fn machines(&self) -> Vec<(String, &'static str)> {
        let predicted = self.0.iter().filter(|scored| scored.error().is_some());
        let mut all: Vec<(String, &'static str)> = Vec::new();
        for scored in predicted {
            let one = (scored.figure.model_cfg.clone(), scored.figure.class());
            if !all.contains(&one) {
                all.push(one);
            }
        }
        // Sort, so that the kinds of one machine are neighbours.
        let place = |name: &str| all.iter().position(|(own, _)| own == name);
        let mut sorted = all.clone();
        sorted.sort_by_key(|(name, class)| {
            (
                place(name),
                errors::CLASSES.iter().position(|own| own == class),
            )
        });
        sorted
    }

    /// A table of the prediction errors by machine and kind of figure.
    fn by_machine(&self) -> String {
        let rows = self.machines().into_iter().map(|(machine, class)| {
            let own = self.0.iter().filter(|scored| {
                scored.figure.model_cfg == machine && scored.figure.class() == class
            });
            let mut errors: Vec<f64> = own
                .filter_map(|scored| Some(scored.error()?.abs()))
                .collect();
            errors.sort_by(f64::total_cmp);
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            vec![
                machine,
                class.to_owned(),
                errors.len().to_string(),
                percent(median(&errors)),
                percent(percentile(&errors, 90.0)),
            ]
        });
        let header = ["machine", "kind", "figures", "median", "90th percentile"];
        let header = header.map(String::from).to_vec();
        aligned(header, rows.collect(), |column| column < 2)
    }

    fn errors(&self) -> Vec<(&'static str, Errors)> {
        let all = self.0.iter();
        let all = all.filter_map(|scored| Some((scored.figure.class(), scored.error()?)));
        errors::by_class(all)
    }

    /// A table of the figures, the reasons for missing predictions, and the errors by kind.
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
                    row.push(figure.unit.clone());
                    let interval = scored.interval();
                    let interval = interval.map(|ends| ends.map(significant).join(" to "));
                    row.push(interval.unwrap_or_default());
                    row.push(format!("{:+.1} %", error * 100.0));
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
            "nine in ten",
            "error",
        ];
        let header = header.map(String::from).to_vec();
        let mut text = aligned(header, rows, |column| ![3, 4, 5, 8].contains(&column));
        if !reasons.is_empty() {
            let header = ["not predicted", "because"].map(String::from).to_vec();
            text += &format!("\n{}", aligned(header, reasons, |_| true));
        }
        text += &format!("\n{}", self.by_machine());
        text + &format!("\n{}", errors::table(&self.errors()))
    }

    /// JSON, one object per line: the figures, then the errors by kind.
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
                    let interval = scored.interval();
                    line["interval_90"] =
                        interval.map(|ends| ends.map(results::stats::digits)).into();
                }
                Err(why) => line["because"] = why.as_str().into(),
            }
            lines.push(line.to_string());
        }
        for (machine, class) in self.machines() {
            let of = self.0.iter().filter(|scored| {
                scored.figure.model_cfg == machine && scored.figure.class() == class
            });
            let of = of.filter_map(|scored| Some((class, scored.error()?)));
            let (_, errors) = errors::by_class(of).remove(0);
            let mut line = errors.json(class);
            line["machine"] = machine.into();
            lines.push(line.to_string());
        }
        for (class, errors) in self.errors() {
            lines.push(errors.json(class).to_string());
        }
        lines.join("\n") + "\n"
    }
}
