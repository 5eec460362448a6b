//! The study of dual-rail QDR as an alternative to FDR: static policies of rails on the document's
//! machines, checked against its statements, and this library's own policy.

mod answer;
mod check;
mod curves;
mod document;
mod pictures;
mod show;

use std::path::Path;

use anyhow::Result;
use bench::modelled::Experiment;
use serde::Serialize;

use crate::claims::Role;
use crate::verbs;
use curves::{Benchmark, Curves};
use document::{Claim, Document};
pub(crate) use pictures::draw;
pub(crate) use show::{json, text};

const DOCUMENT: &str = include_str!("../../data/dual-rail.toml");

/// The benchmarks of MPI.
const MPI: [Benchmark; 3] = [Benchmark::Latency, Benchmark::Bw, Benchmark::Bibw];
/// The benchmarks below MPI, and the configurations that run them: one rail each.
const VERBS: [Benchmark; 2] = [Benchmark::WriteLat, Benchmark::WriteBw];
const ONE_RAIL: [&str; 2] = ["QDR", "FDR"];
/// The powers of two that are measured.
const SIZES: &str = "1:4M";
/// With `--quick`, those around the thresholds.
const QUICK: &str = "8,1K:64K";
/// Sizes between the powers of two, where protocols and rails change: the window's lower end, and
/// the thresholds at 8, 12 and 16 KiB.
const BETWEEN: &str = "1536,3K:48K,10K,13K,14K,17K";

/// The results of all experiments.
pub(crate) struct Results {
    document: Document,
    curves: Curves,
}

/// Runs all experiments. `command` is the executable that starts jobs and workers.
pub(crate) fn run(command: &Path, quick: bool) -> Result<Results> {
    let document = Document::read("dual-rail", DOCUMENT)?;
    let sizes = format!("{},{BETWEEN}", if quick { QUICK } else { SIZES });
    let experiments: Vec<Experiment> = MPI
        .iter()
        .flat_map(|benchmark| {
            document.curves.iter().map(|curve| Experiment {
                label: curve.name.clone(),
                fabric: curve.fabric.clone(),
                benchmark: benchmark.name(),
                ranks: 2,
                sizes: sizes.clone(),
                iterations: None,
                settings: document.settings(curve).into_iter().collect(),
            })
        })
        .collect();
    let measured = bench::modelled::run(command, &experiments)?;
    let mut curves = Curves::default();
    for (benchmark, part) in MPI.iter().zip(measured.chunks(document.curves.len())) {
        curves.0.insert(*benchmark, part.to_vec());
    }
    for benchmark in VERBS {
        let one_rail = document.curves.iter();
        let one_rail = one_rail.filter(|curve| ONE_RAIL.contains(&curve.name.as_str()));
        let measure = |curve: &document::Configuration| {
            verbs::curve(command, &curve.name, &curve.fabric, benchmark.name(), None)
        };
        let measured: Result<Vec<_>> = one_rail.map(measure).collect();
        curves.0.insert(benchmark, measured?);
    }
    Ok(Results { document, curves })
}

/// The judgement of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    /// All its checks hold.
    Reproduced,
    /// Some check fails.
    NotReproduced,
    /// It is part of the experiments, so they cannot confirm it.
    Setting,
    /// It contradicts another statement, or physics.
    Contradiction,
    /// No experiment can repeat it.
    NotModelled,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::NotReproduced => "not reproduced",
            Verdict::Setting => "setting",
            Verdict::Contradiction => "contradiction",
            Verdict::NotModelled => "not modelled",
        }
    }
}

/// A statement with its verdict.
#[derive(Debug, Serialize)]
struct Judged<'a> {
    claim: &'a str,
    verdict: Verdict,
    /// The figures that decide it, or the reason that there are none.
    measured: String,
    /// Whether the checks hold; for a contradiction too.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(skip)]
    about: &'a str,
}

/// The verdicts on all statements.
fn judge<'a>(document: &'a Document, curves: &Curves) -> Vec<Judged<'a>> {
    document
        .claims
        .iter()
        .map(|claim| judged(claim, curves))
        .collect()
}

fn judged<'a>(claim: &'a Claim, curves: &Curves) -> Judged<'a> {
    let findings: Vec<_> = claim.checks.iter().map(|c| c.decide(curves)).collect();
    let holds = findings.iter().all(|finding| finding.holds);
    let parts = findings.iter().map(|finding| finding.measured.as_str());
    let mut measured = parts.collect::<Vec<_>>().join("; ");
    let verdict = match claim {
        Claim {
            setting: Some(reason),
            ..
        } => {
            measured.clone_from(reason);
            Verdict::Setting
        }
        Claim {
            not_modelled: Some(reason),
            ..
        } => {
            measured.clone_from(reason);
            Verdict::NotModelled
        }
        Claim {
            contradicts: Some(what),
            ..
        } => {
            measured += &format!("; contradicts {what}");
            Verdict::Contradiction
        }
        _ if holds => Verdict::Reproduced,
        _ => Verdict::NotReproduced,
    };
    let checked = !claim.checks.is_empty();
    Judged {
        claim: &claim.id,
        verdict,
        measured,
        holds: checked.then_some(holds),
        role: checked.then_some(claim.role),
        about: &claim.about,
    }
}

#[cfg(test)]
mod tests;
