//! The computing of a trace: for each call of each rank the nanoseconds before it. Loops are found
//! in it, and its times are scaled, replaced, and combined with those of other traces of the same
//! program ([`Computing::middle`]). With them it becomes a trace again.

mod kind;
mod median;

use std::sync::Arc;

use datatype::local_work::Rates;
use trace::{Builder, Fact, Gaps, Trace};

use crate::call_key::CallKey;
use crate::names::Names;
use crate::sizes::{Moved, Sizes};
use kind::Kind;

/// The computing of a trace, which may differ from the recorded one.
#[derive(Clone, Debug)]
pub struct Computing {
    trace: Arc<Trace>,
    /// The calls of the trace's table.
    calls: Arc<Vec<Described>>,
    /// The lines of each rank.
    ranks: Vec<Vec<Line>>,
    /// The times of work inside MPI.
    work: Rates,
    /// The factor of the times of the program's reduction functions, in thousandths.
    scale: u64,
}

/// A call of a trace's table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Described {
    kind: Kind,
    /// The key, but for the size.
    key: CallKey,
}

/// A line of a rank: a call, or a fact.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    /// The number of the call in the trace's table.
    call: u32,
    /// The class of the length of the message.
    size: Option<u8>,
    /// The computing before the call, in nanoseconds.
    nanos: u64,
}

/// Equal only if both are of one trace.
impl PartialEq for Computing {
    fn eq(&self, other: &Computing) -> bool {
        Arc::ptr_eq(&self.trace, &other.trace)
            && (&self.ranks, &self.work, self.scale) == (&other.ranks, &other.work, other.scale)
    }
}

impl Computing {
    /// The computing of a trace.
    ///
    /// # Errors
    /// A procedure that cannot be replayed, or a time that is none, with the reason.
    pub fn of(trace: Arc<Trace>) -> Result<Computing, String> {
        let names = Names::of(&trace)?;
        let mut work = Rates::none();
        for line in &trace.work {
            let read = work.read(line);
            read.ok_or_else(|| format!("`{line}` is no time of work inside MPI"))?;
        }
        let signature = |at: u32| &trace.signatures[at as usize];
        let described = trace.calls.iter().map(|call| {
            let (method, signature) = (names.method(call.signature), signature(call.signature));
            Described {
                kind: Kind::of(method, signature),
                key: CallKey::of(method, signature, call),
            }
        });
        let calls: Arc<Vec<Described>> = Arc::new(described.collect());
        let moved = trace.calls.iter();
        let moved = moved.map(|call| Moved::of(signature(call.signature), call));
        let moved: Vec<Option<Moved>> = moved.collect();
        let of_rank = |rank: usize| {
            let mut sizes = Sizes::default();
            let lines = trace.calls_of(rank).map(|(call, nanos)| {
                sizes.keep(trace.signature(call), &trace.calls[call as usize]);
                let moved = moved[call as usize].as_ref();
                let size = moved.map(|moved| CallKey::size_of(sizes.of(moved)));
                Line { call, size, nanos }
            });
            lines.collect()
        };
        let ranks = (0..trace.ranks.len()).map(of_rank).collect();
        Ok(Computing {
            trace,
            calls,
            ranks,
            work,
            scale: 1000,
        })
    }

