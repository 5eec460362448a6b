//! Measured curves by benchmark and configuration.

use std::collections::BTreeMap;

use bench::modelled::Curve;
use results::Unit;
use serde::Deserialize;

/// A benchmark of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Benchmark {
    Latency,
    Bw,
    Bibw,
    /// Latency of an RDMA write, without MPI.
    WriteLat,
    /// Bandwidth of RDMA writes, without MPI.
    WriteBw,
}

impl Benchmark {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Benchmark::Latency => "latency",
            Benchmark::Bw => "bw",
            Benchmark::Bibw => "bibw",
            Benchmark::WriteLat => "write-lat",
            Benchmark::WriteBw => "write-bw",
        }
    }

    /// The name in titles.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Benchmark::Latency => "Latency",
            Benchmark::Bw => "Bandwidth",
            Benchmark::Bibw => "Bidirectional bandwidth",
            Benchmark::WriteLat => "Latency of RDMA write",
            Benchmark::WriteBw => "Bandwidth of RDMA write",
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Benchmark::Latency | Benchmark::WriteLat => Unit::Microseconds,
            _ => Unit::MegabytesPerSecond,
        }
    }
}

/// All measured curves.
#[derive(Debug, Default)]
pub(crate) struct Curves(pub(crate) BTreeMap<Benchmark, Vec<Curve>>);

impl Curves {
    /// The curve of a configuration.
    pub(crate) fn curve(&self, of: Benchmark, name: &str) -> Option<&Curve> {
        self.0.get(&of)?.iter().find(|curve| curve.label == name)
    }

    /// A value of a curve.
    pub(crate) fn at(&self, of: Benchmark, name: &str, size: usize) -> Option<f64> {
        self.curve(of, name)?.at(size)
    }

    /// The highest value of a curve.
    pub(crate) fn peak(&self, of: Benchmark, name: &str) -> Option<f64> {
        self.curve(of, name)?.peak()
    }

    /// Sizes, and quotients of two curves at them, in ascending order.
    pub(crate) fn ratios(&self, of: Benchmark, name: &str, over: &str) -> Vec<(usize, f64)> {
        let (Some(curve), Some(over)) = (self.curve(of, name), self.curve(of, over)) else {
            return Vec::new();
        };
        let points = curve.points.iter();
        points
            .filter_map(|&(size, value)| Some((size, value / over.at(size)?)))
            .collect()
    }
}
