//! The score of published figures of congestion: jobs of 2 to 256 nodes whose network is full. Each
//! figure is the pattern of its benchmark as a trace in memory, which the fast way replays on the
//! modelled machine, for several placements of the job; their median is the prediction.

mod alltoall;
pub(in crate::score) mod calls;
mod groups;
pub(in crate::score) mod machines;
mod pairs;
mod points;
mod rings;

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use fabric::System;
use model::config::MachineConfig;
use results::Console;
use results::stats::{digits, max, median, percentile, round_to};
use results::table::{aligned, significant};
use serde_json::json;

use crate::experiments::each_at_once;
use alltoall::Alltoall;
use model::placement::{Job, PlacementRule};
use points::{Pattern, Point};

/// A request for the score of congestion.
#[derive(Clone, Debug)]
pub(crate) struct CongestionRequest {
    /// The names of the machines. Empty: all.
    pub(crate) only: Vec<String>,
    /// The number of placements of each job.
    pub(crate) placements: u64,
    /// The number of random rings of each placement.
    pub(crate) rings: u64,
    /// The seed of placements and rings.
    pub(crate) seed: u64,
    /// The placement of all jobs. `None`: that of each machine.
    pub(crate) rule: Option<PlacementRule>,
    /// The ranks of the largest job. `None`: all jobs are made.
    pub(crate) most_ranks: Option<usize>,
}

/// The scored points.
pub(crate) struct CongestionScores {
    scored: Vec<ScoredPoint>,
    /// The number of points whose jobs have too many ranks.
    left_out: usize,
}

/// A published point with its prediction.
struct ScoredPoint {
    point: Point,
    machine: &'static str,
    class: &'static str,
    /// In GB/s a node, as all values.
    published: f64,
    predicted: f64,
    /// The 5th and the 95th percentile of the predictions of all placements.
    range: [f64; 2],
    /// The predictions of the null models.
    null: [f64; 2],
}

impl ScoredPoint {
    /// The error of the prediction, as a share of the published value.
    fn error(&self) -> f64 {
        self.predicted / self.published - 1.0
    }

    /// True if the published value lies between the ends of the range.
    fn is_inside(&self) -> bool {
        (self.range[0]..=self.range[1]).contains(&self.published)
    }
}

/// The 5th and the 95th percentile.
fn range(found: &[f64]) -> [f64; 2] {
    let mut found = found.to_vec();
    found.sort_by(f64::total_cmp);
    [5.0, 95.0].map(|part| percentile(&found, part))
}

/// A replay: a pattern on a machine, for one placement.
struct Replay<'a> {
    point: &'a Point,
    system: System,
    pattern: Pattern,
    hosts: Vec<u32>,
    job: Job,
    rings: Vec<u64>,
}

/// The names of the machines.
pub(crate) fn machine_names() -> Vec<&'static str> {
    machines::ALL.iter().map(|machine| machine.name).collect()
}

/// Predicts the points that a request names.
pub(crate) fn run(request: &CongestionRequest) -> Result<CongestionScores> {
    let systems = machines::Systems::read()?;
    let is_wanted = |point: &Point| {
        let name = point.machine().map_or("", |machine| machine.name);
        request.only.is_empty() || request.only.iter().any(|own| own == name)
    };
    let mut points: Vec<Point> = points::all()?.into_iter().filter(is_wanted).collect();
    let all = points.len();
    let most = request.most_ranks.unwrap_or(usize::MAX);
    points.retain(|point| point.job(0).ranks() <= most);
    let left_out = all - points.len();
    ensure!(
        !points.is_empty(),
        "no point is left: all jobs have more than {most} ranks"
    );
    let mut replays = Vec::new();
    for point in &points {
        for number in 0..request.placements {
            replays.push(Replay::new(point, systems.of(point)?, request, number)?);
        }
    }
    let mut console = Console::without_libraries(replays.len());
    console.say_without_bar(&format!(
        "congestion: {} points, {} replays",
        points.len(),
        replays.len()
    ));
    let found = each_at_once(&replays, &mut console, Replay::run)?;
    drop(replays);
    let found = found.chunks(request.placements as usize);
    let scored = points.into_iter().zip(found).map(|(point, found)| {
        let machine = point.machine()?;
        Ok(ScoredPoint {
            machine: machine.name,
            class: point.class(),
            published: point.value,
            predicted: median(found),
            range: range(found),
            null: machine.null(point.nodes),
            point,
        })
    });
    Ok(CongestionScores {
        scored: scored.collect::<Result<_>>()?,
        left_out,
    })
}

