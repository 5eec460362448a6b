//! Points as JSON lines, written and read; a point has the figures of a benchmark with one number
//! of ranks and one size. The lines are the output of `--json`, and the file of `--keep` and
//! `--beside`, which contains neither the values of single rounds nor settings.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use results::Unit;
use results::stats::{median, median_interval, round_to};
use serde::{Deserialize, Serialize};

use super::point::{Choice, DEFAULT, Point};

/// The significant digits with which figures are written: more than any measurement has.
const DIGITS: usize = 4;

/// A measured point as it is written to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptPoint {
    pub(super) benchmark: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fabric: Option<String>,
    pub(super) ranks: usize,
    pub(super) size: usize,
    pub(super) unit: String,
    /// The proximity of the cores in the rounds that are evaluated: `one-core`, `near` or `far`.
    /// `None`: rounds of any proximity are evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cores: Option<String>,
    /// The number of measuring rounds whose values are evaluated.
    pub(super) rounds: usize,
    /// The choice that the library made with its default settings.
    pub(super) taken: String,
    pub(super) default: Figure,
    /// The forced choices, the best first.
    pub(super) choices: Vec<KeptChoice>,
    #[serde(flatten)]
    pub(super) regret: Option<KeptRegret>,
}

/// The median of the values of all rounds, with its confidence interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) median: f64,
    /// The interval that contains the median with a confidence of 95 %. `None`: there are fewer
    /// than two rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interval: Option<(f64, f64)>,
    /// The values of all rounds, in order. `None` in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_rounds: Option<Vec<f64>>,
}

/// A choice that settings force, with its figure, as it is written to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptChoice {
    pub(super) choice: String,
    /// The environment variables that force the choice, with their values; absent from files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(super) figure: Figure,
}

/// The regret of a point's default choice, as it is written to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptRegret {
    best: String,
    regret: f64,
    bound: f64,
    pub(super) noise: Option<f64>,
    limit: f64,
    is_met: bool,
}

/// The facts that identify a point: benchmark, machine, ranks and size.
pub(super) type Key<'a> = (&'a str, Option<&'a str>, usize, usize);

impl KeptPoint {
    /// The form of a point that is written to a file. `with_rounds`: with the values of single
    /// rounds and with settings.
    pub(super) fn of(point: &Point, with_rounds: bool) -> KeptPoint {
        let figure = |rounds: &[f64]| {
            let short = |value: f64| round_to(value, DIGITS);
            let counted = point.counted(rounds);
            Figure {
                median: short(median(&counted)),
                interval: median_interval(&counted).map(|(low, high)| (short(low), short(high))),
                all_rounds: with_rounds.then(|| rounds.iter().map(|&value| short(value)).collect()),
            }
        };
        let choice = |choice: &Choice| KeptChoice {
            choice: choice.name.clone(),
            settings: match with_rounds {
                true => choice.settings.iter().cloned().collect(),
                false => BTreeMap::new(),
            },
            figure: figure(&choice.rounds),
        };
        let regret = point.regret().map(|regret| KeptRegret {
            best: regret.best.name.clone(),
            regret: round_to(regret.ratio, DIGITS),
            bound: round_to(regret.bound, DIGITS),
            noise: regret.noise.map(|noise| round_to(noise, DIGITS - 1)),
            limit: round_to(regret.limit, DIGITS),
            is_met: regret.is_met(),
        });
        let cores = point.place().map(serde_json::to_value);
        KeptPoint {
            benchmark: point.benchmark.clone(),
            fabric: point.fabric.clone(),
            ranks: point.ranks,
            size: point.size,
            unit: point.unit.name().to_owned(),
            cores: cores.and_then(|word| word.ok()?.as_str().map(str::to_owned)),
            rounds: point.counted(&point.default).len(),
            taken: point.taken.clone(),
            default: figure(&point.default),
            choices: point.ranked().into_iter().map(choice).collect(),
            regret,
        }
    }

    /// The point as one line of JSON for the file of `--keep`.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings are always JSON") + "\n"
    }

    pub(super) fn key(&self) -> Key<'_> {
        (
            &self.benchmark,
            self.fabric.as_deref(),
            self.ranks,
            self.size,
        )
    }

    /// True if the point's values are rates, of which a larger one is better.
    pub(super) fn is_rate(&self) -> bool {
        let rates = [Unit::MegabytesPerSecond, Unit::MessagesPerSecond];
        rates.iter().any(|unit| unit.name() == self.unit)
    }

    /// All figures with the names of their choices; the figure of the default settings first.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&str, &Figure)> {
        let forced = self.choices.iter().map(|one| (&*one.choice, &one.figure));
        std::iter::once((DEFAULT, &self.default)).chain(forced)
    }
}

/// Reads the points that an earlier run has kept in a file.
pub(super) fn read(file: &Path) -> Result<Vec<KeptPoint>> {
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("--beside: cannot read {}", file.display()))?;
    parse(&text).with_context(|| format!("{} has no figures of --every-choice", file.display()))
}

fn parse(text: &str) -> Result<Vec<KeptPoint>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Adds points to a file, replacing those with the same keys.
pub(super) fn write(file: &Path, points: &[KeptPoint]) -> Result<()> {
    let named = || format!("--keep: cannot use {}", file.display());
    let known = match fs::read_to_string(file) {
        Ok(text) => parse(&text).with_context(named)?,
        Err(why) if why.kind() == ErrorKind::NotFound => Vec::new(),
        Err(why) => return Err(why).with_context(named),
    };
    let text: String = merged(known, points).iter().map(KeptPoint::line).collect();
    fs::write(file, text).with_context(named)
}

fn merged(mut known: Vec<KeptPoint>, points: &[KeptPoint]) -> Vec<KeptPoint> {
    for point in points {
        match known.iter_mut().find(|one| one.key() == point.key()) {
            Some(one) => *one = point.clone(),
            None => known.push(point.clone()),
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::super::point::tests::{choice, point};
    use super::*;

    #[test]
    fn points_pass_through_a_file() {
        let choices = vec![choice("eager", &[2.0; 3]), choice("packets", &[1.0; 3])];
        let one = KeptPoint::of(&point(8, &[2.0; 3], choices), false);
        assert_eq!(
            one.line(),
            "{\"benchmark\":\"latency\",\"ranks\":2,\"size\":8,\"unit\":\"us\",\"cores\":\"one-core\",\
             \"rounds\":3,\"taken\":\"eager\",\"default\":{\"median\":2.0,\"interval\":[2.0,2.0]},\
             \"choices\":[{\"choice\":\"packets\",\
             \"median\":1.0,\"interval\":[1.0,1.0]},\
             {\"choice\":\"eager\",\
             \"median\":2.0,\"interval\":[2.0,2.0]}],\
             \"best\":\"packets\",\"regret\":2.0,\"bound\":2.0,\"noise\":0.0,\"limit\":1.05,\"is_met\":false}\n"
        );
        assert_eq!(parse(&one.line()).unwrap(), [one]);
        assert!(parse("{\"benchmark\":\"latency\"}").is_err());
    }

    #[test]
    fn a_new_point_replaces_that_of_its_key() {
        let of = |size, value| KeptPoint::of(&point(size, &[value], vec![]), true);
        let known = vec![of(8, 1.0), of(16, 2.0)];
        let all = merged(known, &[of(16, 3.0), of(32, 4.0)]);
        assert_eq!(all, [of(8, 1.0), of(16, 3.0), of(32, 4.0)]);
    }
}
