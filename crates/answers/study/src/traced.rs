//! A trace in place of a study's experiments: its replay on every machine of the document, with the
//! document's settings.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use results::Console;
use results::Unit;
use results::table::{Table, number};
use serde_json::{Value, json};

use crate::answer::EQUAL;
use crate::document::{Comparison, Configuration, Document};
use crate::experiments::{Machines, each_at_once};
use crate::outcome::Results;

/// The times of a trace with the configurations of a document.
pub(crate) struct Replays {
    name: &'static str,
    document: Document,
    found: Vec<Replay>,
}

/// The time of a trace with a configuration.
struct Replay {
    curve: Configuration,
    /// Virtual seconds, or the reason why there are none.
    seconds: Result<f64, String>,
}

/// The replays of some studies as text, or as lines of JSON.
///
/// # Errors
/// Nothing could be replayed.
pub(crate) fn shown(all: &[Replays], as_json: bool) -> Result<String> {
    // A reason that all share is no property of a machine.
    let mut found = all.iter().flat_map(|replays| &replays.found);
    if let Some(Err(why)) = found.next().map(|first| &first.seconds)
        && found.all(|replay| replay.seconds.is_err())
    {
        bail!("{why}");
    }
    let texts = all.iter().map(|replays| match as_json {
        true => replays.json(),
        false => replays.text(),
    });
    let texts: Vec<String> = texts.collect();
    Ok(texts.join(if as_json { "" } else { "\n" }))
}

impl Replays {
    /// Replays a trace with all configurations of a study. `command` is the path of the executable
    /// that replays.
    pub(crate) fn run(
        study: (&'static str, &str),
        command: &Path,
        trace: &Path,
        per_host: usize,
    ) -> Result<Replays> {
        let Results { name, document, .. } = Results::without(study)?;
        let machines = Machines::write(command, &document.machines)?;
        let jobs = jobs(&document);
        let mut console = Console::without_libraries(jobs.len());
        console.say(&format!(
            "study {name}: {} replays of {}",
            jobs.len(),
            trace.display()
        ));
        let place = Place {
            command,
            trace,
            per_host,
        };
        let found = each_at_once(&jobs, &mut console, |curve| {
            let machine = machines.word(&curve.fabric);
            let mut words = vec!["--fabric".into(), machine.clone()];
            let library = match curve.is_of_named_library() {
                true => "named",
                false => "own",
            };
            words.extend(["--predict".into(), library.into()]);
            for (name, value) in document.settings(curve) {
                words.extend(["-x".into(), format!("{name}={value}")]);
            }
            // The row names the machine, and a file of its text is of no use.
            let named = format!("--fabric {machine}: ");
            let seconds = place.replayed(&words).map_err(|why| {
                let why = format!("{why:#}");
                why.strip_prefix(&named).unwrap_or(&why).to_owned()
            });
            Ok(Replay {
                curve: (*curve).clone(),
                seconds,
            })
        })?;
        Ok(Replays {
            name,
            document,
            found,
        })
    }

    /// The answers to the document's question, and a table of all times.
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.document.document);
        let answers = self.document.comparisons.iter();
        let answers: Vec<String> = answers.filter_map(|pair| self.answer(pair)).collect();
        if !answers.is_empty() {
            let _ = write!(text, "\n{}\n", answers.join("\n"));
        }
        let least = self.found.iter().filter_map(Replay::time);
        let least = least.fold(f64::INFINITY, f64::min);
        let rows = self.found.iter().map(|replay| {
            let (time, ratio) = match &replay.seconds {
                Ok(seconds) => (
                    number(seconds * 1e3, Unit::Milliseconds),
                    format!("{:.3}", seconds / least),
                ),
                Err(_) => ("–".into(), String::new()),
            };
            let curve = &replay.curve;
            let about = match &replay.seconds {
                Ok(_) => curve.about.clone(),
                Err(why) => why.clone(),
            };
            vec![curve.name.clone(), curve.fabric.clone(), about, time, ratio]
        });
        let header = ["curve", "machine", "", "time, ms", "/ least"].map(String::from);
        let table = Table::new(header.to_vec(), rows.collect(), 3);
        let _ = write!(text, "\n{}", table.text());
        text
    }

    /// One object a line for each configuration.
    fn json(&self) -> String {
        let line = |replay: &Replay| {
            let curve = &replay.curve;
            let mut line = json!({
                "study": self.name,
                "curve": curve.name,
                "machine": curve.fabric,
                "settings": self.document.settings(curve),
            });
            match &replay.seconds {
                Ok(seconds) => line["virtual_s"] = json!(seconds),
                Err(why) => line["error"] = json!(why),
            }
            format!("{line}\n")
        };
        self.found.iter().map(line).collect()
    }

    /// The answer of a comparison as a line. `None`: a time is missing.
    fn answer(&self, pair: &Comparison) -> Option<String> {
        let time = |curve: &str| self.time(curve);
        let (one, other) = (time(&pair.first)?, time(&pair.second)?);
        let [first, second] = &pair.names;
        let gain = (one.max(other) / one.min(other) - 1.0) * 100.0;
        let better = match () {
            () if gain <= EQUAL * 100.0 => "equal".into(),
            () if one < other => format!("{first} is faster by {gain:.1} %"),
            () => format!("{second} is faster by {gain:.1} %"),
        };
        Some(format!("{first} or {second}, {}: {better}", pair.policy))
    }

    /// The time with a configuration. One that differs from another in its name alone has the time
    /// of that one.
    fn time(&self, curve: &str) -> Option<f64> {
        let document = &self.document;
        let wanted = document.curves.iter().find(|own| own.name == curve)?;
        let mut found = self.found.iter();
        found
            .find(|replay| document.is_same_job(&replay.curve, wanted))?
            .time()
    }
}

