//! Benchmarks below MPI: `fishplate perf` on a modelled machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use bench::modelled::Curve;
use serde_json::Value;

/// Medians by size, measured by `fishplate perf`: at all its sizes, or at one.
pub(crate) fn curve(
    command: &Path,
    label: &str,
    fabric: &str,
    benchmark: &str,
    size: Option<usize>,
) -> Result<Curve> {
    let mut words: Vec<String> = ["perf", benchmark, "--fabric", fabric, "--json"]
        .map(String::from)
        .into();
    words.extend(
        size.iter()
            .flat_map(|size| ["--size".into(), size.to_string()]),
    );
    let shown = format!("fishplate {}", words.join(" "));
    let said = Command::new(command)
        .args(&words)
        .output()
        .with_context(|| format!("cannot start {}", command.display()))?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr);
        bail!("{shown} failed ({}): {}", said.status, why.trim());
    }
    let lines = serde_json::Deserializer::from_slice(&said.stdout).into_iter::<Value>();
    let mut points = Vec::new();
    for line in lines {
        let line = line.with_context(|| format!("{shown} printed no JSON"))?;
        let size = line["size"].as_u64();
        let point = size.zip(line["median"].as_f64());
        let (size, median) = point.with_context(|| format!("{shown} printed no median"))?;
        points.push((size as usize, median));
    }
    Ok(Curve {
        label: label.into(),
        points,
    })
}
