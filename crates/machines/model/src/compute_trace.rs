//! Compute traces: the time that ranks compute between their MPI calls, as a file. For every call
//! it has the call's name, the nanoseconds of computing before it, and the call's key
//! ([`CallKey`]), by which equal steps are found. Polls and readings of the clock have lines of
//! their own, one for equal calls in a row, because their number depends on the machine
//! ([`entry`]). A run with a trace is deterministic. Several traces of one program combine to one
//! in which a disturbance of one run has no effect ([`ComputeTrace::middle`]).
//!
//! Lines before those of the ranks may contain the times of work inside MPI, such as the sums of
//! reductions, measured on the computer of the recording ([`Rates`]).
//!
//! A trace for a replay keeps only the keys of receives from any source, and may mark where steps
//! begin ([`ComputeTrace::with_steps`]): the machine records when ranks reach the marks.
//!
//! Invariants: a file is used only if its version, program and number of ranks match. Where nothing
//! in it depends on time, the name of each sure call must match too ([`Replay`]).

mod entry;
mod key;
pub mod made;
mod median;
mod other_calls;
mod replay;

use std::fs::File;

use datatype::local_work::Rates;
pub use device::CallKey;

use crate::run_log::{computed, local_work};
use entry::{Entry, STEP};
pub use other_calls::Differences;
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
/// The prefix of a line with the time of work inside MPI.
const WORK: &str = "work ";

/// A compute trace: the calls of all ranks, with the computing before each.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeTrace {
    /// The traced program and its arguments.
    pub program: String,
    /// For each rank its lines, each of which is an [`Entry`] or a mark.
    ranks: Vec<String>,
    /// The times of work inside MPI on the computer of the recording.
    pub work: Rates,
}

impl ComputeTrace {
    /// Reads the trace that the ranks of a world have recorded in the world's file. An error if it
    /// is unusable.
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

    /// The number of ranks of the trace.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// The contents of the file of the compute trace.
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

    /// Checks that the trace is of this program and number of ranks. An error states those of the
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

    /// The computing time of all ranks together, in nanoseconds.
    pub fn total(&self) -> u64 {
        let entries = self.ranks.iter().flat_map(|lines| lines.lines());
        let nanos = entries.filter_map(Entry::read).map(|entry| entry.nanos);
        nanos.fold(0, u64::saturating_add)
    }

    /// The number of calls of all ranks together.
    pub fn number_of_calls(&self) -> u64 {
        let entries = self.ranks.iter().flat_map(|lines| lines.lines());
        entries
            .filter_map(Entry::read)
            .map(|entry| entry.calls())
            .sum()
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

    /// The calls of a rank, without polls, in order. For each: name, key, and the nanoseconds of
    /// computing since the previous such call.
    pub fn calls(&self, rank: usize) -> impl Iterator<Item = (&str, CallKey, u64)> {
        let lines = self.ranks.get(rank).map_or("", String::as_str).lines();
        let mut before = 0u64;
        lines.filter_map(Entry::read).filter_map(move |entry| {
            before = before.saturating_add(entry.nanos);
            if entry.is_poll() {
                return None;
            }
            let key = key::parse(entry.key).unwrap_or_default();
            Some((entry.name, key, std::mem::take(&mut before)))
        })
    }

    /// The trace for a replay, with marks where steps begin. `begins`: for each rank the numbers of
    /// the first calls of steps, ascending, as [`calls`](ComputeTrace::calls) counts. A step begins
    /// where the call before it returns.
    pub fn with_steps(&self, begins: &[Vec<usize>]) -> ComputeTrace {
        let ranks = self.ranks.iter().enumerate().map(|(rank, lines)| {
            let mut begins = begins.get(rank).into_iter().flatten().peekable();
            let mut text = String::with_capacity(lines.len());
            let (mut calls, mut is_first) = (0, true);
            for entry in lines.lines().filter_map(Entry::read) {
                // Polls before a call belong to the same step.
                while is_first && begins.next_if(|begin| **begin <= calls).is_some() {
                    step(&mut text);
                }
                let is_any = !entry.is_poll() && entry.is_choice();
                let key = if is_any { entry.key } else { "" };
                Entry { key, ..entry }.write(&mut text);
                is_first = !entry.is_poll();
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

    /// The trace with these nanoseconds before each call of each rank, in the order of
    /// [`calls`](ComputeTrace::calls). Polls and readings of the clock have 0.
    pub fn with_computing(&self, nanos: &[Vec<u64>]) -> ComputeTrace {
        let ranks = self.ranks.iter().enumerate().map(|(rank, lines)| {
            let mut nanos = nanos.get(rank).into_iter().flatten();
            let mut text = String::with_capacity(lines.len());
            for entry in lines.lines().filter_map(Entry::read) {
                let nanos = match entry.is_poll() {
                    false => *nanos.next().unwrap_or(&entry.nanos),
                    true => 0,
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

    /// True if the trace marks the beginnings of steps.
    pub fn has_steps(&self) -> bool {
        let mut lines = self.ranks.iter().flat_map(|lines| lines.lines());
        lines.any(|line| line == STEP)
    }

    /// True if the program's calls may depend on time: it polls, reads the clock, or receives from
    /// any source.
    pub fn depends_on_time(&self) -> bool {
        let mut entries = self.ranks.iter().flat_map(|lines| lines.lines());
        entries.any(|line| Entry::read(line).is_some_and(|entry| entry.is_choice()))
    }

    /// The form that ranks read: whether the program may decide by time, the offsets of the ranks'
    /// parts, the parts, and the times of work inside MPI. Each rank reads its own part and those
    /// times ([`rates`]).
    pub fn pack(&self) -> Vec<u8> {
        let mut place = (self.ranks.len() as u64 + 2) * 8;
        let mut bytes = u64::from(self.depends_on_time()).to_ne_bytes().to_vec();
        bytes.extend(place.to_ne_bytes());
        for lines in &self.ranks {
            place += lines.len() as u64;
            bytes.extend(place.to_ne_bytes());
        }
        bytes.extend(self.ranks.iter().flat_map(|lines| lines.bytes()));
        bytes.extend(self.work.lines().bytes());
        bytes
    }
}

fn number(line: &str, before: &str) -> Option<usize> {
    line.strip_prefix(before)?.parse().ok()
}

fn step(text: &mut String) {
    text.push_str(STEP);
    text.push('\n');
}

#[cfg(test)]
pub(crate) mod tests {
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

    pub(crate) fn of(lines: &[&str]) -> ComputeTrace {
        ComputeTrace {
            program: "./pi 7".into(),
            ranks: lines.iter().map(|lines| (*lines).into()).collect(),
            work: Rates::none(),
        }
    }

    #[test]
    fn a_faster_processor_shortens_every_time() {
        let trace = of(&["MPI_Send 1000\nMPI_Test 70 x7\n"]);
        assert_eq!(trace.scaled(500), of(&["MPI_Send 500\nMPI_Test 35 x7\n"]));
        assert_eq!((trace.total(), trace.scaled(1000)), (1070, trace.clone()));
        assert_eq!(trace.number_of_calls(), 8);
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
