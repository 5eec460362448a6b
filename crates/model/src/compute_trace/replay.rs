//! The replay of a compute trace by one rank.
//!
//! Calls with a result come in the recorded order, and the sum of all times up to each of them is
//! that of the record. The number of calls without a result may differ: such a call takes its share
//! of the time recorded for calls of its name, and none if there are more of them than were
//! recorded. Time that fewer of them leave over is charged at the next call.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use datatype::local_work::Rates;

use super::{Entry, STEP};

/// The most lines among which a call without a result is searched.
const AHEAD: usize = 64;

/// The part of a procedure in the sequence of a program's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A call that returns with a result each time.
    Operation,
    /// A call that may return without a result, such as `MPI_Test`.
    Poll,
    /// A reading of the clock, whose number may depend on the time.
    Clock,
}

/// One rank's part of a trace, which gives its calls in order.
pub struct Replay {
    lines: String,
    /// The offset of the next line that is not used up.
    at: usize,
    /// The calls of that line that have been replayed, if it is of calls without a result.
    used: u64,
    /// The time of that line has been charged, if it is of a call with a result.
    paid: bool,
    /// Recorded time before the next call, in nanoseconds.
    carried: u64,
    /// The number of calls with a result so far.
    calls: u64,
    /// The marked steps that have begun since they were last taken.
    begun: u32,
}

/// The times of work inside MPI in the packed trace of so many ranks.
///
/// # Errors
/// The file cannot be read, or it is no such trace.
pub fn rates(packed: &File, ranks: usize) -> io::Result<Rates> {
    let mut start = [0; 8];
    packed.read_exact_at(&mut start, ranks as u64 * 8)?;
    let start = u64::from_ne_bytes(start);
    let len = packed.metadata()?.len().checked_sub(start);
    let len = len.ok_or_else(|| io::Error::other("it is cut off"))?;
    let mut lines = vec![0; len as usize];
    packed.read_exact_at(&mut lines, start)?;
    let lines = String::from_utf8(lines).map_err(io::Error::other)?;
    let mut rates = Rates::none();
    for line in lines.lines() {
        let read = rates.read(line);
        read.ok_or_else(|| io::Error::other(format!("`{line}` is no time of work inside MPI")))?;
    }
    Ok(rates)
}

impl Replay {
    /// Reads the part of `rank`.
    pub fn open(packed: &File, rank: usize) -> io::Result<Replay> {
        let mut ends = [0; 16];
        packed.read_exact_at(&mut ends, rank as u64 * 8)?;
        let (words, _) = ends.as_chunks::<8>();
        let [from, to] = [0, 1].map(|at| u64::from_ne_bytes(words[at]));
        if from > to || to > packed.metadata()?.len() {
            return Err(io::Error::other(format!("it has no part for rank {rank}")));
        }
        let mut lines = vec![0; (to - from) as usize];
        packed.read_exact_at(&mut lines, from)?;
        let lines = String::from_utf8(lines).map_err(io::Error::other)?;
        Ok(Replay::of(lines))
    }

    fn of(lines: String) -> Replay {
        let mut replay = Replay {
            lines,
            at: 0,
            used: 0,
            paid: false,
            carried: 0,
            calls: 0,
            begun: 0,
        };
        replay.pass_marks();
        replay
    }

    /// The number of marked steps that begin now: after the call that has just returned, or before
    /// the first one.
    pub fn take_steps(&mut self) -> u32 {
        std::mem::take(&mut self.begun)
    }

    /// Passes the marks of steps at the present line.
    fn pass_marks(&mut self) {
        while let Some(rest) = self.lines[self.at..].strip_prefix(STEP)
            && rest.starts_with('\n')
        {
            self.at += STEP.len() + 1;
            self.begun += 1;
        }
    }

    /// A call begins. Returns the computing time before it, in nanoseconds. An error names the
    /// recorded call if it is another.
    pub fn enter(&mut self, call: &str, kind: CallKind) -> Result<u64, String> {
        match kind {
            CallKind::Operation => self.complete(call)?,
            CallKind::Poll | CallKind::Clock => self.take_share(call, kind),
        }
        Ok(std::mem::take(&mut self.carried))
    }

