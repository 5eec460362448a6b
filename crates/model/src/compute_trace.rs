//! Compute traces: the time that ranks compute between their MPI calls, as a file. For every call
//! with a result it has the call's name, the nanoseconds before it, and its key ([`CallKey`]), by
//! which equal steps are found. Polls that found nothing and readings of the clock have lines of
//! their own, one for equal calls in a row, because their number depends on the machine. A run with
//! a trace is deterministic. Several traces of one program combine to one that a disturbance of one
//! run does not spoil ([`ComputeTrace::middle`]).
//!
//! Lines before those of the ranks may have the times of work inside MPI, such as the sums of
//! reductions, on the computer of the recording ([`Rates`]).
//!
//! A trace for a replay has no keys, and may mark where steps begin
//! ([`ComputeTrace::with_steps`]): the machine keeps the times at which ranks get there.
//!
//! Invariant: a file is used only if its version, program, number of ranks and the name of each
//! call with a result match.

mod key;
mod replay;

use std::fmt::Write;
use std::fs::File;

use datatype::local_work::Rates;
pub use device::CallKey;

use crate::run_log::{computed, local_work};
pub use replay::{CallKind, Replay, rates};

const TITLE: &str = "# fishplate: what each rank computed before each of its calls, in nanoseconds";
const VERSION: &str = "version 3";
const OLD_VERSIONS: [(&str, &str); 2] = [
    (
        "version 1",
        "does not tell polls without a result from other calls",
    ),
    (
        "version 2",
        "does not tell calls of one procedure apart, by which loops are found",
    ),
];
const END: &str = "end";
/// The beginning of a line with the time of work inside MPI.
const WORK: &str = "work ";
/// The line before the first call of a step.
const STEP: &str = "step";

/// A compute trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeTrace {
    /// The program and its arguments.
    pub program: String,
    /// For each rank, the lines of [`Entry`].
    ranks: Vec<String>,
    /// The times of work inside MPI on the computer of the recording.
    work: Rates,
}