impl Replay<'_> {
    /// The replay of a point on its placement with this number.
    fn new<'a>(
        point: &'a Point,
        system: System,
        request: &CongestionRequest,
        number: u64,
    ) -> Result<Replay<'a>> {
        let machine = point.machine()?;
        let pattern = point.pattern()?;
        let job = point.job(system.nodes);
        let rule = request.rule.unwrap_or(machine.placement);
        let seed = request.seed.wrapping_add(number);
        let hosts = job.place(rule, seed);
        let rings = match pattern {
            Pattern::RandomRing => request.rings,
            _ => 1,
        };
        Ok(Replay {
            hosts: hosts.map_err(|why| anyhow!("{}: {why}", machine.name))?,
            rings: (0..rings)
                .map(|ring| seed.wrapping_mul(1000) + ring)
                .collect(),
            point,
            system,
            pattern,
            job,
        })
    }

    /// The rate in GB/s a node.
    fn run(&self) -> Result<f64> {
        let (job, bytes) = (self.job, self.point.message_size);
        let ranks = job.ranks();
        let settings = machines::settings(&self.system, self.point, ranks);
        let rate = match self.pattern {
            Pattern::Alltoall => {
                let alltoall = Alltoall {
                    job,
                    bytes,
                    is_linear: machines::is_linear(&settings, ranks, bytes),
                };
                alltoall.rate(&self.replayed(alltoall.trace(), &settings)?)
            }
            Pattern::Pairs(pairs) => {
                let outcome = self.replayed(pairs::trace(ranks, bytes, pairs), &settings)?;
                pairs::rate(&outcome, bytes, pairs)
            }
            Pattern::NaturalRing => {
                let trace = rings::trace(&rings::natural(ranks));
                let rate = rings::rate(&self.replayed(trace, &settings)?);
                rate * f64::from(job.per_node)
            }
            Pattern::RandomRing => {
                let mut logarithms = 0.0;
                for seed in &self.rings {
                    let trace = rings::trace(&rings::random(ranks, *seed));
                    logarithms += rings::rate(&self.replayed(trace, &settings)?).ln();
                }
                let rate = (logarithms / self.rings.len() as f64).exp();
                let share = rings::share(job.nodes, job.per_node, job.order);
                let share = share.ok_or_else(|| anyhow!("no share is known of {job:?}"))?;
                rate * f64::from(job.per_node) * share
            }
        };
        Ok(rate / 1e9)
    }

    fn replayed(
        &self,
        trace: trace::Trace,
        settings: &[(String, String)],
    ) -> Result<fast::Outcome> {
        let job = self.job;
        let scene = MachineConfig::new(&self.system, job.ranks(), job.per_node as usize, 1);
        let scene = scene.map_err(|why| anyhow!("{why}"))?;
        let mut scene = scene.with_library(&self.system.software);
        scene.hosts.clone_from(&self.hosts);
        let outcome = fast::replay(Arc::new(trace), &scene, settings);
        outcome.map_err(|why| {
            let Point { system, nodes, .. } = self.point;
            anyhow!("{system}, {nodes} nodes, {}: {why}", self.point.metric)
        })
    }
}

impl CongestionScores {
    /// A table of the points, and one of the errors by machine and by kind.
    pub(crate) fn text(&self) -> String {
        let rows = self.scored.iter().map(|one| {
            let point = &one.point;
            let range = one.range.map(significant).join(" to ");
            vec![
                one.machine.to_owned(),
                point.nodes.to_string(),
                point.ranks_per_node.to_string(),
                point.library.clone(),
                point.metric.replace('_', " "),
                point.message_size.to_string(),
                significant(one.published),
                significant(one.predicted),
                range,
                format!("{:+.0} %", one.error() * 100.0),
            ]
        });
        let header = [
            "machine",
            "nodes",
            "ranks",
            "library",
            "pattern",
            "size",
            "GB/s",
            "predicted",
            "placements",
            "error",
        ];
        let header = header.map(String::from).to_vec();
        let points = aligned(header, rows.collect(), |column| [0, 3, 4].contains(&column));
        let groups = groups::groups(&self.scored);
        let header = groups::HEADER.map(String::from).to_vec();
        let table = aligned(header, groups::rows(&groups), |column| column == 0);
        let left_out = match self.left_out {
            0 => String::new(),
            some => format!("{some} points of larger jobs are left out.\n"),
        };
        let [inside, widest] = self.inside();
        let inside = format!(
            "{:.0} % of the points lie in the range of their placements, whose ends differ {widest:.1} times at most.\n",
            inside * 100.0
        );
        let verdict = groups::verdict(&groups);
        format!("{points}\n{table}\n{verdict}{inside}{left_out}")
    }

    /// The part of the points inside the ranges of their placements, and the greatest quotient of
    /// the ends of a range.
    fn inside(&self) -> [f64; 2] {
        let inside = self.scored.iter().filter(|one| one.is_inside()).count();
        let widths = self.scored.iter().map(|one| one.range[1] / one.range[0]);
        let widths: Vec<f64> = widths.collect();
        [inside as f64 / self.scored.len() as f64, max(&widths)]
    }

    /// JSON, one object a line: the points, the groups, and the number of points left out.
    pub(crate) fn json(&self) -> String {
        let lines = self.scored.iter().map(|one| {
            let point = &one.point;
            let line = json!({
                "machine": one.machine, "nodes": point.nodes,
                "ranks_per_node": point.ranks_per_node, "library": point.library,
                "benchmark": point.benchmark, "metric": point.metric, "size": point.message_size,
                "kind": one.class, "unit": "GB/s per node", "published": one.published,
                "predicted": digits(one.predicted), "placements": one.range.map(digits),
                "error_percent": round_to(one.error() * 100.0, 4),
            });
            line.to_string()
        });
        let mut lines: Vec<String> = lines.collect();
        lines.extend(groups::json(&groups::groups(&self.scored)));
        let [inside, widest] = self.inside();
        let inside = round_to(inside * 100.0, 4);
        lines.push(json!({ "inside_percent": inside, "widest": digits(widest) }).to_string());
        if self.left_out > 0 {
            lines.push(json!({ "left_out": self.left_out }).to_string());
        }
        lines.join("\n") + "\n"
    }
}