    /// The call returns. An error names the recorded call if this one has a result, unlike the
    /// recorded one.
    pub fn leave(&mut self, call: &str, kind: CallKind, has_result: bool) -> Result<(), String> {
        match kind {
            CallKind::Poll if has_result => self.complete(call),
            _ => Ok(()),
        }
    }

    /// Uses up the line of a call with a result, and the lines of calls without one before it.
    fn complete(&mut self, call: &str) -> Result<(), String> {
        self.calls += 1;
        let number = self.calls;
        while self.entry().is_some_and(|entry| entry.times > 0) {
            self.next_line();
        }
        match self.entry() {
            Some(entry) if entry.name == call => {
                self.next_line();
                Ok(())
            }
            Some(entry) => Err(format!(
                "its call {number} is {call}, and {} was recorded there",
                entry.name
            )),
            None => Err(format!(
                "its call {number} is {call}, and {} calls were recorded",
                number - 1
            )),
        }
    }

    /// Carries the share of one call without a result.
    fn take_share(&mut self, call: &str, kind: CallKind) {
        let mut ahead = self.lines[self.at..].lines().map_while(Entry::read);
        let exhausted = ahead
            .next()
            .is_some_and(|entry| entry.name == call && entry.times > 0 && self.used == entry.times);
        if exhausted {
            // One more than were recorded here. Later lines of this name are for later calls,
            // unless the next is that of the poll with a result.
            if ahead.next().is_none_or(|entry| entry.times > 0) {
                return;
            }
            self.next_line();
        }
        let ahead = self.lines[self.at..].lines().map_while(Entry::read);
        let mut unsuccessful = ahead.take_while(|entry| entry.times > 0).take(AHEAD);
        if let Some(lines) = unsuccessful.position(|entry| entry.name == call) {
            (0..lines).for_each(|_| self.next_line());
        }
        let Some(Entry { nanos, times, .. }) = self.entry().filter(|entry| entry.name == call)
        else {
            return;
        };
        if times > 0 {
            let sum =
                |calls: u64| (u128::from(nanos) * u128::from(calls) / u128::from(times)) as u64;
            self.carried += sum(self.used + 1) - sum(self.used);
            self.used += 1;
        } else if kind == CallKind::Poll && !self.paid {
            // The poll with a result, or one that would have been it where it was recorded.
            self.carried += nanos;
            self.paid = true;
        }
    }

