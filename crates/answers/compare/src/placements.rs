//! The placements of a compared job on its machines, and the draws of nodes that vary: their choice,
//! and the times of one row with each of them.
//!
//! The time of a row with several placements is that of the replay in the middle, by the time of
//! the run. All further replays of the row have the placement of that replay.

use anyhow::Result;
use model::placement::{Placement, PlacementRule};
use profile::Summary;

use crate::Request;
use crate::advice::Advice;
use crate::jobs::{Outcome, Runner, Task};
use crate::record::Record;
use crate::row::{EQUAL, Row};
use crate::work::Measure;

/// The number of placements by chance, unless the user wants another.
pub const RANDOM: u64 = 5;

/// A job as it may run: its placement, and its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Draw {
    /// The placement.
    pub placement: Placement,
    /// The seed of the speeds of nodes and of the delays of calls. `None`: nodes are equal.
    pub variation: Option<u64>,
}

impl Draw {
    /// True if the job fills the first hosts and nodes are equal, as without a choice.
    pub(crate) fn is_usual(&self) -> bool {
        self.placement.is_packed() && self.variation.is_none()
    }
}

/// The placements that a comparison takes for one: several by chance have a median.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementChoice {
    /// The name of the choice, as the user writes it.
    pub name: String,
    /// The placements and draws of the choice; at least one.
    pub each: Vec<Draw>,
}

impl Default for PlacementChoice {
    fn default() -> PlacementChoice {
        PlacementChoice::of(Placement::default())
    }
}

impl PlacementChoice {
    fn of(placement: Placement) -> PlacementChoice {
        PlacementChoice {
            name: placement.to_string(),
            each: vec![Draw {
                placement,
                variation: None,
            }],
        }
    }

    /// The choices that words such as `packed,random` or `0,4,8-11` name. Numbers beside each other
    /// are one list of hosts. `random` without a seed stands for `count` placements.
    ///
    /// # Errors
    /// A word that names no placement, or that stands there twice.
    pub fn parse(words: &[String], count: u64) -> Result<Vec<PlacementChoice>, String> {
        let mut choices: Vec<PlacementChoice> = Vec::new();
        for words in words {
            let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
            let parts: Vec<&str> = words.split(',').collect();
            for run in parts.chunk_by(|one, next| is_number(one) && is_number(next)) {
                let choice = match run {
                    ["random"] => PlacementChoice {
                        name: "random".into(),
                        each: (1..=count)
                            .map(|seed| Draw {
                                placement: Placement::Rule(PlacementRule::Random, seed),
                                variation: None,
                            })
                            .collect(),
                    },
                    run => PlacementChoice::of(run.join(",").parse()?),
                };
                if choices.iter().any(|known| known.name == choice.name) {
                    return Err(format!("{} is named twice", choice.name));
                }
                choices.push(choice);
            }
        }
        if choices.is_empty() {
            choices.push(PlacementChoice::default());
        }
        Ok(choices)
    }

    /// The choice with nodes that vary: `draws` draws of one placement, or one of each of several.
    pub fn varied(mut self, draws: u64) -> PlacementChoice {
        if let [one] = &self.each[..] {
            self.each = vec![one.clone(); draws.max(1) as usize];
        }
        for (draw, seed) in self.each.iter_mut().zip(1..) {
            draw.variation = Some(seed);
        }
        self.name += ", nodes vary";
        self
    }

    /// True if the job fills the first hosts of each machine and nodes are equal, as without a
    /// choice.
    pub fn is_packed(&self) -> bool {
        self.each.iter().all(Draw::is_usual)
    }

    /// True if the choice is of several placements.
    pub fn is_several(&self) -> bool {
        self.each.len() > 1
    }
}

/// A run of a row's program with one of several placements.
#[derive(Clone, Debug)]
pub struct PlacedRun {
    /// The placement, and the draw of nodes.
    pub draw: Draw,
    /// The summary of the run.
    pub summary: Summary,
    /// The time by which machines are compared, in seconds. `None`: it is unknown.
    pub value: Option<f64>,
}

impl Request {
    /// The placements of this comparison: the first of its choices.
    pub(crate) fn choice(&self) -> &PlacementChoice {
        &self.placements[0]
    }

    /// The requests for each of the choices of placements.
    pub(crate) fn each_choice(&self) -> impl Iterator<Item = Request> {
        self.placements.iter().map(|choice| Request {
            placements: vec![choice.clone()],
            ..self.clone()
        })
    }

