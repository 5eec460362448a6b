//! The study of MPICH2's RDMA channel: four designs of it and a rendezvous one level up, on the machine of the paper.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bench::modelled::{Curve, Experiment};

use crate::claims::{Findings, Paper};

const PAPER: &str = include_str!("../data/rdma-channel.toml");
/// Message sizes of the curves of latency and of bandwidth.
const LATENCY: &str = "4:64K";
const BANDWIDTH: &str = "4:1M";
/// The message whose bandwidth the chunk size is chosen by.
const LONG: &str = "1M:1M";
/// What kernels of whole programs send, on all nodes: the benchmark, its sizes, and that which comes closest to class A of
/// the NAS parallel benchmarks on eight nodes (LU: 5 numbers of 8 bytes for each of 16 or 32 cells; IS: 2^23 keys of 4 bytes).
const KERNELS: [Kernel; 2] = [
    Kernel {
        benchmark: "sweep",
        sizes: "256:4K",
        usual: 1 << 10,
    },
    Kernel {
        benchmark: "sort",
        sizes: "32K:1M",
        usual: 512 << 10,
    },
];
const NODES: usize = 8;
/// Every iteration takes the same, but for the first.
const ITERATIONS: usize = 3;
/// Bandwidths that differ by no more than this are equally good.
const PLATEAU: f64 = 0.02;
const CHUNKS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

struct Kernel {
    benchmark: &'static str,
    sizes: &'static str,
    usual: usize,
}

/// Everything that was run.
pub struct Results {
    pub paper: Paper,
    /// For each design.
    pub latency: Vec<Curve>,
    pub bandwidth: Vec<Curve>,
    /// Of verbs, without MPI: RDMA write, send and receive.
    pub verbs: [f64; 2],
    /// Times of each kernel, for each design.
    pub kernels: Vec<Vec<Curve>>,
    /// Bandwidth of a long message by the chunk size, in bytes.
    pub chunks: Curve,
}

/// The settings that make the library work by a design.
fn settings(design: &str) -> Vec<(String, String)> {
    let (channel, rendezvous) = match design {
        "zero-copy" => ("zero-copy", "read"),
        "rput" => ("zero-copy", "write"),
        other => (other, "auto"),
    };
    vec![
        ("FISHPLATE_RDMA_DESIGN".into(), channel.into()),
        ("FISHPLATE_RENDEZVOUS".into(), rendezvous.into()),
    ]
}

/// Runs it all. `command` is the executable that starts jobs and workers.
pub fn run(command: &Path) -> Result<Results> {
    let paper = Paper::read("rdma-channel", PAPER)?;
    let experiment = |design: &str, benchmark, sizes: &str| Experiment {
        label: design.into(),
        fabric: paper.fabric.clone(),
        benchmark,
        ranks: 2,
        sizes: sizes.into(),
        iterations: None,
        settings: settings(design),
    };
    let mut all = Vec::new();
    for (benchmark, sizes) in [("latency", LATENCY), ("bw", BANDWIDTH)] {
        for design in &paper.designs {
            all.push(experiment(&design.name, benchmark, sizes));
        }
    }
    for kernel in &KERNELS {
        for design in &paper.designs {
            all.push(Experiment {
                ranks: NODES,
                iterations: Some(ITERATIONS),
                ..experiment(&design.name, kernel.benchmark, kernel.sizes)
            });
        }
    }
    for chunk in CHUNKS {
        let mut sweep = experiment("pipeline", "bw", LONG);
        let chunk = format!("{chunk}K");
        sweep.settings.push(("FISHPLATE_RDMA_CHUNK".into(), chunk));
        all.push(sweep);
    }
    let mut curves = bench::modelled::run(command, &all)?.into_iter();
    let designs = paper.designs.len();
    let latency: Vec<Curve> = curves.by_ref().take(designs).collect();
    let bandwidth: Vec<Curve> = curves.by_ref().take(designs).collect();
    let kernels = KERNELS.map(|_| curves.by_ref().take(designs).collect());
    let points = CHUNKS.iter().zip(curves);
    let points = points.map(|(chunk, curve)| (chunk << 10, curve.peak().unwrap_or(0.0)));
    let verb = |benchmark| verb(command, &paper.fabric, benchmark);
    Ok(Results {
        verbs: [verb("write-lat")?, verb("send-lat")?],
        chunks: Curve {
            label: "1 MiB messages".into(),
            points: points.collect(),
        },
        paper,
        latency,
        bandwidth,
        kernels: kernels.into(),
    })
}