    fn entry(&self) -> Option<Entry<'_>> {
        Entry::read(self.lines[self.at..].lines().next()?)
    }

    /// Goes on to the next line, and carries the time of this one that has not been charged.
    fn next_line(&mut self) {
        let Some(line) = self.lines[self.at..].lines().next() else {
            return;
        };
        if let Some(Entry { nanos, times, .. }) = Entry::read(line) {
            let charged = match times {
                0 if self.paid => nanos,
                0 => 0,
                _ => (u128::from(nanos) * u128::from(self.used) / u128::from(times)) as u64,
            };
            self.carried += nanos - charged;
        }
        self.at += line.len() + 1;
        (self.used, self.paid) = (0, false);
        self.pass_marks();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_trace::ComputeTrace;
    use CallKind::{Clock, Operation, Poll};

    fn replay(lines: &str) -> Replay {
        Replay::of(lines.into())
    }

    /// The times before polls that find nothing, then before one that completes.
    fn poll(replay: &mut Replay, unsuccessful: usize) -> Vec<u64> {
        let poll = |replay: &mut Replay, found| {
            let time = replay.enter("MPI_Test", Poll).unwrap();
            replay.leave("MPI_Test", Poll, found).unwrap();
            time
        };
        let mut times: Vec<u64> = (0..unsuccessful).map(|_| poll(replay, false)).collect();
        times.push(poll(replay, true));
        times
    }

    #[test]
    fn each_rank_reads_its_own_part() {
        use std::os::fd::FromRawFd;
        let trace = ComputeTrace {
            program: "./pi".into(),
            ranks: vec!["MPI_Send 12\n".into(), String::new()],
            work: {
                let mut work = Rates::none();
                work.read("copy 4096 50000").unwrap();
                work
            },
        };
        // SAFETY: a new descriptor with no other owner.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"packed".as_ptr(), 0)) };
        file.write_all_at(&trace.pack(), 0).unwrap();
        let mut first = Replay::open(&file, 0).unwrap();
        assert_eq!(first.enter("MPI_Send", Operation), Ok(12));
        let why = Replay::open(&file, 1).unwrap().enter("MPI_Send", Operation);
        assert!(why.unwrap_err().contains("0 calls were recorded"));
        assert!(Replay::open(&file, 2).is_err());
        assert_eq!(rates(&file, 2).unwrap(), trace.work);
        assert!(rates(&file, 3).is_err());
    }

    #[test]
    fn another_sequence_of_calls_is_refused_with_both_names() {
        let mut other = replay("MPI_Send 12\nMPI_Test 5 x3\nMPI_Recv 0\n");
        assert_eq!(other.enter("MPI_Send", Operation), Ok(12));
        let why = other.enter("MPI_Bcast", Operation).unwrap_err();
        assert_eq!(
            why,
            "its call 2 is MPI_Bcast, and MPI_Recv was recorded there"
        );
        let mut other = replay("MPI_Send 12\n");
        assert_eq!(other.enter("MPI_Test", Poll), Ok(0));
        let why = other.leave("MPI_Test", Poll, true).unwrap_err();
        assert_eq!(
            why,
            "its call 1 is MPI_Test, and MPI_Send was recorded there"
        );
    }

    #[test]
    fn a_marked_step_begins_with_the_return_of_the_call_before_it() {
        let mut marked = replay("MPI_Send 3\nstep\nMPI_Test 9 x1\nMPI_Test 4\nstep\nMPI_Recv 1\n");
        assert_eq!(marked.take_steps(), 0);
        assert_eq!(marked.enter("MPI_Send", Operation), Ok(3));
        assert_eq!([marked.take_steps(), marked.take_steps()], [1, 0]);
        assert_eq!(poll(&mut marked, 1), [9, 4]);
        assert_eq!(marked.take_steps(), 1);
        assert_eq!(marked.enter("MPI_Recv", Operation), Ok(1));
        assert_eq!(replay("step\nMPI_Send 3\n").take_steps(), 1);
    }

    #[test]
    fn as_many_polls_as_recorded_take_the_recorded_times() {
        let mut same = replay("MPI_Test 100 x4\nMPI_Test 9\nMPI_Send 3\n");
        assert_eq!(poll(&mut same, 4), [25, 25, 25, 25, 9]);
        assert_eq!(same.enter("MPI_Send", Operation), Ok(3));
    }

    #[test]
    fn fewer_polls_leave_their_time_to_the_next_call_and_more_take_none() {
        let lines = "MPI_Test 100 x4\nMPI_Test 9\nMPI_Send 3\n";
        let mut fewer = replay(lines);
        assert_eq!(poll(&mut fewer, 1), [25, 25]);
        assert_eq!(fewer.enter("MPI_Send", Operation), Ok(50 + 9 + 3));
        let mut more = replay(lines);
        assert_eq!(poll(&mut more, 6), [25, 25, 25, 25, 9, 0, 0]);
        assert_eq!(more.enter("MPI_Send", Operation), Ok(3));
    }

    #[test]
    fn the_clock_is_read_at_its_place_among_polls() {
        let lines = "MPI_Test 100 x4\nMPI_Wtime 7 x1\nMPI_Test 20 x2\nMPI_Test 9\nMPI_Wtime 50 x1\nMPI_Send 3\n";
        let mut fewer = replay(lines);
        assert_eq!(fewer.enter("MPI_Test", Poll), Ok(25));
        assert_eq!(fewer.enter("MPI_Wtime", Clock), Ok(75 + 7));
        assert_eq!(
            fewer.enter("MPI_Wtime", Clock),
            Ok(0),
            "one more than recorded"
        );
        assert_eq!(poll(&mut fewer, 0), [10]);
        assert_eq!(fewer.enter("MPI_Wtime", Clock), Ok(10 + 9 + 50));
        assert_eq!(fewer.enter("MPI_Send", Operation), Ok(3));
    }
}