impl ComputeTrace {
    /// The trace that the ranks of a world have recorded in its file. An error gives the reason why
    /// it is unusable.
    pub fn kept(world: &File, program: String, ranks: usize) -> Result<ComputeTrace, String> {
        let calls = computed(world).map_err(|why| why.to_string())?;
        if calls.lost > 0 {
            return Err(format!(
                "{} calls and more are too many to be kept; {} are missing",
                calls.entries.len(),
                calls.lost
            ));
        }
        let mut lines = vec![String::new(); ranks];
        for call in calls.entries {
            let lines = lines.get_mut(call.rank as usize);
            let lines = lines.ok_or("it has been written over")?;
            let entry = Entry {
                name: &call.name,
                nanos: call.nanos,
                times: call.times,
                key: &key::text(call.key),
            };
            entry.write(lines);
        }
        Ok(ComputeTrace {
            program,
            ranks: lines,
            work: local_work(world).map_err(|why| why.to_string())?,
        })
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// The contents of the file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{TITLE}\n{VERSION}\nprogram {}\nranks {}\n",
            self.program,
            self.ranks.len()
        );
        for line in self.work.lines().lines() {
            text.push_str(&format!("{WORK}{line}\n"));
        }
        for (rank, lines) in self.ranks.iter().enumerate() {
            let calls = lines.lines().count();
            text.push_str(&format!("rank {rank} calls {calls}\n{lines}"));
        }
        text + END + "\n"
    }

    /// Reads the contents of a file. An error names the line and the expected contents.
    pub fn parse(text: &str) -> Result<ComputeTrace, String> {
        let mut lines = text.split_terminator('\n').enumerate();
        let mut next = |wanted: &str| match lines.next() {
            Some((at, line)) => Ok((at + 1, line)),
            None => Err(format!(
                "it ends where {wanted} should be: it has been cut off"
            )),
        };
        let wrong = |at: usize, wanted: &str, line: &str| {
            Err(format!(
                "line {at}: wanted is {wanted}, and there is `{line}`"
            ))
        };
        for wanted in [TITLE, VERSION] {
            let (at, line) = next(wanted)?;
            if let Some((old, lack)) = OLD_VERSIONS.iter().find(|old| old.0 == line) {
                return Err(format!(
                    "line {at}: it is of {old}, which {lack}; record it again"
                ));
            }
            if line != wanted {
                return wrong(at, &format!("`{wanted}`"), line);
            }
        }
        let (at, line) = next("the program")?;
        let Some(program) = line.strip_prefix("program ") else {
            return wrong(at, "`program` and its words", line);
        };
        let (at, line) = next("the number of ranks")?;
        let Some(size) = number(line, "ranks ") else {
            return wrong(at, "`ranks` and their number", line);
        };
        let (mut ranks, mut work) = (Vec::new(), Rates::none());
        for rank in 0..size {
            let wanted = format!("rank {rank} calls ");
            let mut next_line = || next(&format!("`{wanted}` and their number"));
            let (mut at, mut line) = next_line()?;
            while let Some(rate) = line.strip_prefix(WORK).filter(|_| rank == 0) {
                if work.read(rate).is_none() {
                    return wrong(at, "a kind of work, a length and picoseconds", line);
                }
                (at, line) = next_line()?;
            }
            let Some(calls) = number(line, &wanted) else {
                return wrong(at, &format!("`{wanted}` and their number"), line);
            };
            let mut own = String::new();
            for call in 0..calls {
                let (at, line) = next(&format!("call {} of rank {rank}", call + 1))?;
                let is_known = |entry: Entry| key::parse(entry.key).is_some();
                if line != STEP && !Entry::read(line).is_some_and(is_known) {
                    return wrong(at, "a call's name and nanoseconds", line);
                }
                own.push_str(line);
                own.push('\n');
            }
            ranks.push(own);
        }
        match next(&format!("`{END}`"))? {
            (_, END) => Ok(ComputeTrace {
                program: program.into(),
                ranks,
                work,
            }),
            (at, line) => wrong(at, &format!("`{END}`"), line),
        }
    }

    /// Checks that the trace is of this program and number of ranks. An error names those of the
    /// trace.
    pub fn check(&self, program: &str, ranks: usize) -> Result<(), String> {
        if self.ranks.len() != ranks {
            let kept = self.ranks.len();
            return Err(format!("it is of {kept} ranks, and this job has {ranks}"));
        }
        if self.program != program {
            let kept = &self.program;
            return Err(format!("it is of `{kept}`, and this is `{program}`"));
        }
        Ok(())
    }

    /// The computing of all ranks together, in nanoseconds.
    pub fn total(&self) -> u64 {
        let entries = self.ranks.iter().flat_map(|lines| lines.lines());
        let nanos = entries.filter_map(Entry::read).map(|entry| entry.nanos);
        nanos.fold(0, u64::saturating_add)
    }

    /// The trace in which all computing, that inside MPI too, takes `thousandths` / 1000 of its
    /// time.
    pub fn scaled(&self, thousandths: u64) -> ComputeTrace {
        let scaled = |entry: Entry| {
            let nanos = u128::from(entry.nanos) * u128::from(thousandths) / 1000;
            nanos.min(u64::MAX.into()) as u64
        };
        let ranks = self.ranks.iter().map(|lines| {
            let mut text = String::new();
            for line in lines.lines() {
                match Entry::read(line) {
                    Some(entry) => {
                        let nanos = scaled(entry);
                        Entry { nanos, ..entry }.write(&mut text);
                    }
                    None => step(&mut text),
                }
            }
            text
        });
        ComputeTrace {
            program: self.program.clone(),
            ranks: ranks.collect(),
            work: self.work.scaled(thousandths),
        }
    }

    /// The calls with a result of a rank, in order: name, key, and the nanoseconds of computing
    /// since the last such call.
    pub fn calls(&self, rank: usize) -> impl Iterator<Item = (&str, CallKey, u64)> {
        let lines = self.ranks.get(rank).map_or("", String::as_str).lines();
        let mut before = 0u64;
        lines.filter_map(Entry::read).filter_map(move |entry| {
            before = before.saturating_add(entry.nanos);
            if entry.times > 0 {
                return None;
            }
            let key = key::parse(entry.key).unwrap_or_default();
            Some((entry.name, key, std::mem::take(&mut before)))
        })
    }

    /// The trace for a replay, with a mark where steps begin: of each rank the numbers of the calls
    /// with a result that are the first of a step, in order. A step begins where the call before
    /// it returns.
    pub fn with_steps(&self, begins: &[Vec<usize>]) -> ComputeTrace {
        let ranks = self.ranks.iter().enumerate().map(|(rank, lines)| {
            let mut begins = begins.get(rank).into_iter().flatten().peekable();
            let mut text = String::with_capacity(lines.len());
            let (mut calls, mut is_first) = (0, true);
            for entry in lines.lines().filter_map(Entry::read) {
                // Polls before a call belong to its step.
                while is_first && begins.next_if(|begin| **begin <= calls).is_some() {
                    step(&mut text);
                }
                Entry { key: "", ..entry }.write(&mut text);
                is_first = entry.times == 0;
                calls += usize::from(is_first);
            }
            begins.for_each(|_| step(&mut text));
            text
        });
        ComputeTrace {
            program: self.program.clone(),
            ranks: ranks.collect(),
            work: self.work.clone(),
        }
    }

    /// The trace in which each call with a result has these nanoseconds of computing before it, as
    /// [`calls`](ComputeTrace::calls) numbers them, and polls and readings of the clock have none.
    pub fn with_computing(&self, nanos: &[Vec<u64>]) -> ComputeTrace {
        let ranks = self.ranks.iter().enumerate().map(|(rank, lines)| {
            let mut nanos = nanos.get(rank).into_iter().flatten();
            let mut text = String::with_capacity(lines.len());
            for entry in lines.lines().filter_map(Entry::read) {
                let nanos = match entry.times {
                    0 => *nanos.next().unwrap_or(&entry.nanos),
                    _ => 0,
                };
                Entry { nanos, ..entry }.write(&mut text);
            }
            text
        });
        ComputeTrace {
            program: self.program.clone(),
            ranks: ranks.collect(),
            work: self.work.clone(),
        }
    }

    /// Whether steps are marked.
    pub fn has_steps(&self) -> bool {
        let mut lines = self.ranks.iter().flat_map(|lines| lines.lines());
        lines.any(|line| line == STEP)
    }

    /// One trace of several of the same program: the median of each call's time. `None` if not all
    /// of them have the same calls, or if there is none.
    pub fn median(traces: &[&ComputeTrace]) -> Option<ComputeTrace> {
        let first = traces.first()?;
        let mut ranks = Vec::new();
        for rank in 0..first.ranks.len() {
            let lines = traces
                .iter()
                .map(|trace| Some(trace.ranks.get(rank)?.lines().map(Entry::read)));
            let mut lines = lines.collect::<Option<Vec<_>>>()?;
            let (mut text, mut nanos) = (String::new(), Vec::new());
            while let Some(entry) = lines[0].next() {
                let entry = entry?;
                nanos.clear();
                nanos.push(entry.nanos);
                for others in &mut lines[1..] {
                    let other = others.next()??;
                    if !other.is_of(&entry) {
                        return None;
                    }
                    nanos.push(other.nanos);
                }
                let nanos = median(&mut nanos);
                Entry { nanos, ..entry }.write(&mut text);
            }
            if lines.iter_mut().any(|others| others.next().is_some()) {
                return None;
            }
            ranks.push(text);
        }
        let fits = |trace: &&ComputeTrace| trace.ranks.len() == ranks.len();
        traces.iter().all(fits).then(|| ComputeTrace {
            program: first.program.clone(),
            ranks,
            work: Rates::median(traces.iter().map(|trace| &trace.work)),
        })
    }

    /// One trace for several of the same program: their [`median`](ComputeTrace::median), or where
    /// their calls differ, the one whose total computing is in the middle. `None` if there is none.
    pub fn middle(traces: &[&ComputeTrace]) -> Option<ComputeTrace> {
        ComputeTrace::median(traces).or_else(|| {
            let mut ordered = traces.to_vec();
            ordered.sort_by_key(|trace| trace.total());
            let middle = ordered.get(ordered.len().saturating_sub(1) / 2)?;
            Some(ComputeTrace {
                work: Rates::median(traces.iter().map(|trace| &trace.work)),
                ..(*middle).clone()
            })
        })
    }

    /// The form that ranks read: the offsets of the ranks' parts, the parts, and the times of work
    /// inside MPI. Each rank reads its own part, and these times ([`rates`]).
    pub fn pack(&self) -> Vec<u8> {
        let mut place = (self.ranks.len() as u64 + 1) * 8;
        let mut bytes = place.to_ne_bytes().to_vec();
        for lines in &self.ranks {
            place += lines.len() as u64;
            bytes.extend(place.to_ne_bytes());
        }
        bytes.extend(self.ranks.iter().flat_map(|lines| lines.bytes()));
        bytes.extend(self.work.lines().bytes());
        bytes
    }
}

