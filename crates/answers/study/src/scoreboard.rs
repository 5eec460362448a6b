//! The numbers of verdicts of all studies by verdict and role, compared with the aims that this
//! project has set for its model.

use std::path::{Path, PathBuf};

use anyhow::Result;
use results::report::{Made, Page, Section, assumptions};
use results::stats::{median, round_to};
use results::table::Table;
use serde_json::json;

use crate::check::CLOSE;
use crate::document::Role;
use crate::experiments::Effort;
use crate::outcome::{Results, STUDIES};
use crate::verdict::{Judged, Verdict};
use crate::{page, pictures, show};

/// The aim for the share of predicted figures within [`CLOSE`] of the published ones: at least
/// this.
const SHARE: f64 = 0.9;
/// The aim for the median error of predicted figures, as a share: at most this.
const MEDIAN: f64 = 0.04;
/// The aim for the share of orderings and crossovers that hold: at least 32 of 35.
const SHAPES: f64 = 32.0 / 35.0;

/// The results of all studies.
pub(crate) struct Scoreboard(Vec<Results>);

/// A number of statements, and the number of all statements of which it is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Of {
    count: usize,
    all: usize,
}

/// The figures that show whether the project's aims are met.
#[derive(Clone, Debug, PartialEq)]
struct Aims {
    /// The number of predicted figures within [`CLOSE`], of those that nothing contradicts.
    close: Of,
    /// The median error of the predicted figures that nothing contradicts, as a share.
    median: f64,
    /// The number of statements with a predicted figure that are not modelled yet.
    missing: usize,
    /// The number of orderings and crossovers that hold, of those that a model can show and nothing
    /// contradicts.
    shapes: Of,
}

impl Of {
    fn share(self) -> f64 {
        self.count as f64 / self.all as f64
    }
}

impl Aims {
    fn of(all: &[Judged]) -> Aims {
        let counts = |judged: &&Judged| {
            let is_sound = !judged.is_beyond && judged.verdict != Verdict::Contradicted;
            is_sound && judged.repeats.is_none()
        };
        let (numbers, shapes): (Vec<&Judged>, Vec<&Judged>) = all
            .iter()
            .filter(counts)
            .partition(|judged| judged.kind.is_number());
        let predictions = numbers
            .iter()
            .filter(|judged| judged.role == Role::Prediction);
        let figures = predictions.clone().map(|judged| judged.figure.as_ref());
        let errors: Vec<f64> = figures
            .clone()
            .flatten()
            .map(|figure| figure.error_percent.abs() / 100.0)
            .collect();
        Aims {
            close: Of {
                count: errors.iter().filter(|error| **error <= CLOSE).count(),
                all: errors.len(),
            },
            median: median(&errors),
            missing: figures.filter(Option::is_none).count(),
            shapes: Of {
                count: shapes
                    .iter()
                    .filter(|judged| judged.verdict == Verdict::Holds)
                    .count(),
                all: shapes.len(),
            },
        }
    }

    /// For each aim: its text, the reached figure, and true if the aim is met.
    fn lines(&self) -> [(String, String, bool); 3] {
        let Of { count, all } = self.close;
        let percent = |share: f64| round_to(share * 100.0, 3);
        let missing = match self.missing {
            0 => String::new(),
            missing => format!("; {missing} more are not modelled yet"),
        };
        let shapes = self.shapes;
        [
            (
                format!(
                    "{} % of predicted figures within {} %",
                    percent(SHARE),
                    percent(CLOSE)
                ),
                format!(
                    "{count} of {all}, {} %{missing}",
                    percent(self.close.share())
                ),
                self.close.share() >= SHARE,
            ),
            (
                format!(
                    "median error of predicted figures at most {} %",
                    percent(MEDIAN)
                ),
                format!("{} %", percent(self.median)),
                self.median <= MEDIAN,
            ),
            (
                format!(
                    "{} % of orderings and crossovers hold (32 of 35)",
                    percent(SHAPES)
                ),
                format!("{} of {}", shapes.count, shapes.all),
                shapes.share() >= SHAPES,
            ),
        ]
    }
}

