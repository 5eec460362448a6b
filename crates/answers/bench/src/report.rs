//! `fishplate bench table`: all benchmarks with a threshold, compared with other libraries, and a
//! report as Markdown.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use conditions::Machine;
use results::arguments::usage;
use results::output::OutputFile;
use results::sizes::size_label;
use results::table::{distinct, number, ratio};
use results::{Console, Unit, stats};

use crate::benchmark::Benchmark;
use crate::cli::{ROUNDS, TableOptions};
use crate::limits;
use crate::measurement::Measurement;
use crate::plan::WorkerPlan;
use crate::rounds::{Case, Rounds};
use crate::sizes::SizeRange;
use crate::table::best;
use crate::thresholds::{RuleOutcome, judge};

pub(crate) struct Report {
    pub(crate) all: Vec<Measurement>,
    /// The number of thresholds that results missed.
    pub(crate) missed: usize,
    /// The number of thresholds that were checked.
    pub(crate) rules: usize,
}

pub(crate) fn run(command: &Path, options: &TableOptions) -> Result<Report> {
    if options.choice.modelled() {
        let why = anyhow!("--fabric is not for table, which measures this machine");
        return Err(usage(why));
    }
    let libraries = options.choice.libraries(command).map_err(usage)?;
    if libraries.len() < 2 {
        let why = anyhow!("table compares libraries: name at least one other with --against");
        return Err(usage(why));
    }
    let page = options.markdown.as_deref();
    let page = page.map(|path| OutputFile::open("--markdown", path));
    let page = page.transpose().map_err(|why| anyhow!(why))?;
    let rounds = Rounds {
        command,
        libraries: &libraries,
        rounds: options.choice.rounds(ROUNDS),
        timeout: options.choice.timeout().map_err(usage)?,
    };
    let cases = cases()?;
    let steps = rounds.steps(&cases) + rounds.rounds * limits::STEPS;
    let mut console = Console::new(steps);
    let versions = rounds.versions(&mut console)?;
    // The machine's speed drifts, so its limits are also measured in every round.
    let all = rounds.run(&cases, &mut console, |console| {
        limits::measure(command, console)
    })?;
    drop(console);

    let verdicts = judge(&all, &libraries[0].label);
    if let Some(page) = page {
        let labels: Vec<&str> = libraries
            .iter()
            .map(|library| library.label.as_str())
            .collect();
        let text = markdown(&machine(), &labels, &versions, &verdicts, &all);
        let path = page.path();
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        page.written();
    }
    if !options.output.json {
        eprint!("{}", plain(&verdicts));
    }
    let missed = verdicts.iter().filter(|verdict| !verdict.met).count();
    Ok(Report {
        all,
        missed,
        rules: verdicts.len(),
    })
}

fn cases() -> Result<Vec<Case>> {
    let eight = SizeRange::exactly(8);
    let case = |benchmark, ranks, range: Option<&SizeRange>| -> Result<Case> {
        Ok(Case {
            plan: WorkerPlan::new(benchmark, range)?,
            ranks,
        })
    };
    let mut cases = vec![
        case(Benchmark::Latency, 2, None)?,
        case(Benchmark::MbwMr, 2, Some(&eight))?,
        case(Benchmark::Bw, 2, None)?,
        case(Benchmark::Bibw, 2, None)?,
    ];
    for ranks in [2, 4, 8] {
        cases.push(case(Benchmark::collective("barrier"), ranks, None)?);
        cases.push(case(
            Benchmark::collective("allreduce"),
            ranks,
            Some(&eight),
        )?);
    }
    for ranks in [2, 8] {
        cases.push(case(Benchmark::Init, ranks, None)?);
    }
    Ok(cases)
}

/// The processor, the number of cores and the kernel of this machine.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let Machine { cpu, kernel, .. } = Machine::now();
    format!("{cpu}, {cores} cores for this process, {kernel}")
}

/// The outcomes of all thresholds as text for a terminal.
fn plain(verdicts: &[RuleOutcome]) -> String {
    verdicts.iter().fold(String::new(), |mut text, v| {
        let mark = if v.met { "met    " } else { "NOT MET" };
        let _ = write!(
            text,
            "{mark} {}: {} against {}",
            v.what, v.ours, v.reference
        );
        let _ = write!(text, ", ratio {}, wanted {}", v.ratio, v.wanted);
        text + if v.remark.is_empty() { "" } else { "; " } + &v.remark + "\n"
    })
}