/// The median; of an even number the mean of the two in the middle.
fn median(numbers: &mut [u64]) -> u64 {
    numbers.sort_unstable();
    let [low, high] = [(numbers.len() - 1) / 2, numbers.len() / 2].map(|at| numbers[at]);
    low.midpoint(high)
}

fn number(line: &str, before: &str) -> Option<usize> {
    line.strip_prefix(before)?.parse().ok()
}

fn step(text: &mut String) {
    text.push_str(STEP);
    text.push('\n');
}

/// One line of a rank: a call with a result, or equal calls in a row without one. The latter have
/// their number, as in `MPI_Test 730 x12`. A key follows, as in `MPI_Send 12 c257,s4,p-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<'a> {
    name: &'a str,
    /// The computing time before the call, or before all of the calls.
    nanos: u64,
    /// 0 for a call with a result, else the number of calls.
    times: u64,
    /// The key as text; empty without one.
    key: &'a str,
}

impl<'a> Entry<'a> {
    fn read(line: &'a str) -> Option<Entry<'a>> {
        let mut words = line.split(' ');
        let (name, nanos) = (words.next()?, words.next()?);
        let (mut times, mut key) = (0, "");
        for word in words {
            match word.strip_prefix('x') {
                Some(number) => times = number.parse().ok().filter(|times| *times > 0)?,
                None if key.is_empty() && !word.is_empty() => key = word,
                None => return None,
            }
        }
        Some(Entry {
            name,
            nanos: nanos.parse().ok()?,
            times,
            key,
        })
    }

    /// Whether both are of the same call.
    fn is_of(&self, other: &Entry) -> bool {
        (self.name, self.times, self.key) == (other.name, other.times, other.key)
    }

    fn write(&self, text: &mut String) {
        let Entry {
            name,
            nanos,
            times,
            key,
        } = self;
        // A String takes every text.
        let _ = write!(text, "{name} {nanos}");
        if *times > 0 {
            let _ = write!(text, " x{times}");
        }
        if !key.is_empty() {
            let _ = write!(text, " {key}");
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computing() -> ComputeTrace {
        ComputeTrace {
            program: "./pi 7".into(),
            ranks: vec![
                "MPI_Send 12\nMPI_Test 70 x7\nMPI_Recv 0\n".into(),
                String::new(),
            ],
            work: Rates::none(),
        }
    }

    #[test]
    fn a_file_comes_back_as_it_was_and_no_beginning_of_it_does() {
        let text = computing().text();
        assert_eq!(ComputeTrace::parse(&text), Ok(computing()));
        for lines in 0..text.lines().count() {
            let cut: String = text.split_inclusive('\n').take(lines).collect();
            let why = ComputeTrace::parse(&cut).unwrap_err();
            assert!(why.contains("cut off"), "{why}");
        }
        for (right, wrong) in [(" 12", ""), (" x7", " x0"), (" x7", " 7")] {
            let why = ComputeTrace::parse(&text.replace(right, wrong)).unwrap_err();
            assert!(why.contains("wanted is a call's name"), "{why}");
        }
    }

    #[test]
    fn times_of_work_inside_mpi_are_kept_and_scaled() {
        let mut trace = computing();
        trace.work.read("MPI_SUM:MPI_DOUBLE 4096 51200").unwrap();
        trace.work.read("function:0 1 70000000").unwrap();
        let text = trace.text();
        assert_eq!(ComputeTrace::parse(&text), Ok(trace.clone()));
        let slower = trace.scaled(2000).with_steps(&[]).with_computing(&[]);
        assert_eq!(slower.work, trace.work.scaled(2000));
        assert_eq!(
            ComputeTrace::median(&[&trace, &computing()]).unwrap().work,
            trace.work
        );
        for (right, wrong) in [("work MPI_SUM", "work MPI_SAM"), (" 51200", " x")] {
            let why = ComputeTrace::parse(&text.replace(right, wrong)).unwrap_err();
            assert!(why.contains("wanted is a kind of work"), "{why}");
        }
    }

    fn of(lines: &[&str]) -> ComputeTrace {
        ComputeTrace {
            program: "./pi 7".into(),
            ranks: lines.iter().map(|lines| (*lines).into()).collect(),
            work: Rates::none(),
        }
    }

    #[test]
    fn the_median_of_each_call_leaves_out_a_disturbance() {
        let quiet = of(&["MPI_Send 10\nMPI_Test 70 x7\n", "MPI_Recv 5\n"]);
        let disturbed = of(&["MPI_Send 9000\nMPI_Test 72 x7\n", "MPI_Recv 1\n"]);
        let third = of(&["MPI_Send 12\nMPI_Test 90 x7\n", "MPI_Recv 6\n"]);
        let wanted = of(&["MPI_Send 12\nMPI_Test 72 x7\n", "MPI_Recv 5\n"]);
        let all = [&quiet, &disturbed, &third];
        assert_eq!(ComputeTrace::median(&all), Some(wanted.clone()));
        assert_eq!(ComputeTrace::middle(&all), Some(wanted));
        // Of two the mean.
        let wanted = of(&["MPI_Send 11\nMPI_Test 80 x7\n", "MPI_Recv 5\n"]);
        assert_eq!(ComputeTrace::median(&[&quiet, &third]), Some(wanted));
        assert_eq!(ComputeTrace::median(&[]), None);
    }

    #[test]
    fn where_calls_differ_one_whole_trace_is_taken() {
        let short = of(&["MPI_Test 10 x1\nMPI_Recv 5\n"]);
        let middle = of(&["MPI_Test 20 x2\nMPI_Recv 5\n"]);
        let long = of(&["MPI_Test 90 x9\nMPI_Recv 5\n"]);
        let more = of(&["MPI_Test 10 x1\nMPI_Recv 5\nMPI_Send 1\n"]);
        let wider = of(&["MPI_Test 10 x1\nMPI_Recv 5\n", "MPI_Recv 5\n"]);
        for other in [&middle, &more, &wider] {
            assert_eq!(ComputeTrace::median(&[&short, other]), None, "{other:?}");
            assert_eq!(ComputeTrace::median(&[other, &short]), None, "{other:?}");
        }
        let found = ComputeTrace::middle(&[&long, &short, &middle]);
        assert_eq!(found, Some(middle));
    }

    #[test]
    fn a_faster_processor_shortens_every_time() {
        let trace = of(&["MPI_Send 1000\nMPI_Test 70 x7\n"]);
        assert_eq!(trace.scaled(500), of(&["MPI_Send 500\nMPI_Test 35 x7\n"]));
        assert_eq!((trace.total(), trace.scaled(1000)), (1070, trace.clone()));
        assert_eq!(
            of(&["MPI_Send 18446744073709551615\n"])
                .scaled(2000)
                .total(),
            u64::MAX
        );
    }

    #[test]
    fn a_file_of_an_older_version_is_refused_with_the_remedy() {
        for (old, _) in OLD_VERSIONS {
            let why = ComputeTrace::parse(&computing().text().replace(VERSION, old)).unwrap_err();
            assert!(
                why.starts_with(&format!("line 2: it is of {old}"))
                    && why.ends_with("record it again"),
                "{why}"
            );
        }
    }

    #[test]
    fn calls_have_their_keys_and_the_computing_since_the_last_one() {
        let trace =
            of(&["MPI_Send 5 c257,s4,p-1\nMPI_Test 7 x2\nMPI_Wait 1\nMPI_Win_create 0 n\n"]);
        let text = trace.text();
        assert_eq!(ComputeTrace::parse(&text), Ok(trace.clone()));
        let send = CallKey {
            comm: Some(257),
            size: Some(4),
            peer: Some(-1),
            constructs: false,
        };
        let made = CallKey {
            constructs: true,
            ..CallKey::default()
        };
        let calls: Vec<_> = trace.calls(0).collect();
        let wait = ("MPI_Wait", CallKey::default(), 8);
        assert_eq!(
            calls,
            [("MPI_Send", send, 5), wait, ("MPI_Win_create", made, 0)]
        );
        assert_eq!(trace.calls(1).count(), 0);
        let other =
            of(&["MPI_Send 5 c257,s5,p-1\nMPI_Test 7 x2\nMPI_Wait 1\nMPI_Win_create 0 n\n"]);
        assert_eq!(ComputeTrace::median(&[&trace, &other]), None);
        let why = ComputeTrace::parse(&text.replace("c257,", "q7,")).unwrap_err();
        assert!(why.contains("wanted is a call's name"), "{why}");
    }

    #[test]
    fn computing_can_be_replaced_call_by_call() {
        let trace = of(&["MPI_Send 1 p1\nMPI_Test 7 x2\nMPI_Wait 1\n", ""]);
        let other = trace.with_computing(&[vec![5, 6], Vec::new()]);
        assert_eq!(
            other,
            of(&["MPI_Send 5 p1\nMPI_Test 0 x2\nMPI_Wait 6\n", ""])
        );
    }

    #[test]
    fn steps_are_marked_where_the_call_before_returns() {
        let trace = of(&[
            "MPI_Send 1 p1\nMPI_Test 7 x2\nMPI_Wait 1\nMPI_Send 2 p1\n",
            "",
        ]);
        let marked = trace.with_steps(&[vec![1, 2, 3], Vec::new()]);
        let wanted = "MPI_Send 1\nstep\nMPI_Test 7 x2\nMPI_Wait 1\nstep\nMPI_Send 2\nstep\n";
        assert_eq!(marked, of(&[wanted, ""]));
        assert_eq!(ComputeTrace::parse(&marked.text()), Ok(marked.clone()));
        assert!(marked.has_steps() && !trace.has_steps());
        assert_eq!(marked.scaled(1000), marked);
        assert_eq!(marked.total(), trace.total());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(computing().check("./pi 7", 2), Ok(()));
        assert!(
            computing()
                .check("./pi 8", 2)
                .unwrap_err()
                .contains("`./pi 8`")
        );
        assert!(
            computing()
                .check("./pi 7", 3)
                .unwrap_err()
                .contains("this job has 3")
        );
    }
}
