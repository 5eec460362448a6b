//! The placements of a compared job on its machines: their choice, and the times of one row with
//! each of them.
//!
//! The time of a row with several placements is that of the replay in the middle, by the time of
//! the run. All further replays of the row have the placement of that replay.

use anyhow::Result;
use model::placement::{Placement, PlacementRule};
use profile::Summary;

use crate::Request;
use crate::advice::Advice;
use crate::ideal::Ideal;
use crate::jobs::{Outcome, Runner, Task};
use crate::machine::JobOn;
use crate::record::Record;
use crate::row::{EQUAL, Row};
use crate::work::Measure;

/// The number of placements by chance, unless the user wants another.
pub const RANDOM: u64 = 5;

/// The placements that a comparison takes for one: several by chance have a median.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementChoice {
    /// The name of the choice, as the user writes it.
    pub name: String,
    /// The placements of the choice; at least one.
    pub each: Vec<Placement>,
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
            each: vec![placement],
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
                            .map(|seed| Placement::Rule(PlacementRule::Random, seed))
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

    /// True if the job fills the first hosts of each machine, as without a choice.
    pub fn is_packed(&self) -> bool {
        self.each.iter().all(Placement::is_packed)
    }

    /// True if the choice is of several placements.
    pub fn is_several(&self) -> bool {
        self.each.len() > 1
    }
}

/// A run of a row's program with one of several placements.
#[derive(Clone, Debug)]
pub struct PlacedRun {
    /// The placement.
    pub placement: Placement,
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

    /// The kinds of cost that a machine has for the job of this comparison.
    pub(crate) fn ideals(&self, machine: usize, ranks: usize) -> impl Iterator<Item = Ideal> {
        // Of several placements each may be the usual one.
        let placements = self.choice().each.iter();
        let jobs = placements.map(|placement| JobOn {
            ranks,
            per_host: self.per_host,
            placement: placement.clone(),
        });
        let kinds = jobs.map(|job| Ideal::of(&self.machines[machine], &job).collect());
        let kinds = kinds.max_by_key(Vec::len).unwrap_or_default();
        kinds.into_iter()
    }

    /// The requests for each of the choices of placements.
    pub(crate) fn each_choice(&self) -> impl Iterator<Item = Request> {
        self.placements.iter().map(|choice| Request {
            placements: vec![choice.clone()],
            ..self.clone()
        })
    }

    /// A replay with the placement `usual`, or the first of this comparison, unless it has one.
    pub(crate) fn placed(&self, task: Task, usual: Option<&Placement>) -> Task {
        let first = usual.or(self.choice().each.first());
        let is_recorded = task.machine >= self.machines.len();
        let placement = match (&task.placement, first) {
            (None, Some(first)) if !is_recorded && !first.is_packed() => Some(first.clone()),
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
    let with = |task: &Task, placement: &Placement| Task {
        placement: Some(placement.clone()),
        ..task.clone()
    };
    let placed = tasks
        .iter()
        .flat_map(|task| each.iter().map(move |placement| with(task, placement)));
    let placed: Vec<Task> = placed.collect();
    let outcomes = runner.replay(request, record, &placed)?;
    let of_rows = tasks.iter().zip(outcomes.chunks(each.len()));
    let row = |(task, outcomes): (&Task, &[Outcome])| {
        let middle = middle(outcomes);
        runner.set_usual((task.machine, task.ranks), each[middle].clone());
        let ran = each
            .iter()
            .zip(outcomes)
            .filter_map(|(placement, outcome)| {
                Some(PlacedRun {
                    placement: placement.clone(),
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
    /// The shortest and the longest compared time among several placements, in seconds. `None`:
    /// there is one placement.
    pub fn placed_range(&self) -> Option<(f64, f64)> {
        let times = || self.placed.iter().filter_map(|run| run.value);
        Some((times().reduce(f64::min)?, times().reduce(f64::max)?))
    }

    /// The difference of these times, as a share of the compared time.
    pub fn placed_spread(&self) -> Option<f64> {
        let (least, most) = self.placed_range()?;
        Some((most - least) / self.value?)
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
    }

    /// True if the answer is another one with some placement.
    pub(crate) fn depends_on_placement(&self) -> bool {
        self.placements.is_some_and(|(held, all)| held < all)
    }

    /// The sentence about the placements; empty if there is one.
    pub(crate) fn placements_sentence(&self) -> String {
        match self.placements {
            None => String::new(),
            Some((held, all)) if held == all => {
                format!(" It holds on all {all} random placements.")
            }
            Some((held, all)) => format!(" It holds on {held} of {all} random placements."),
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

    /// Rows of two machines with these compared times on three placements.
    fn rows(request: &Request, seconds: [[f64; 3]; 2]) -> Vec<Row> {
        let run = |(seed, seconds): (u64, &f64)| PlacedRun {
            placement: Placement::Rule(PlacementRule::Random, seed),
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