fn markdown(
    machine: &str,
    labels: &[&str],
    versions: &[String],
    verdicts: &[RuleOutcome],
    all: &[Measurement],
) -> String {
    let mut text =
        format!("# Performance\n\nMeasured on {machine}. Libraries, run alternately:\n\n");
    for (label, version) in labels.iter().zip(versions) {
        let _ = writeln!(text, "- {label}: {version}");
    }
    let rounds = all
        .iter()
        .find(|m| m.label == labels[0])
        .map_or(1, |m| m.rounds.len());
    let _ = writeln!(
        text,
        "\nMedians of {rounds} rounds. By `fishplate bench table`; the machine drifts, so only \
         figures of one run compare.\n\n## Thresholds\n"
    );
    let header = ["what", "wanted", labels[0], "reference", "ratio", "met", ""];
    let rows = verdicts.iter().map(|v| {
        let met = if v.met { "yes" } else { "**no**" };
        let cells = [
            &v.what,
            &v.wanted,
            &v.ours,
            &v.reference,
            &v.ratio,
            met,
            &v.remark,
        ];
        cells.map(str::to_owned).to_vec()
    });
    text += &grid(&header, rows);

    for benchmark in ["latency", "bw", "bibw"] {
        text += &by_size(benchmark, labels, all);
    }
    text += &others(labels, all);
    text += &limits_table(all);
    text
}

/// A Markdown table of one benchmark, with a row for each size.
fn by_size(benchmark: &str, labels: &[&str], all: &[Measurement]) -> String {
    let own: Vec<&Measurement> = all.iter().filter(|m| m.benchmark == benchmark).collect();
    let Some(unit) = own.first().map(|m| m.unit) else {
        return String::new();
    };
    let bandwidth = unit == Unit::MegabytesPerSecond;
    let mut header = vec!["size"];
    header.extend(labels);
    header.push("/ best peer");
    if bandwidth {
        header.push("of memcpy");
    }
    let rows = distinct(own.iter().map(|m| m.size))
        .into_iter()
        .map(|size| {
            let medians = medians(&own, labels, |m| m.size == size);
            let mut cells = vec![size_label(size)];
            cells.extend(medians.iter().map(|&value| number(value, unit)));
            cells.push(ratio(medians[0] / best(&medians[1..], unit)));
            if bandwidth {
                let copy = all
                    .iter()
                    .find(|m| m.benchmark == "limits/memcpy" && m.size == size);
                let share = copy.map_or(f64::NAN, |copy| medians[0] / copy.median());
                cells.push(if share.is_finite() {
                    format!("{:.0} %", share * 100.0)
                } else {
                    "–".into()
                });
            }
            cells
        });
    format!(
        "\n## {benchmark}, 2 ranks, {}\n\n{}",
        unit.shown(),
        grid(&header, rows)
    )
}

/// A Markdown table of the benchmarks with a single size.
fn others(labels: &[&str], all: &[Measurement]) -> String {
    let single = |m: &&Measurement| {
        !m.benchmark.starts_with("limits/")
            && !matches!(m.benchmark.as_str(), "latency" | "bw" | "bibw")
    };
    let own: Vec<&Measurement> = all.iter().filter(single).collect();
    let mut header = vec!["what", "ranks"];
    header.extend(labels);
    header.push("/ best peer");
    let keys = distinct(
        own.iter()
            .map(|m| (m.benchmark.as_str(), m.ranks, m.size, m.unit)),
    );
    let rows = keys.into_iter().map(|(benchmark, ranks, size, unit)| {
        let medians = medians(&own, labels, |m| {
            m.benchmark == benchmark && m.ranks == ranks
        });
        let size = if size > 0 {
            format!(", {}", size_label(size))
        } else {
            String::new()
        };
        let mut cells = vec![
            format!("{benchmark}{size}, {}", unit.shown()),
            ranks.to_string(),
        ];
        cells.extend(medians.iter().map(|&value| number(value, unit)));
        cells.push(ratio(medians[0] / best(&medians[1..], unit)));
        cells
    });
    format!(
        "\n## Rates, collectives and starting\n\n{}",
        grid(&header, rows)
    )
}

fn medians(own: &[&Measurement], labels: &[&str], fits: impl Fn(&Measurement) -> bool) -> Vec<f64> {
    let median = |label: &&str| {
        own.iter()
            .find(|m| m.label == *label && fits(m))
            .map_or(f64::NAN, |m| m.median())
    };
    labels.iter().map(median).collect()
}

/// A Markdown table of the machine's limits, with a row for each limit and size.
fn limits_table(all: &[Measurement]) -> String {
    let limits = all
        .iter()
        .filter_map(|m| Some((m.benchmark.strip_prefix("limits/")?, m)));
    let rows = limits.map(|(name, m)| {
        let show = |value| format!("{} {}", number(value, m.unit), m.unit.shown());
        let (least, most) = (stats::min(&m.rounds), stats::max(&m.rounds));
        vec![
            name.to_owned(),
            size_label(m.size),
            show(m.median()),
            show(least),
            show(most),
        ]
    });
    format!(
        "\n## What the machine allows\n\n{}",
        grid(&["limit", "size", "median", "least", "most"], rows)
    )
}

/// A Markdown table whose first column is aligned to the left and all others to the right.
fn grid(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(
        &header
            .iter()
            .map(|cell| cell.to_string())
            .collect::<Vec<_>>(),
    );
    text += &format!("| --- |{}\n", " ---: |".repeat(header.len() - 1));
    rows.fold(text, |text, cells| text + &line(&cells))
}