/// The latency of 8 bytes by a benchmark of devices, in microseconds.
fn verb(command: &Path, fabric: &str, benchmark: &str) -> Result<f64> {
    let words = [
        "perf", benchmark, "--fabric", fabric, "--size", "8", "--json",
    ];
    let said = Command::new(command)
        .args(words)
        .output()
        .with_context(|| format!("cannot start {}", command.display()))?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr);
        bail!(
            "{} ended with {}: {}",
            words.join(" "),
            said.status,
            why.trim()
        );
    }
    let line: serde_json::Value = serde_json::from_slice(&said.stdout)
        .with_context(|| format!("{} said no JSON", words.join(" ")))?;
    line["median"]
        .as_f64()
        .with_context(|| format!("{} said no median", words.join(" ")))
}

impl Findings for Results {
    fn latency(&self, design: &str) -> Option<f64> {
        let curve = self.latency.iter().find(|curve| curve.label == design)?;
        curve.at(self.paper.small)
    }

    fn peak(&self, design: &str) -> Option<f64> {
        let curve = self.bandwidth.iter().find(|curve| curve.label == design)?;
        curve.peak()
    }

    fn verbs(&self) -> Option<f64> {
        let [write, send] = self.verbs;
        Some(send / write)
    }

    /// Of the kernels that with the greatest difference.
    fn kernels(&self, over: &str, under: &str) -> Option<f64> {
        let pairs = self.times(over).into_iter().zip(self.times(under));
        let ratios: Option<Vec<f64>> = pairs.map(|(over, under)| Some(over? / under?)).collect();
        let far = |ratio: &f64| ratio.ln().abs();
        ratios?
            .into_iter()
            .max_by(|one, other| far(one).total_cmp(&far(other)))
    }

    /// The smallest that reaches the plateau: larger chunks gain nothing and begin later.
    fn best_chunk(&self) -> Option<f64> {
        let enough = self.chunks.peak()? * (1.0 - PLATEAU);
        let mut chunks = self.chunks.points.iter();
        let first = chunks.find(|(_, bandwidth)| *bandwidth >= enough)?;
        Some(first.0 as f64)
    }
}

impl Results {
    /// Of the kernels at their usual sizes, in microseconds.
    pub fn times(&self, design: &str) -> Vec<Option<f64>> {
        let time = |(kernel, curves): (&Kernel, &Vec<Curve>)| {
            let curve = curves.iter().find(|curve| curve.label == design)?;
            curve.at(kernel.usual)
        };
        KERNELS.iter().zip(&self.kernels).map(time).collect()
    }

    /// Draws the curves into a folder; which files there are then.
    pub fn draw(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let (sweep, size) = (std::slice::from_ref(&self.chunks), "message size");
        let plots = [
            ("latency", "Latency of the designs", size, &self.latency[..]),
            ("bw", "Bandwidth of the designs", size, &self.bandwidth[..]),
            ("bw", "Bandwidth by the chunk", "chunk size", sweep),
            (
                "sweep",
                "What NAS LU sends, all nodes",
                "message of a plane",
                &self.kernels[0],
            ),
            (
                "sort",
                "What NAS IS sends, all nodes",
                "part for a rank",
                &self.kernels[1],
            ),
        ];
        let names = ["latency", "bandwidth", "chunk", "sweep", "sort"];
        let mut files = Vec::new();
        for (name, (benchmark, title, across, curves)) in names.into_iter().zip(plots) {
            let file = folder.join(name).with_extension("svg");
            let title = format!("{title}, {}", self.paper.fabric);
            bench::modelled::draw(benchmark, &title, across, curves, &file)?;
            files.push(file);
        }
        Ok(files)
    }
}
