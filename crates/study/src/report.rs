//! Results of a study, as tables and as lines of JSON.

use anyhow::Result;
use results::table::aligned;

use crate::claims::{Findings, ScoredClaim};
use crate::rdma_channel::Results;

/// One JSON object per line for each claim.
pub(crate) fn json(scored: &[ScoredClaim]) -> Result<String> {
    let lines = scored.iter().map(serde_json::to_string);
    Ok(lines
        .map(|line| Ok(line? + "\n"))
        .collect::<Result<Vec<_>>>()?
        .concat())
}

/// A table of the designs with their best figures.
pub(crate) fn curves(results: &Results) -> String {
    let header = [
        "design",
        "latency, us",
        "peak, MB/s",
        "LU, ms",
        "IS, ms",
        "",
    ];
    let number =
        |value: Option<f64>, digits| value.map_or("-".into(), |value| format!("{value:.digits$}"));
    let rows = results.paper.designs.iter().map(|design| {
        let mut row = vec![
            design.name.clone(),
            number(results.latency(&design.name), 2),
            number(results.peak(&design.name), 0),
        ];
        let times = results.times(&design.name).into_iter();
        row.extend(times.map(|time| number(time.map(|time| time / 1e3), 2)));
        row.push(design.about.clone());
        row
    });
    let header = header.map(String::from).to_vec();
    aligned(header, rows.collect(), |column| {
        ![1, 2, 3, 4].contains(&column)
    })
}

/// A table of the claims, published figures beside predicted ones.
pub(crate) fn claims(scored: &[ScoredClaim]) -> String {
    let header = [
        "claim",
        "",
        "published",
        "predicted",
        "unit",
        "error",
        "verdict",
        "role",
    ];
    let rows = scored.iter().map(|claim| {
        let shown = |value: f64| match claim.unit.as_str() {
            "MB/s" | "B" => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        };
        vec![
            claim.claim.clone(),
            claim.about.clone(),
            shown(claim.published),
            claim.predicted.map_or("-".into(), shown),
            claim.unit.clone(),
            claim
                .error_percent
                .map_or("-".into(), |error| format!("{error:+.1} %")),
            claim.verdict.name().into(),
            claim.role.name().into(),
        ]
    });
    let header = header.map(String::from).to_vec();
    aligned(header, rows.collect(), |column| {
        ![2, 3, 5].contains(&column)
    })
}