impl Replay {
    fn time(&self) -> Option<f64> {
        self.seconds.as_ref().ok().copied()
    }
}

/// The configurations of a document that differ to a program.
fn jobs(document: &Document) -> Vec<&Configuration> {
    let mut jobs: Vec<&Configuration> = Vec::new();
    for curve in &document.curves {
        if !jobs.iter().any(|own| document.is_same_job(own, curve)) {
            jobs.push(curve);
        }
    }
    jobs
}

/// The parts of a command line that all replays share.
struct Place<'a> {
    command: &'a Path,
    trace: &'a Path,
    per_host: usize,
}

impl Place<'_> {
    /// The virtual time of a replay in seconds.
    fn replayed(&self, words: &[String]) -> Result<f64> {
        let summary = tempfile::NamedTempFile::new().context("cannot make a file")?;
        let ran = child_guard::command(self.command)
            .args(["run", "--ppn", &self.per_host.to_string()])
            .args(words)
            .arg("--summary")
            .arg(format!("json={}", summary.path().display()))
            .arg("--")
            .arg(self.trace)
            .output()
            .with_context(|| format!("cannot start {}", self.command.display()))?;
        if !ran.status.success() {
            let why = String::from_utf8_lossy(&ran.stderr);
            let why = why.trim().lines().last().unwrap_or("no reason");
            return Err(anyhow!("{}", why.trim_start_matches("fishplate: ")));
        }
        let text = std::fs::read(summary.path()).context("cannot read a summary")?;
        let summary: Value = serde_json::from_slice(&text).context("cannot read a summary")?;
        let seconds = summary["virtual_s"].as_f64();
        let seconds = seconds.context("a summary has no time")?;
        ensure!(seconds > 0.0, "the trace takes no time");
        Ok(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::STUDIES;

    fn replays(seconds: impl Fn(&str) -> Result<f64, String>) -> Replays {
        let Results { name, document, .. } = Results::without(STUDIES[0]).unwrap();
        let found = jobs(&document).into_iter().map(|curve| Replay {
            curve: curve.clone(),
            seconds: seconds(&curve.name),
        });
        Replays {
            name,
            found: found.collect(),
            document,
        }
    }

    #[test]
    fn the_answers_are_those_of_the_documents_comparisons() {
        let replays = replays(|curve| match curve {
            "FDR" => Ok(0.011),
            _ => Ok(0.010),
        });
        let pair = &replays.document.comparisons[0];
        let (of_fdr, names) = (&pair.second, &pair.names);
        assert_eq!(of_fdr, "FDR");
        let answer = replays.answer(pair).unwrap();
        assert!(
            answer.ends_with(&format!("{} is faster by 10.0 %", names[0])),
            "{answer}"
        );
        assert!(replays.text().contains("1.100"), "{}", replays.text());
    }

    #[test]
    fn a_machine_without_a_time_has_its_reason() {
        let replays = replays(|curve| match curve {
            "FDR" => Err("too few hosts".into()),
            _ => Ok(0.010),
        });
        assert_eq!(replays.answer(&replays.document.comparisons[0]), None);
        assert!(replays.text().contains("too few hosts"));
        assert!(replays.json().contains(r#""error":"too few hosts""#));
        assert_eq!(replays.json().lines().count(), replays.found.len());
    }

    #[test]
    fn each_job_is_replayed_once() {
        for study in STUDIES {
            let document = Results::without(study).unwrap().document;
            let jobs = jobs(&document);
            for (at, one) in jobs.iter().enumerate() {
                let is_same = |other: &&Configuration| document.is_same_job(one, other);
                assert!(!jobs[at + 1..].iter().any(is_same), "{}", one.name);
            }
            assert!(!jobs.is_empty());
        }
    }
}
