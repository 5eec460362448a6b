//! The published points of congestion, read from their file.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::machines::{self, Machine};
use super::pairs::Pairs;
use model::placement::{Job, RankOrder};

/// The points of this project, as CSV.
const POINTS: &str = include_str!("../../../data/congestion.csv");

/// A published point: a job on a machine, and the rate at which bytes left its nodes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Point {
    pub(super) system: String,
    pub(super) nodes: u32,
    pub(super) ranks_per_node: u32,
    pub(super) library: String,
    pub(super) benchmark: String,
    pub(super) message_size: u64,
    pub(super) metric: String,
    /// In GB/s a node.
    pub(super) value: f64,
    pub(super) kind: String,
}

/// The pattern of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    NaturalRing,
    RandomRing,
    Alltoall,
    Pairs(Pairs),
}

/// Reads the points.
pub(super) fn all() -> Result<Vec<Point>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(POINTS.as_bytes());
    let read: csv::Result<Vec<Point>> = reader.deserialize().collect();
    read.context("congestion.csv")
}

impl Point {
    pub(super) fn machine(&self) -> Result<&'static Machine> {
        let mut all = machines::ALL.iter();
        let found = all.find(|machine| machine.published == self.system);
        found.with_context(|| format!("congestion.csv: no machine is {}", self.system))
    }

    pub(super) fn pattern(&self) -> Result<Pattern> {
        Ok(match self.metric.as_str() {
            "natural_ring" => Pattern::NaturalRing,
            "random_ring" => Pattern::RandomRing,
            "alltoall" => Pattern::Alltoall,
            "send" => Pattern::Pairs(Pairs::Send),
            "sendrecv_same" => Pattern::Pairs(Pairs::SendrecvSame),
            "sendrecv_diff" => Pattern::Pairs(Pairs::SendrecvDiff),
            other => anyhow::bail!("congestion.csv: no pattern is {other}"),
        })
    }

    /// The job, on a machine with this number of hosts.
    pub(super) fn job(&self, hosts: u32) -> Job {
        // HPCC's files on Thomas, and the undated ones of Cirrus, deal ranks in turns.
        let is_cyclic = match self.kind.as_str() {
            "ring" => self.system == "Thomas" || self.library.ends_with("cyclic"),
            _ => false,
        };
        Job {
            hosts,
            nodes: self.nodes,
            per_node: self.ranks_per_node,
            order: match is_cyclic {
                true => RankOrder::Cyclic,
                false => RankOrder::Block,
            },
        }
    }

    /// The kind of the point in tables.
    pub(super) fn class(&self) -> &'static str {
        match self.kind.as_str() {
            "ring" => "rings",
            "alltoall" => "alltoalls",
            _ => "pairs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::congestion::rings;

    #[test]
    fn every_point_has_a_machine_a_pattern_and_a_share() {
        let points = all().unwrap();
        assert_eq!(points.len(), 270);
        let of = |class| points.iter().filter(|point| point.class() == class).count();
        assert_eq!([of("rings"), of("alltoalls"), of("pairs")], [79, 176, 15]);
        for point in &points {
            point.machine().unwrap();
            let job = point.job(1 << 20);
            if point.pattern().unwrap() == Pattern::RandomRing {
                let share = rings::share(job.nodes, job.per_node, job.order);
                assert!(share.is_some(), "{point:?}");
            }
        }
    }
}