impl Scoreboard {
    /// Runs all studies, and returns their results.
    pub(crate) fn run(command: &Path, effort: Effort) -> Result<Scoreboard> {
        let all = STUDIES.iter();
        let all = all.map(|study| Results::run(*study, command, effort));
        Ok(Scoreboard(all.collect::<Result<_>>()?))
    }

    fn judge(&self) -> Vec<Judged<'_>> {
        self.0.iter().flat_map(Results::judge).collect()
    }

    /// A table of all statements, the counts, and the aims.
    pub(crate) fn text(&self) -> String {
        let all = self.judge();
        let mut text = String::new();
        for results in &self.0 {
            let title = &results.document.document;
            text += &format!("{title} (study {})\n", results.name);
            text += &format!("{}\n", show::claims(&results.judge()).text());
        }
        text += &format!("{} statements\n{}\n", all.len(), counts(&all).text());
        for (aim, found, met) in Aims::of(&all).lines() {
            let met = if met { "met" } else { "missed" };
            text += &format!("{aim}: {met} ({found})\n");
        }
        text
    }

    /// The counts, the aims, and all statements, as Markdown tables.
    pub(crate) fn markdown(&self, table: impl Fn(&[&str], &[Vec<String>]) -> String) -> String {
        let all = self.judge();
        let counted = counts_rows(&all);
        let mut text = table(
            &["verdict", "prediction", "calibration", "setting", "all"],
            &counted,
        );
        let aims = Aims::of(&all).lines().map(|(aim, found, met)| {
            let met = if met { "met" } else { "**missed**" };
            vec![aim, found, met.to_owned()]
        });
        text += &table(&["aim", "found", ""], &aims);
        let again = all.iter().filter(|judged| judged.repeats.is_some());
        let again: Vec<&str> = again.map(|judged| judged.claim).collect();
        text += &format!(
            "Not counted, as they repeat others: {}.\n\n",
            again.join(", ")
        );
        for results in &self.0 {
            let rows = results.judge().into_iter().map(|judged| {
                vec![
                    format!("{} {}", judged.claim, judged.about).replace('|', "\\|"),
                    show::verdict(&judged),
                    judged.measured.replace('|', "\\|"),
                    judged.role.name().to_owned(),
                ]
            });
            let rows: Vec<Vec<String>> = rows.collect();
            text += &format!("### {}\n\n", results.document.document);
            let answers = show::answer_rows(results);
            if !answers.is_empty() {
                text += &table(&["policy", "figure", "better is"], &answers);
            }
            text += &table(
                &["statement", "verdict", "predicted, or the reason", "role"],
                &rows,
            );
        }
        text
    }

    /// JSON, one object per line: the statements, the counts, the aims.
    pub(crate) fn json(&self) -> Result<String> {
        let all = self.judge();
        let lines = all.iter().map(serde_json::to_string);
        let mut lines = lines.collect::<Result<Vec<_>, _>>()?;
        for (verdict, role, count) in table(&all) {
            let count = json!({"verdict": verdict, "role": role, "statements": count});
            lines.push(count.to_string());
        }
        for (aim, found, met) in Aims::of(&all).lines() {
            lines.push(json!({"aim": aim, "found": found, "met": met}).to_string());
        }
        Ok(lines.join("\n") + "\n")
    }

    /// The HTML page of all studies.
    pub(crate) fn page(&self) -> Page {
        let all = self.judge();
        let aims = Aims::of(&all).lines().map(|(aim, found, met)| {
            let met = if met { "met" } else { "missed" };
            vec![aim, met.into(), found]
        });
        let header = ["aim", "", "found"].map(String::from).to_vec();
        let score = vec![
            Table::of_text(header, aims.to_vec()).into(),
            counts(&all).into(),
        ];
        let mut sections = vec![Section::new("Score", score)];
        sections.extend(self.0.iter().map(|results| {
            let mut blocks = page::statements(results);
            blocks.extend(page::curves(results));
            Section::new(results.document.document.as_str(), blocks)
        }));
        sections.push(assumptions(&page::uncertain(self.0.iter())));
        Page {
            title: "Published studies of InfiniBand, again".into(),
            lead: format!(
                "{} statements of {} documents, and what modelled machines say to each.",
                all.len(),
                self.0.len()
            ),
            sections,
            made: Some(Made::here()),
            ..Page::default()
        }
    }

    /// Draws the curves of each study into a subfolder with the name of the study.
    pub(crate) fn draw(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let all = self.0.iter();
        let files = all.map(|results| pictures::draw(results, &folder.join(results.name)));
        Ok(files.collect::<Result<Vec<_>>>()?.concat())
    }
}

