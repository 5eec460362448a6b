//! The study of MPICH2's RDMA channel: four designs of the channel and a rendezvous above it, on
//! the machine of the paper.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bench::modelled::{Curve, Experiment};

use crate::claims::{Findings, Paper};
use crate::verbs;

const PAPER: &str = include_str!("../data/rdma-channel.toml");
/// Message sizes of the curves of latency and of bandwidth.
const LATENCY: &str = "4:64K";
const BANDWIDTH: &str = "4:1M";
/// The message size for the choice of the chunk size.
const LONG: &str = "1M:1M";
/// Benchmarks that send the messages of whole programs on all nodes. `usual` is the size closest to
/// class A of the NAS parallel benchmarks on eight nodes (LU: 5 numbers of 8 bytes for each of 16
/// or 32 cells; IS: 2^23 keys of 4 bytes).
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
/// Timed iterations of a kernel: in virtual time all but the first take equally long.
const ITERATIONS: usize = 3;
/// Bandwidths within this share of the highest count as equal to it.
const PLATEAU: f64 = 0.02;
/// Chunk sizes that are compared, in KiB.
const CHUNKS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

struct Kernel {
    benchmark: &'static str,
    sizes: &'static str,
    usual: usize,
}

/// The results of all experiments.
pub(crate) struct Results {
    pub(crate) paper: Paper,
    /// Latency by size, for each design.
    pub(crate) latency: Vec<Curve>,
    /// Bandwidth by size, for each design.
    pub(crate) bandwidth: Vec<Curve>,
    /// Latencies of RDMA write and of send, without MPI.
    pub(crate) verbs: [f64; 2],
    /// Time by size of each kernel, for each design.
    pub(crate) kernels: Vec<Vec<Curve>>,
    /// Bandwidth of a long message by chunk size in bytes.
    pub(crate) chunks: Curve,
}

/// The settings that select a design of the library.
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

/// Runs all experiments. `command` is the executable that starts jobs and workers.
pub(crate) fn run(command: &Path) -> Result<Results> {
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

/// The latency of 8 bytes measured by `fishplate perf`, in microseconds.
fn verb(command: &Path, fabric: &str, benchmark: &str) -> Result<f64> {
    let curve = verbs::curve(command, benchmark, fabric, benchmark, Some(8))?;
    curve
        .at(8)
        .with_context(|| format!("fishplate perf {benchmark} printed no latency of 8 bytes"))
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

    /// The ratio of the kernel with the greatest difference.
    fn kernels(&self, over: &str, under: &str) -> Option<f64> {
        let pairs = self.times(over).into_iter().zip(self.times(under));
        let ratios: Option<Vec<f64>> = pairs.map(|(over, under)| Some(over? / under?)).collect();
        let far = |ratio: &f64| ratio.ln().abs();
        ratios?
            .into_iter()
            .max_by(|one, other| far(one).total_cmp(&far(other)))
    }

    /// The smallest chunk on the plateau: larger chunks gain nothing and start later.
    fn best_chunk(&self) -> Option<f64> {
        let enough = self.chunks.peak()? * (1.0 - PLATEAU);
        let mut chunks = self.chunks.points.iter();
        let first = chunks.find(|(_, bandwidth)| *bandwidth >= enough)?;
        Some(first.0 as f64)
    }
}

impl Results {
    /// Times of the kernels at their usual sizes, in microseconds.
    pub(crate) fn times(&self, design: &str) -> Vec<Option<f64>> {
        let time = |(kernel, curves): (&Kernel, &Vec<Curve>)| {
            let curve = curves.iter().find(|curve| curve.label == design)?;
            curve.at(kernel.usual)
        };
        KERNELS.iter().zip(&self.kernels).map(time).collect()
    }

    /// Draws the curves into a folder and returns the paths of the files.
    pub(crate) fn draw(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        let (sweep, size) = (std::slice::from_ref(&self.chunks), "message size");
        let plots = [
            ("latency", "Latency of the designs", size, &self.latency[..]),
            ("bw", "Bandwidth of the designs", size, &self.bandwidth[..]),
            ("bw", "Bandwidth by the chunk", "chunk size", sweep),
            (
                "sweep",
                "Messages of NAS LU, all nodes",
                "message of a plane",
                &self.kernels[0],
            ),
            (
                "sort",
                "Messages of NAS IS, all nodes",
                "part of a rank",
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
