//! The results as tables and as lines of JSON.

use anyhow::Result;
use results::sizes::size_label;
use results::table::{aligned, ratio, significant};
use serde_json::json;

use super::answer::{ranges, sentence, words};
use super::curves::Benchmark;
use super::{Judged, MPI, Results, judge};

/// Two curves whose comparison answers the question, and the policy of the first one.
pub(super) struct Comparison {
    pub(super) policy: &'static str,
    pub(super) rails: &'static str,
    pub(super) fdr: &'static str,
}

/// Each policy against FDR with the same settings.
pub(super) const COMPARISONS: [Comparison; 2] = [
    Comparison {
        policy: "default striping",
        rails: "stripe",
        fdr: "FDR",
    },
    Comparison {
        policy: "adaptive",
        rails: "adaptive",
        fdr: "FDR, own",
    },
];

/// One JSON object per line: the statements, then the answer by size.
pub(crate) fn json(results: &Results) -> Result<String> {
    let mut lines = Vec::new();
    for judged in judge(&results.document, &results.curves) {
        lines.push(serde_json::to_string(&judged)?);
    }
    for comparison in &COMPARISONS {
        for benchmark in MPI {
            let answer = answer(results, benchmark, comparison);
            lines.push(
                json!({"benchmark": benchmark.name(), "policy": comparison.policy, "answer": answer})
                    .to_string(),
            );
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// All tables, and the answer.
pub(crate) fn text(results: &Results) -> String {
    let mut text = format!("{}\n\n", results.document.document);
    let rows = results.document.curves.iter();
    let rows = rows.map(|curve| {
        vec![
            curve.name.clone(),
            curve.fabric.clone(),
            curve.about.clone(),
        ]
    });
    let header = ["curve", "machine", ""].map(String::from).to_vec();
    text += &aligned(header, rows.collect(), |_| true);
    for benchmark in MPI {
        text += &format!(
            "\n{}, {}\n{}",
            benchmark.title(),
            benchmark.unit().shown(),
            by_size(results, benchmark)
        );
    }
    text += &format!("\n{}", claims(&judge(&results.document, &results.curves)));
    text += "\nIs dual-rail QDR better than FDR? By size (differences up to 2 % count as equal):\n";
    let mut rows = Vec::new();
    for comparison in &COMPARISONS {
        for benchmark in MPI {
            rows.push(vec![
                comparison.policy.into(),
                benchmark.title().to_lowercase(),
                answer(results, benchmark, comparison),
            ]);
        }
    }
    let header = ["2 x QDR with", "", "better"].map(String::from).to_vec();
    text += &aligned(header, rows, |_| true);
    text += "\n";
    for comparison in &COMPARISONS {
        let curves = [comparison.rails, comparison.fdr];
        text += &sentence(&results.curves, comparison.policy, curves);
        text += "\n";
    }
    text
}

fn answer(results: &Results, of: Benchmark, comparison: &Comparison) -> String {
    let ranges = ranges(&results.curves, of, comparison.rails, comparison.fdr);
    words(&ranges, ["2 x QDR", "FDR"])
}

/// A table of the values of all curves, and of the quotients that answer the question.
fn by_size(results: &Results, of: Benchmark) -> String {
    let curves = &results.document.curves;
    let mut header = vec!["size".to_owned()];
    header.extend(curves.iter().map(|curve| curve.name.clone()));
    let pairs = COMPARISONS.iter();
    header.extend(pairs.map(|pair| format!("{} / {}", pair.rails, pair.fdr)));
    let Some(first) = curves
        .first()
        .and_then(|c| results.curves.curve(of, &c.name))
    else {
        return String::new();
    };
    let row = |&(size, _): &(usize, f64)| {
        let at = |name: &str| results.curves.at(of, name, size).unwrap_or(f64::NAN);
        let mut row = vec![size_label(size)];
        row.extend(curves.iter().map(|curve| significant(at(&curve.name))));
        let pairs = COMPARISONS.iter();
        row.extend(pairs.map(|pair| ratio(at(pair.rails) / at(pair.fdr))));
        row
    };
    let rows = first.points.iter().map(row).collect();
    aligned(header, rows, |_| false)
}

/// A table of the statements, and one of those that read the curve of which there is another.
fn claims(all: &[Judged]) -> String {
    let row = |judged: &Judged| {
        vec![
            judged.claim.into(),
            judged.about.into(),
            judged.verdict.name().into(),
            judged.measured.clone(),
            judged.role.map_or("", |role| role.name()).into(),
        ]
    };
    let header = ["claim", "", "verdict", "measured", "role"].map(String::from);
    let mut text = aligned(header.to_vec(), all.iter().map(row).collect(), |_| true);
    let changed = all.iter().filter_map(|judged| {
        let other = judged.other_reading.as_ref()?;
        let holds = if other.holds {
            "holds"
        } else {
            "does not hold"
        };
        Some(vec![
            judged.claim.into(),
            holds.into(),
            other.measured.clone(),
        ])
    });
    let header = ["claim", "other reading of FDR", "measured"].map(String::from);
    text += "\n";
    text += &aligned(header.to_vec(), changed.collect(), |_| true);
    text
}
