//! The work of a program apart from its start, and the part of it that is compared between
//! machines.
//!
//! A comparison runs a short version of a program whose production run takes hours. The start
//! (launch, MPI_Init, connections, registrations, communicators, windows, files) is therefore
//! counted apart, and if the program has a loop, the time of its iterations is compared.

use std::collections::HashMap;

use profile::Summary;
use replay::{CallKey, Computing};

use crate::even::{Unevenness, distributed, even, unevenness};
use crate::main_loop::{self, Call, Calls, Control, Loop, NoLoop, Symbol, Unusable};
use crate::prediction::{self, Moments, NoPrediction, Prediction};

/// The handle of `MPI_COMM_WORLD` (MPI 5.0, appendix A).
const WORLD: u32 = 257;
/// The most marks of a replay, over all ranks: each is a number in the summary.
const MOST_MARKS: usize = 1 << 16;

/// The part of the program that the user wants to compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The region begins after the call with this name and number on each rank. `None`: the region
    /// is the whole program.
    pub after: Option<(String, usize)>,
    /// The number of iterations of the production run whose time is predicted. `None`: the user
    /// wants no prediction.
    pub iterations: Option<usize>,
    /// True if ranks with equal calls are to compute equally long, for their mean time.
    pub even: bool,
}

/// The results of the search in the recordings with one number of ranks: the loop, and the
/// differences between ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The loop with its marks, or the reason why there is none.
    pub found: Result<Marks, NoLoop>,
    /// The differences of computing between ranks with equal calls. `None`: no ranks have equal
    /// calls, or such ranks compute nothing.
    pub unevenness: Option<Unevenness>,
}

/// A loop, and those of its iterations whose beginnings are marked, so that replays report their
/// times.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    /// The loop whose iterations are marked.
    pub found: Loop,
    iterations: Vec<usize>,
}

impl Work {
    /// Finds the loop in a recording, and the differences of computing between ranks. An error if
    /// the region that the user or the program names is unusable.
    pub fn of(computing: &Computing, wanted: &Wanted) -> Result<Work, Unusable> {
        let calls = calls(computing);
        let found = match &wanted.after {
            Some((call, number)) => Ok(main_loop::after(&calls, call, *number)?),
            None => match main_loop::controlled(&calls)? {
                Some(controlled) => Ok(controlled),
                None => main_loop::find(&calls),
            },
        };
        let unevenness = unevenness(&calls, found.as_ref().ok());
        Ok(Work {
            found: found.map(Marks::of),
            unevenness,
        })
    }
}

impl Marks {
    fn of(found: Loop) -> Marks {
        let most = (MOST_MARKS / found.boundaries.len().max(1)).max(4);
        let stride = found.iterations().div_ceil(most).max(1);
        // The end of the last iteration is also a mark.
        let mut iterations: Vec<usize> = (0..found.iterations()).step_by(stride).collect();
        iterations.push(found.iterations());
        Marks { found, iterations }
    }

    /// For each rank, the numbers of the calls with which a marked iteration begins.
    pub fn calls(&self) -> Vec<Vec<usize>> {
        let of_rank = |boundaries: &Vec<usize>| {
            let marks = self.iterations.iter();
            marks.map(|iteration| boundaries[*iteration]).collect()
        };
        self.found.boundaries.iter().map(of_rank).collect()
    }

    /// The time of a run, divided into start, iterations and rest; the start takes `start` seconds.
    /// `None`: the run has not reported the times of all marked iterations.
    pub fn prediction(
        &self,
        summary: &Summary,
        start: f64,
    ) -> Option<Result<Prediction, NoPrediction>> {
        let moments = self.moments(summary)?;
        let whole = summary.virtual_s?;
        Some(Prediction::of(&self.found, &moments, start, whole))
    }

    /// The time of a run, divided, even if its iterations get longer or shorter.
    fn divided(&self, summary: &Summary, start: f64) -> Option<Prediction> {
        let (moments, whole) = (self.moments(summary)?, summary.virtual_s?);
        Prediction::unchecked(&self.found, &moments, start, whole).ok()
    }

    /// The time from the first iteration whose time is used to the end of the last, in seconds, and
    /// the number of these iterations. `None`: the run has not reported the times, or none is used.
    fn counted(&self, summary: &Summary) -> Option<(f64, usize)> {
        let moments = self.moments(summary)?;
        let begins = self.iterations.iter().enumerate();
        let (from, begin) = { begins }.find(|(_, one)| **one >= self.found.counted)?;
        let seconds = last(&moments, self.iterations.len() - 1) - last(&moments, from);
        let number = self.found.iterations() - begin;
        (number > 0).then_some((seconds, number))
    }

    /// The mean time of an iteration, in seconds, over the iterations whose time is used. `None`:
    /// it is unknown.
    pub fn mean_iteration(&self, summary: &Summary) -> Option<f64> {
        let (seconds, number) = self.counted(summary)?;
        Some(seconds / number as f64)
    }

    fn moments(&self, summary: &Summary) -> Option<Moments> {
        let all = self.iterations.len();
        let is_whole = summary.steps.iter().all(|times| times.len() == all);
        (is_whole && summary.steps.len() == self.found.boundaries.len()).then(|| Moments {
            iterations: self.iterations.clone(),
            ranks: summary.steps.clone(),
        })
    }