    /// A replay with the placement `usual`, or the first of this comparison, unless it has one.
    pub(crate) fn placed(&self, task: Task, usual: Option<&Draw>) -> Task {
        let first = usual.or(self.choice().each.first());
        let is_recorded = task.machine >= self.machines.len();
        let placement = match (&task.placement, first) {
            (None, Some(first)) if !is_recorded && !first.is_usual() => Some(first.clone()),
            _ => task.placement,
        };
        Task { placement, ..task }
    }
}

/// Replays tasks with all placements of the comparison, and makes the row of each.
pub(crate) fn rows(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    tasks: &[Task],
) -> Result<Vec<Row>> {
    let each = &request.choice().each;
    let with = |task: &Task, draw: &Draw| Task {
        placement: Some(draw.clone()),
        ..task.clone()
    };
    let placed = tasks
        .iter()
        .flat_map(|task| each.iter().map(move |draw| with(task, draw)));
    let placed: Vec<Task> = placed.collect();
    let outcomes = runner.replay(request, record, &placed)?;
    let of_rows = tasks.iter().zip(outcomes.chunks(each.len()));
    let row = |(task, outcomes): (&Task, &[Outcome])| {
        let middle = middle(outcomes);
        runner.set_usual((task.machine, task.ranks), each[middle].clone());
        let ran = each.iter().zip(outcomes).filter_map(|(draw, outcome)| {
            Some(PlacedRun {
                draw: draw.clone(),
                summary: outcome.as_ref().ok()?.clone(),
                value: None,
            })
        });
        Row {
            placed: ran.collect(),
            ..Row::new(request, task.machine, task.ranks, outcomes[middle].clone())
        }
    };
    Ok(of_rows.map(row).collect())
}

/// The number of the outcome in the middle, by the time of the run; of a failed one, if there is
/// one.
fn middle(outcomes: &[Outcome]) -> usize {
    let time = |at: &usize| match &outcomes[*at] {
        Ok(summary) => summary.virtual_s.unwrap_or(f64::INFINITY),
        Err(_) => f64::INFINITY,
    };
    if let Some(failed) = outcomes.iter().position(Result::is_err) {
        return failed;
    }
    let mut order: Vec<usize> = (0..outcomes.len()).collect();
    order.sort_by(|one, other| time(one).total_cmp(&time(other)));
    order[(order.len() - 1) / 2]
}

/// Sets the compared times of the rows with each placement.
pub(crate) fn value(record: &Record, rows: &mut [Row], measure: Measure) {
    for row in rows {
        let work = record.of(row.ranks).and_then(|of| of.work.as_ref());
        let marks = work.and_then(|work| work.found.as_ref().ok());
        let start = row.start.unwrap_or(0.0);
        for run in &mut row.placed {
            run.value = measure.seconds(marks, &run.summary, start);
        }
    }
}

impl Row {
    /// The shortest and the longest time of the run among several placements, in seconds. `None`:
    /// there is one placement.
    pub fn placed_times(&self) -> Option<(f64, f64)> {
        let times = || self.placed.iter().filter_map(|run| run.summary.virtual_s);
        Some((times().reduce(f64::min)?, times().reduce(f64::max)?))
    }

    /// The value by which this row is compared with placement number `at`, where the row's time is
    /// `value`.
    pub(crate) fn value_placed(&self, value: f64, at: usize) -> Option<f64> {
        Some(value * self.placed.get(at)?.value? / self.value?)
    }
}

impl Advice {
    /// Counts the placements on which the answer stays the same.
    pub(crate) fn count_placements(&mut self, rows: &[Row]) {
        let here = || rows.iter().filter(|row| row.ranks == self.ranks);
        let count = here().map(|row| row.placed.len()).max().unwrap_or(0);
        let Some(best) = self.best().filter(|_| count > 1) else {
            return;
        };
        let holds = |at: &usize| {
            let values = here().filter_map(|row| {
                let value = row.value_placed(self.value(row)?, *at)?;
                Some((row.machine, value))
            });
            let values: Vec<(usize, f64)> = values.collect();
            let least = values.iter().map(|of| of.1).fold(f64::INFINITY, f64::min);
            let is_good = |machine: usize| {
                let mut values = values.iter();
                values.any(|of| of.0 == machine && of.1 <= least * (1.0 + EQUAL))
            };
            match self.rival {
                Some(_) => is_good(best),
                None => self.equals.iter().all(|machine| is_good(*machine)),
            }
        };
        let held = (0..count).filter(holds).count();
        self.placements = Some((held, count));
        let vary = |row: &Row| row.placed.iter().any(|run| run.draw.variation.is_some());
        self.nodes_vary = here().any(vary);
    }