/// For each verdict and role, the number of statements that have both.
fn table(all: &[Judged]) -> Vec<(Verdict, Role, usize)> {
    let pairs = Verdict::ALL.iter().flat_map(|verdict| {
        Role::ALL.iter().map(|role| {
            let both = |judged: &&Judged| judged.verdict == *verdict && judged.role == *role;
            (*verdict, *role, all.iter().filter(both).count())
        })
    });
    pairs.collect()
}

fn counts(all: &[Judged]) -> Table {
    let mut header = vec!["verdict".to_owned()];
    header.extend(Role::ALL.iter().map(|role| role.name().to_owned()));
    header.push("all".into());
    Table::new(header, counts_rows(all), 1)
}

fn counts_rows(all: &[Judged]) -> Vec<Vec<String>> {
    let table = table(all);
    let row = |verdict: &Verdict| {
        let own = table.iter().filter(|(own, _, _)| own == verdict);
        let numbers: Vec<usize> = own.map(|(_, _, count)| *count).collect();
        let mut row = vec![verdict.name().to_owned()];
        row.extend(numbers.iter().map(usize::to_string));
        row.push(numbers.iter().sum::<usize>().to_string());
        row
    };
    Verdict::ALL.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Kind;
    use crate::verdict::Compared;

    fn judged(kind: Kind, role: Role, verdict: Verdict, error: Option<f64>) -> Judged<'static> {
        Judged {
            claim: "X",
            kind,
            role,
            verdict,
            figure: error.map(|error_percent| Compared {
                published: 1.0,
                predicted: 1.0 + error_percent / 100.0,
                unit: "us".into(),
                error_percent,
            }),
            measured: String::new(),
            holds: None,
            other_reading: None,
            about: "",
            repeats: None,
            is_beyond: false,
        }
    }

    #[test]
    fn aims_count_predictions_that_nothing_contradicts() {
        use Kind::*;
        use Role::{Calibration, Prediction};
        use Verdict::*;
        let beyond = Judged {
            is_beyond: true,
            ..judged(Ordering, Prediction, NotModelled, None)
        };
        let again = Judged {
            repeats: Some("X"),
            ..judged(Absolute, Prediction, Holds, Some(1.0))
        };
        let all = [
            judged(Absolute, Prediction, Holds, Some(1.0)),
            judged(Ratio, Prediction, Holds, Some(-3.0)),
            judged(Absolute, Prediction, Differs, Some(-30.0)),
            judged(Absolute, Prediction, Contradicted, Some(90.0)),
            judged(Absolute, Calibration, Holds, Some(0.0)),
            again,
            judged(Absolute, Prediction, NotModelled, None),
            judged(Ordering, Prediction, Holds, None),
            judged(Ordering, Role::Setting, Holds, None),
            judged(Crossover, Prediction, Differs, Some(60.0)),
            judged(Ordering, Prediction, NotModelled, None),
            judged(Ordering, Prediction, Contradicted, None),
            beyond,
        ];
        let aims = Aims::of(&all);
        let wanted = Aims {
            close: Of { count: 2, all: 3 },
            median: 0.03,
            missing: 1,
            shapes: Of { count: 2, all: 4 },
        };
        assert_eq!(aims, wanted);
        let lines = aims.lines();
        assert_eq!(lines.each_ref().map(|line| line.2), [false, true, false]);
        assert_eq!(lines[0].1, "2 of 3, 66.7 %; 1 more are not modelled yet");
        let table = counts(&all).text();
        let row = table.lines().find(|line| line.contains("holds")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["holds", "4", "1", "1", "6"]);
    }
}