    /// Excludes the first iterations as long as they still belong to the start: until a run and the
    /// run with a free start proceed at the same pace.
    pub fn skip_start(&mut self, run: &Summary, free: &Summary) {
        const OVER: f64 = 0.95;
        let (Some(run), Some(free)) = (self.moments(run), self.moments(free)) else {
            return;
        };
        let behind = |mark: usize| last(&run, mark) - last(&free, mark);
        let all = self.iterations.len();
        let whole = behind(all - 1);
        let over = (0..all).find(|mark| behind(*mark) >= OVER * whole);
        // Objects that are still made later than the middle of the loop are made in every
        // iteration, so they belong to the loop.
        if let Some(mark) = over.filter(|mark| *mark <= all / 2) {
            self.found.counted = self.found.counted.max(self.iterations[mark]);
        }
    }
}

/// The time at which the last rank reaches a mark, in seconds.
fn last(times: &Moments, mark: usize) -> f64 {
    let of_ranks = times.ranks.iter().map(|times| times[mark]);
    of_ranks.fold(f64::NEG_INFINITY, f64::max)
}

/// The computing to replay: equal for ranks with equal calls if the user wants that, or with evenly
/// distributed work if `is_distributed`.
pub fn played(computing: Computing, is_distributed: bool, wanted: &Wanted) -> Computing {
    match (wanted.even, is_distributed) {
        (true, _) => computing.replaced(&even(&calls(&computing))),
        (false, true) => computing.replaced(&distributed(&calls(&computing))),
        (false, false) => computing,
    }
}

/// The calls of a recording, in the form that the search for a loop reads.
fn calls(computing: &Computing) -> Calls {
    let mut numbers = HashMap::new();
    let mut symbols = Vec::new();
    let ranks = (0..computing.ranks()).map(|rank| {
        let own = computing.calls(rank).map(|(name, key, nanos)| {
            let number = *numbers.entry((name, key)).or_insert_with(|| {
                symbols.push(symbol(name, key));
                symbols.len() as u32 - 1
            });
            Call {
                symbol: number,
                nanos,
            }
        });
        own.collect()
    });
    let ranks = ranks.collect();
    Calls { symbols, ranks }
}

fn symbol(name: &str, key: CallKey) -> Symbol {
    let control = (name == "MPI_Pcontrol").then(|| Control {
        level: key.peer.unwrap_or(1),
        region: None,
    });
    let is_boundary = ["MPI_Init", "MPI_Finalize"].contains(&name);
    Symbol {
        name: name.into(),
        communicator: key.comm,
        size: key.size.map(u32::from),
        peer: key.peer.filter(|_| control.is_none()),
        constructs: key.constructs || is_boundary,
        everywhere: key.comm == Some(WORLD) && is_collective(name),
        control,
    }
}

/// True if all ranks of a communicator take part in a call of this procedure.
fn is_collective(name: &str) -> bool {
    const PARTS: [&str; 7] = [
        "barrier", "bcast", "gather", "scatter", "reduce", "alltoall", "scan",
    ];
    let name = name.to_ascii_lowercase();
    !name.contains("neighbor") && PARTS.iter().any(|part| name.contains(part))
}

/// The part of a run whose time is compared between machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// The iterations of the loop, each with its usual time.
    Loop,
    /// The recorded iterations of the loop as a whole, because they get longer or shorter.
    WholeLoop,
    /// The whole run without its start.
    Rest,
    /// A run with this number of iterations, start and rest included.
    Iterations(usize),
}

impl Measure {
    /// Chooses the part to compare. `has_loop`: all runs went through a loop. `is_steady`: the
    /// usual time of an iteration is known on all machines.
    pub fn of(wanted: &Wanted, has_loop: bool, is_steady: bool) -> Measure {
        match (has_loop, is_steady, wanted.iterations) {
            (true, true, Some(iterations)) => Measure::Iterations(iterations),
            (true, true, None) => Measure::Loop,
            (true, false, _) => Measure::WholeLoop,
            (false, ..) => Measure::Rest,
        }
    }

    /// The compared times of a run with a part of the iterations left out, in seconds, for each
    /// part. Empty: there are too few iterations, or all of them count.
    pub(crate) fn without_parts(self, marks: &Marks, summary: &Summary, start: f64) -> Vec<f64> {
        let (Some(usual), Some(moments)) = (marks.divided(summary, start), marks.moments(summary))
        else {
            return Vec::new();
        };
        let parts = prediction::without_parts(&marks.found, &moments).into_iter();
        let parts = parts.map(|iteration| Prediction { iteration, ..usual });
        match self {
            Measure::Loop => parts
                .map(|part| part.iteration * marks.found.iterations() as f64)
                .collect(),
            Measure::Iterations(number) => parts.map(|part| part.total(number)).collect(),
            Measure::Rest | Measure::WholeLoop => Vec::new(),
        }
    }

    /// The compared time of a run, in seconds; `None` if it is unknown. `start` is the time of the
    /// run's start, in seconds.
    pub fn seconds(self, marks: Option<&Marks>, summary: &Summary, start: f64) -> Option<f64> {
        let divided = || marks?.divided(summary, start);
        match self {
            Measure::Rest => Some((summary.virtual_s? - start).max(0.0)),
            Measure::Loop => {
                let iterations = marks?.found.iterations() as f64;
                Some(divided()?.iteration * iterations)
            }
            Measure::WholeLoop => Some(marks?.counted(summary)?.0),
            Measure::Iterations(number) => Some(divided()?.total(number)),
        }
    }
}
