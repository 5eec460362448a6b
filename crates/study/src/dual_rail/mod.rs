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
use bench::modelled::{Curve, Experiment};
use serde::Serialize;

use crate::claims::Role;
use crate::verbs;
use check::{Check, Finding};
use curves::{Benchmark, Curves};
use document::{Claim, Document};
pub(crate) use pictures::draw;
pub(crate) use show::{json, text};

const DOCUMENT: &str = include_str!("../../data/dual-rail.toml");

/// The benchmarks of MPI.
const MPI: [Benchmark; 3] = [Benchmark::Latency, Benchmark::Bw, Benchmark::Bibw];
/// The benchmarks below MPI, and the configurations that run them: one rail each.
const VERBS: [Benchmark; 2] = [Benchmark::WriteLat, Benchmark::WriteBw];
const ONE_RAIL: [&str; 3] = ["QDR", "FDR", "FDR-slow"];
/// The powers of two that are measured, and with `--quick` those around the thresholds. Iterations
/// of short messages differ a little, so these take more.
const SHORT: [&str; 2] = ["1,8:64K", "8,1K:64K"];
const LONG: &str = "128K,256K,1M,4M";
const ITERATIONS: usize = 20;
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
    let short = format!("{},{BETWEEN}", SHORT[usize::from(quick)]);
    let mut parts = vec![(short.as_str(), Some(ITERATIONS))];
    if !quick {
        parts.push((LONG, None));
    }
    let mut experiments = Vec::new();
    for benchmark in MPI {
        for curve in &document.curves {
            experiments.extend(parts.iter().map(|(sizes, iterations)| Experiment {
                label: curve.name.clone(),
                fabric: curve.fabric.clone(),
                benchmark: benchmark.name(),
                ranks: 2,
                sizes: (*sizes).into(),
                iterations: *iterations,
                settings: document.settings(curve).into_iter().collect(),
            }));
        }
    }
    let measured = bench::modelled::run(command, &experiments)?;
    let mut measured = measured.chunks(parts.len()).map(joined);
    let mut curves = Curves::default();
    for benchmark in MPI {
        let all = measured.by_ref().take(document.curves.len());
        curves.0.insert(benchmark, all.collect());
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

/// The parts of a curve as one.
fn joined(parts: &[Curve]) -> Curve {
    Curve {
        label: parts[0].label.clone(),
        points: parts.iter().flat_map(|part| part.points.clone()).collect(),
    }
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
    /// Whether the checks hold with the other reading of a machine, and the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_reading: Option<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(skip)]
    about: &'a str,
}

/// The verdicts on all statements.
fn judge<'a>(document: &'a Document, curves: &Curves) -> Vec<Judged<'a>> {
    let [old, new] = &document.other_reading;
    let judged = |claim: &'a Claim| {
        let is_checked = !claim.checks.is_empty();
        let found = is_checked.then(|| all_of(claim.checks.iter(), curves));
        let (verdict, measured) = verdict(claim, found.as_ref());
        let others: Vec<_> = claim
            .checks
            .iter()
            .map(|check| check.with(old, new))
            .collect();
        let others = others.iter().any(Option::is_some).then(|| {
            let checks = claim.checks.iter().zip(&others);
            all_of(
                checks.map(|(check, other)| other.as_ref().unwrap_or(check)),
                curves,
            )
        });
        Judged {
            claim: &claim.id,
            verdict,
            measured,
            holds: found.map(|found| found.holds),
            other_reading: others,
            role: is_checked.then_some(claim.role),
            about: &claim.about,
        }
    };
    document.claims.iter().map(judged).collect()
}

/// The findings of several checks as one.
fn all_of<'a>(checks: impl Iterator<Item = &'a Check>, curves: &Curves) -> Finding {
    let findings: Vec<Finding> = checks.map(|check| check.decide(curves)).collect();
    let parts = findings.iter().map(|finding| finding.measured.as_str());
    Finding {
        holds: findings.iter().all(|finding| finding.holds),
        measured: parts.collect::<Vec<_>>().join("; "),
    }
}

/// The verdict on a statement, and the figures or reasons for it. `found`: what its checks found.
fn verdict(claim: &Claim, found: Option<&Finding>) -> (Verdict, String) {
    if let Some(reason) = &claim.setting {
        return (Verdict::Setting, reason.clone());
    }
    let Some(Finding { holds, measured }) = found else {
        let reason = claim.not_modelled.clone();
        return (Verdict::NotModelled, reason.unwrap_or_default());
    };
    match &claim.contradicts {
        Some(what) => (
            Verdict::Contradiction,
            format!("{measured}; contradicts {what}"),
        ),
        None if *holds => (Verdict::Reproduced, measured.clone()),
        None => (Verdict::NotReproduced, measured.clone()),
    }
}

#[cfg(test)]
mod tests;