    /// True if the answer is another one with some placement.
    pub(crate) fn depends_on_placement(&self) -> bool {
        self.placements.is_some_and(|(held, all)| held < all)
    }

    /// The sentence about the placements; empty if there is one.
    pub(crate) fn placements_sentence(&self) -> String {
        let what = match self.nodes_vary {
            true => "draws of nodes that vary",
            false => "random placements",
        };
        match self.placements {
            None => String::new(),
            Some((held, all)) if held == all => format!(" It holds on all {all} {what}."),
            Some((held, all)) => format!(" It holds on {held} of {all} {what}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::request;

    fn names(words: &[&str], count: u64) -> Result<Vec<(String, usize)>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let choices = PlacementChoice::parse(&words, count)?.into_iter();
        Ok(choices
            .map(|choice| (choice.name, choice.each.len()))
            .collect())
    }

    #[test]
    fn numbers_beside_each_other_are_one_list() {
        let found = names(&["packed,random,0,4,8-11,spread", "1,2"], 5).unwrap();
        let wanted = [
            ("packed", 1),
            ("random", 5),
            ("0,4,8-11", 1),
            ("spread", 1),
            ("1-2", 1),
        ];
        assert_eq!(found, wanted.map(|(name, count)| (name.into(), count)));
        assert_eq!(names(&[], 5), Ok(vec![("packed".into(), 1)]));
        assert_eq!(names(&["random:3"], 5), Ok(vec![("random:3".into(), 1)]));
        for (words, says) in [
            ("packed,packed", "packed is named twice"),
            ("0,1,0", "host 0 is named twice"),
            ("random:x", "'x' is not a seed"),
            ("packed,", "'' is no placement"),
        ] {
            let why = names(&[words], 5).unwrap_err();
            assert!(why.contains(says), "{words}: {why}");
        }
    }

    #[test]
    fn nodes_vary_in_draws_of_one_placement_or_with_each_of_several() {
        let choices = PlacementChoice::parse(&["packed,random".to_owned()], 3).unwrap();
        let seeds = |choice: &PlacementChoice| {
            let choice = choice.clone().varied(4);
            assert!(choice.name.ends_with(", nodes vary") && !choice.is_packed());
            let seeds = choice.each.iter().map(|draw| draw.variation);
            seeds.collect::<Option<Vec<u64>>>()
        };
        assert_eq!(seeds(&choices[0]), Some(vec![1, 2, 3, 4]));
        assert_eq!(seeds(&choices[1]), Some(vec![1, 2, 3]));
    }

    /// Rows of two machines with these compared times on three placements.
    fn rows(request: &Request, seconds: [[f64; 3]; 2]) -> Vec<Row> {
        let run = |(seed, seconds): (u64, &f64)| PlacedRun {
            draw: Draw {
                placement: Placement::Rule(PlacementRule::Random, seed),
                variation: None,
            },
            summary: Summary::default(),
            value: Some(*seconds),
        };
        let rows = seconds.iter().enumerate().map(|(machine, seconds)| Row {
            value: Some(seconds[1]),
            placed: (1..).zip(seconds).map(run).collect(),
            ..Row::new(request, machine, 8, Ok(Summary::default()))
        });
        rows.collect()
    }

    #[test]
    fn an_answer_holds_on_the_placements_with_the_same_best_machine() {
        let request = request(&["qdr", "edr"], &[8]);
        let held = |seconds: [[f64; 3]; 2]| {
            let rows = rows(&request, seconds);
            let mut advice = Advice::of(&rows, &request.machines);
            advice.count_placements(&rows);
            advice.placements
        };
        assert_eq!(held([[2.0, 3.0, 4.0], [1.0, 1.5, 2.0]]), Some((3, 3)));
        assert_eq!(held([[2.0, 3.0, 1.9], [1.0, 1.5, 2.0]]), Some((2, 3)));
        // Equal machines have to stay equal.
        assert_eq!(held([[1.0, 1.0, 1.0], [1.0, 1.0, 1.1]]), Some((2, 3)));
    }

    #[test]
    fn the_middle_is_by_time() {
        let ran = |seconds: f64| {
            Ok(Summary {
                virtual_s: Some(seconds),
                ..Summary::default()
            })
        };
        assert_eq!(middle(&[ran(3.0), ran(1.0), ran(2.0)]), 2);
        assert_eq!(middle(&[ran(3.0), ran(1.0)]), 1);
        assert_eq!(middle(&[ran(3.0), Err("full".into()), ran(2.0)]), 1);
    }
}
