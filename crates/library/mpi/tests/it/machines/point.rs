//! One point of the comparison: the times of all choices on one machine.

use std::fmt;

use cost_cache::CostLines;
use mpi::coll::Work;
use mpi::comm::WORLD;

use super::double::{Settings, run};
use super::programs::{Memory, Program, step};
use super::table::Machine;

/// The most that the layer's choice may take, in multiples of the best, once it has learned.
const MOST: f64 = 1.1;
/// The most that the first messages of a job may take that begins with kept costs.
const MOST_AT_FIRST: f64 = 1.5;
/// Number of messages or calls from which a job learns, and of those that are timed: more than come
/// from one trial of another path to the next.
const LEARNED_FROM: usize = 300;
const TIMED: usize = 264;
/// Number of the first messages of a job.
const FIRST: usize = 20;

/// A machine, a program, a number of ranks, and a length in bytes.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) machine: &'static Machine,
    pub(super) program: Program,
    pub(super) ranks: usize,
    pub(super) len: usize,
}

/// A choice that settings force.
struct Choice {
    name: String,
    settings: Settings,
}

/// The times at a point, in nanoseconds of a message or call.
pub(super) struct Answer {
    point: String,
    free: f64,
    /// By forced choice, the best first.
    forced: Vec<(f64, String)>,
    most: f64,
}

impl Answer {
    pub(super) fn is_good(&self) -> bool {
        self.free <= self.most * self.forced[0].0
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let ratio = self.free / self.forced[0].0;
        write!(to, "{}: {:.0} ns, {ratio:.3} of", self.point, self.free)?;
        let mut forced = self.forced.iter();
        forced.try_for_each(|(time, name)| write!(to, " {name} {time:.0},"))
    }
}

impl Point {
    /// The name of the point in `open.txt`.
    pub(super) fn name(&self) -> String {
        let (machine, program) = (self.machine.name, self.program.name());
        format!("{machine}, {program}, {} ranks, {} B", self.ranks, self.len)
    }

    /// The times of all choices after learning.
    pub(super) fn compare(&self) -> Answer {
        let time = |settings: &Settings| self.time(settings, None, [LEARNED_FROM, TIMED]).0;
        self.answer(time(&Settings::new()), time, MOST)
    }

    /// The times of the first messages of a job, which begins with the costs of an earlier one.
    pub(super) fn compare_first(&self) -> Answer {
        let none = Settings::new();
        let (_, kept) = self.time(&none, None, [LEARNED_FROM, TIMED]);
        let (free, _) = self.time(&none, kept, [0, FIRST]);
        let time = |settings: &Settings| self.time(settings, None, [0, FIRST]).0;
        self.answer(free, time, MOST_AT_FIRST)
    }

    fn answer(&self, free: f64, time: impl Fn(&Settings) -> f64, most: f64) -> Answer {
        let choices = self.choices().into_iter();
        let mut forced: Vec<(f64, String)> = choices
            .map(|choice| (time(&choice.settings), choice.name))
            .collect();
        forced.sort_by(|one, other| one.0.total_cmp(&other.0));
        Answer {
            point: self.name(),
            free,
            forced,
            most,
        }
    }

    /// The choices that settings can force.
    fn choices(&self) -> Vec<Choice> {
        let texts = run(self.machine, self.ranks, &Settings::new(), |rank| {
            let meet = || rank.collective("MPI_Barrier", &Work::Barrier, WORLD);
            meet().unwrap();
            let text = rank.explain_choices();
            meet().unwrap();
            text
        });
        let text: serde_json::Value = serde_json::from_str(&texts[0]).unwrap();
        let groups = text["alternatives"].as_array().unwrap().iter();
        let procedure = self.program.procedure();
        let applies = |group: &&serde_json::Value| {
            let procedures = group["procedures"].as_array().unwrap();
            procedures.iter().any(|name| name == procedure)
        };
        let forced = groups
            .filter(applies)
            .flat_map(|group| group["forced"].as_array().unwrap());
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let choice = |forced: &serde_json::Value| {
            let settings = forced["settings"].as_object().unwrap().iter();
            Choice {
                name: text(&forced["choice"]),
                settings: settings
                    .map(|(name, value)| (name.clone(), text(value)))
                    .collect(),
            }
        };
        forced.map(choice).collect()
    }

    /// Nanoseconds of a message or call with these settings: the mean of the second number, after
    /// the first number of them. Also the costs that the job keeps.
    fn time(
        &self,
        settings: &Settings,
        kept: Option<CostLines>,
        numbers: [usize; 2],
    ) -> (f64, Option<CostLines>) {
        let Point {
            program,
            len,
            ranks,
            ..
        } = *self;
        let per_step = program.per_step();
        let [before, timed] = numbers.map(|number| number.div_ceil(per_step));
        let ends = run(self.machine, ranks, settings, move |rank| {
            if let (Some(kept), 0) = (&kept, rank.rank()) {
                rank.begin_with_costs(kept);
            }
            rank.collective("MPI_Barrier", &Work::Barrier, WORLD)
                .unwrap();
            let mut memory = Memory::new(program, len, ranks);
            (0..before).for_each(|_| step(rank, program, &mut memory));
            let begun = channel::now();
            (0..timed).for_each(|_| step(rank, program, &mut memory));
            let took = channel::now() - begun;
            rank.collective("MPI_Barrier", &Work::Barrier, WORLD)
                .unwrap();
            (took, rank.costs_to_keep())
        });
        let slowest = ends.iter().map(|(took, _)| *took).max().unwrap_or(0);
        let kept = ends.into_iter().next().and_then(|(_, kept)| kept);
        let messages = timed * per_step * program.messages_in_a_row();
        (slowest as f64 / messages as f64, kept)
    }
}