    /// The trace with the recorded computing.
    pub fn recorded(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// The computing time of all ranks together, in nanoseconds.
    pub fn total(&self) -> u64 {
        let lines = self.ranks.iter().flatten();
        lines.fold(0, |sum: u64, line| sum.saturating_add(line.nanos))
    }

    /// The calls of a rank that are steps of the program, in order. For each: name, key, and the
    /// nanoseconds of computing since the previous such call.
    pub fn calls(&self, rank: usize) -> impl Iterator<Item = (&str, CallKey, u64)> {
        let mut before = 0u64;
        self.ranks
            .get(rank)
            .into_iter()
            .flatten()
            .filter_map(move |line| {
                before = before.saturating_add(line.nanos);
                let is_step = self.kind(line) != Kind::Aside;
                let (name, key) = self.named(line);
                is_step.then(|| (name, key, std::mem::take(&mut before)))
            })
    }

    /// The computing with all times, those inside MPI too, multiplied by `thousandths` / 1000.
    pub fn scaled(&self, thousandths: u64) -> Computing {
        let scaled = |nanos: u64| {
            let scaled = u128::from(nanos) * u128::from(thousandths) / 1000;
            scaled.min(u64::MAX.into()) as u64
        };
        Computing {
            work: self.work.scaled(thousandths),
            scale: scaled(self.scale),
            ..self.with_times(|_, line| scaled(line.nanos))
        }
    }

    /// The computing with the times that other processes took of it, as the ranks measured them:
    /// ranks that waited for an interrupted one did so for that long.
    pub fn with_taken(&self) -> Computing {
        let mut with = self.clone();
        for (part, lines) in self.trace.ranks.iter().zip(&mut with.ranks) {
            for taken in part.measured.iter().flat_map(|measured| &measured.taken) {
                if let Some(line) = lines.get_mut(taken.call as usize) {
                    line.nanos = line.nanos.saturating_add(taken.nanos);
                }
            }
        }
        with
    }

    /// The computing with these nanoseconds before each call of each rank, in the order of
    /// [`calls`](Computing::calls). Other lines have 0.
    pub fn replaced(&self, nanos: &[Vec<u64>]) -> Computing {
        let mut given: Vec<_> = nanos.iter().map(|nanos| nanos.iter()).collect();
        self.with_times(|rank, line| match self.kind(line) {
            Kind::Aside => 0,
            _ => {
                let next = given.get_mut(rank).and_then(Iterator::next);
                next.copied().unwrap_or(line.nanos)
            }
        })
    }

    /// The computing with other nanoseconds before each call: those that follow from the rank and
    /// the nanoseconds of now.
    pub(crate) fn with_nanos(&self, mut nanos: impl FnMut(usize, u64) -> u64) -> Computing {
        self.with_times(|rank, line| nanos(rank, line.nanos))
    }

    fn with_times(&self, mut nanos: impl FnMut(usize, &Line) -> u64) -> Computing {
        let mut ranks = self.ranks.clone();
        for (rank, lines) in ranks.iter_mut().enumerate() {
            for line in lines {
                line.nanos = nanos(rank, line);
            }
        }
        Computing {
            ranks,
            ..self.clone()
        }
    }

    /// The trace with this computing, and with marks where steps begin. `begins`: for each rank the
    /// numbers of the first calls of steps, ascending, as [`calls`](Computing::calls) counts. A
    /// step begins where the call before it returns, so polls before a call belong to its step.
    pub fn trace(&self, begins: &[Vec<usize>]) -> Trace {
        let trace = &self.trace;
        let mut builder = Builder::new(trace.program.clone());
        builder.work(&self.work.lines());
        let signatures = trace.signatures.iter();
        let signatures = signatures.map(|one| builder.signature(one.clone()));
        let signatures: Vec<u32> = signatures.collect();
        let numbers = trace.calls.iter();
        let numbers =
            numbers.map(|one| builder.call(signatures[one.signature as usize], one.values.clone()));
        let numbers: Vec<u32> = numbers.collect();
        let mut mark = None;
        for (rank, (part, lines)) in trace.ranks.iter().zip(&self.ranks).enumerate() {
            let mut begins = begins.get(rank).into_iter().flatten().peekable();
            let (mut own, mut gaps) = (Vec::with_capacity(lines.len()), Gaps::default());
            let mut step = |own: &mut Vec<u32>, gaps: &mut Gaps| {
                own.push(*mark.get_or_insert_with(|| {
                    let signature = builder.signature(Fact::Step.signature());
                    builder.call(signature, Vec::new())
                }));
                gaps.push(0, 1);
            };
            let (mut calls, mut is_first) = (0, true);
            for line in lines {
                while is_first && begins.next_if(|begin| **begin <= calls).is_some() {
                    step(&mut own, &mut gaps);
                }
                own.push(numbers[line.call as usize]);
                gaps.push(line.nanos, 1);
                is_first = self.kind(line) != Kind::Aside;
                calls += usize::from(is_first);
            }
            begins.for_each(|_| step(&mut own, &mut gaps));
            let mut functions = Gaps::default();
            for &(picos, run) in part.functions.runs() {
                let picos = u128::from(picos) * u128::from(self.scale) / 1000;
                functions.push(picos.min(u64::MAX.into()) as u64, run);
            }
            builder.rank(&own, gaps, functions);
        }
        builder.finish()
    }

    fn kind(&self, line: &Line) -> Kind {
        self.calls[line.call as usize].kind
    }

    /// The name and the key of a line.
    fn named(&self, line: &Line) -> (&str, CallKey) {
        let key = CallKey {
            size: line.size,
            ..self.calls[line.call as usize].key
        };
        (&self.trace.signature(line.call).name, key)
    }
}

#[cfg(test)]
mod tests;
