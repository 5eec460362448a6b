//! The replay of a compute trace in one rank: the time to charge before each of its calls.
//!
//! A *sure* call is one that always has a result; a poll may return without one. The replay expects
//! sure calls in the recorded order. Between two sure calls, the k-th poll of a procedure takes the
//! time that was recorded before the k-th poll of that procedure, whether or not it has a result. A
//! wait is treated alike; it may also take the time of a poll, which would have had the result.
//! Polls beyond the recorded number take no time. If there are fewer, the remaining time is charged
//! at the next call. So the sum of the times up to each sure call equals the recorded sum.
//!
//! If the program decides by time, its sure calls may differ from the recorded ones, too;
//! [`super::other_calls`] describes how the replay continues. The charged time is then the recorded
//! time, minus the omitted time, plus the added time ([`Differences`]).

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use datatype::local_work::Rates;

use super::entry::{Entry, STEP, is_question, is_wait};
use super::other_calls::{Differences, Other, SureCalls, passed};

/// The greatest number of lines among which a poll or a wait is searched.
const AHEAD: usize = 64;
/// The number of unrecorded readings of the clock in a row that take no time. After more of them,
/// the program seems to wait for the clock alone. A program that measures itself (FFTW's planner)
/// repeats its work twice as often after every 16 readings, until the work takes some time, so the
/// number is small.
const STILL: u32 = 128;
/// The time by which each further such reading takes more than the one before, in nanoseconds.
const TICK: u64 = 1000;

/// The kind of a call, by whether it always returns a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A call that returns with a result each time.
    Operation,
    /// A call that may return without a result, such as `MPI_Test`.
    Poll,
    /// A reading of the clock, whose number may depend on the time.
    Clock,
}

/// The replay of the computing of one rank, from its part of a trace.
pub struct Replay {
    lines: String,
    /// True if the program may decide by time, so that its calls may differ from the recorded ones.
    is_free: bool,
    /// The offset of the present line: the first that is not used up.
    at: usize,
    /// The number of calls of the present line that have been replayed.
    used: u64,
    /// The recorded time to charge at the next call, in nanoseconds.
    carried: u64,
    /// The number of sure calls (those that always have a result) so far.
    calls: u64,
    /// The name of the last call that every run makes (the last sure one).
    last: String,
    /// The number of unrecorded readings of the clock since the last other call.
    still: u32,
    /// The number of marked steps that have begun since the last `take_steps`.
    begun: u32,
    differences: Differences,
    /// The recorded sure calls, collected once a call differs.
    recorded: Option<SureCalls>,
    /// The offsets of later lines that have been replayed already.
    taken: HashSet<usize>,
}

/// Reads the times of work inside MPI from the packed trace of `ranks` ranks.
///
/// # Errors
/// The file cannot be read, or it is not such a trace.
pub fn rates(packed: &File, ranks: usize) -> io::Result<Rates> {
    let mut start = [0; 8];
    packed.read_exact_at(&mut start, (ranks as u64 + 1) * 8)?;
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
    /// Reads the part of `rank` from a packed trace.
    pub fn open(packed: &File, rank: usize) -> io::Result<Replay> {
        let mut is_free = [0; 8];
        packed.read_exact_at(&mut is_free, 0)?;
        let mut ends = [0; 16];
        packed.read_exact_at(&mut ends, (rank as u64 + 1) * 8)?;
        let (words, _) = ends.as_chunks::<8>();
        let [from, to] = [0, 1].map(|at| u64::from_ne_bytes(words[at]));
        if from > to || to > packed.metadata()?.len() {
            return Err(io::Error::other(format!("it has no part for rank {rank}")));
        }
        let mut lines = vec![0; (to - from) as usize];
        packed.read_exact_at(&mut lines, from)?;
        let lines = String::from_utf8(lines).map_err(io::Error::other)?;
        Ok(Replay::of(lines, is_free != [0; 8]))
    }

    fn of(lines: String, is_free: bool) -> Replay {
        let mut replay = Replay {
            lines,
            is_free,
            at: 0,
            used: 0,
            carried: 0,
            calls: 0,
            last: String::new(),
            still: 0,
            begun: 0,
            differences: Differences::default(),
            recorded: None,
            taken: HashSet::new(),
        };
        replay.pass_marks();
        replay
    }

    /// The differences between this run and the recorded one until now.
    pub fn differences(&self) -> &Differences {
        &self.differences
    }

    /// The number of marked steps that begin now: after the call that has just returned, or before
    /// the first one.
    pub fn take_steps(&mut self) -> u32 {
        std::mem::take(&mut self.begun)
    }

    /// Passes marks of steps and lines that have been replayed already, up to the next line.
    fn pass_marks(&mut self) {
        while let Some(line) = self.lines[self.at..].lines().next() {
            let is_mark = line == STEP;
            if !is_mark && (self.taken.is_empty() || !self.taken.remove(&self.at)) {
                break;
            }
            self.at += line.len() + 1;
            self.begun += u32::from(is_mark);
        }
    }

    /// Begins a call. Returns the computing time before it, in nanoseconds. An error names the
    /// recorded call, if that is another and the program does not decide by time.
    pub fn enter(&mut self, call: &str, kind: CallKind) -> Result<u64, String> {
        match kind {
            CallKind::Clock if !self.poll(call) => self.tick(call),
            CallKind::Clock => self.still = 0,
            CallKind::Poll => {
                self.poll(call);
                self.still = 0;
            }
            CallKind::Operation => {
                match () {
                    _ if is_wait(call) => self.wait(call, true),
                    _ if is_question(call) => self.wait(call, false),
                    _ => self.sure(call)?,
                }
                self.still = 0;
            }
        }
        Ok(std::mem::take(&mut self.carried))
    }

    /// The lines of the recorded trace before the next sure call.
    fn gap(&self) -> impl Iterator<Item = Entry<'_>> {
        let lines = self.lines[self.at..].lines().filter(|line| *line != STEP);
        let entries = lines.map_while(Entry::read);
        entries.take_while(|entry| !entry.is_sure())
    }

    /// The next interval of the poll `call`, which is used up, unless a wait comes first. False:
    /// there is none.
    fn poll(&mut self, call: &str) -> bool {
        let polls = self.gap().take_while(|entry| !is_wait(entry.name));
        let polls = polls.take(AHEAD);
        let found = { polls }.position(|entry| entry.name == call);
        if let Some(lines) = found {
            (0..lines).for_each(|_| self.next_line());
            self.take();
        }
        found.is_some()
    }

    /// Takes the next interval of a wait or a question. A wait may take that of a poll instead.
    fn wait(&mut self, call: &str, may_be_poll: bool) {
        let found = self.gap().take(AHEAD).position(|entry| entry.name == call);
        let is_poll = self.gap().next().is_some_and(|entry| entry.is_poll());
        match found {
            Some(lines) => (0..lines).for_each(|_| self.next_line()),
            None if may_be_poll && is_poll => (),
            None => return,
        }
        self.take();
    }

    /// Uses up the line of a sure call, and the lines before that line.
    fn sure(&mut self, call: &str) -> Result<(), String> {
        self.calls += 1;
        if self.next_sure() != Some(call) {
            let is_apart = self.other(call)?;
            if is_apart {
                self.last = call.to_owned();
                return Ok(());
            }
        }
        while self.entry().is_some_and(|entry| !entry.is_sure()) {
            self.next_line();
        }
        self.take();
        self.last.clear();
        self.last.push_str(call);
        Ok(())
    }

    /// The name of the next sure call in the recorded trace.
    fn next_sure(&self) -> Option<&str> {
        let mut at = self.at;
        for line in self.lines[self.at..].lines() {
            let sure = Entry::read(line).filter(Entry::is_sure);
            if let Some(sure) = sure.filter(|_| !self.taken.contains(&at)) {
                return Some(sure.name);
            }
            at += line.len() + 1;
        }
        None
    }

    /// Handles a sure call that is not the next recorded one. True: it is separate, with its own
    /// computing, and the next recorded call does not change. False: the next recorded call is now
    /// this one.
    #[cold]
    fn other(&mut self, call: &str) -> Result<bool, String> {
        let number = self.calls;
        let why = match self.next_sure() {
            Some(recorded) => {
                format!("its call {number} is {call}, and {recorded} was recorded there")
            }
            None => format!("its call {number} is {call}, and no further call was recorded"),
        };
        if !self.is_free {
            return Err(why);
        }
        let recorded = self.recorded.take();
        let recorded = recorded.unwrap_or_else(|| SureCalls::of(&self.lines));
        let is_apart = match recorded.ahead(call, self.at, &self.taken) {
            Some(line) => {
                self.take_ahead(line);
                true
            }
            None => {
                self.differences.first.get_or_insert(why);
                match recorded.decide(&self.last, call, self.at) {
                    Other::Additional(nanos) => {
                        self.invent(nanos);
                        true
                    }
                    Other::FurtherOn(to) => {
                        self.leave_out(to);
                        false
                    }
                }
            }
        };
        self.recorded = Some(recorded);
        Ok(is_apart)
    }

    /// Adds the computing time before one recorded call to the time to charge. The call is at byte
    /// `line` of the recording, and is replayed before calls that were recorded earlier.
    fn take_ahead(&mut self, line: usize) {
        let entry = self.lines[line..].lines().next().and_then(Entry::read);
        let nanos = entry.map_or(0, |entry| entry.nanos);
        self.taken.insert(line);
        self.carried = self.carried.saturating_add(nanos);
    }

    /// Jumps to the line at `to`, and leaves out the time before it that has not been charged.
    fn leave_out(&mut self, to: usize) {
        let charged = self.entry().map_or(0, |entry| entry.before(self.used));
        let (nanos, marks) = passed(&self.lines[self.at..to]);
        let taken = { self.taken.extract_if(|line| *line < to) }
            .filter_map(|line| Entry::read(self.lines[line..].lines().next()?));
        let taken: u64 = taken.map(|entry| entry.nanos).sum();
        self.differences.left_out += nanos - charged - taken;
        self.begun += marks;
        (self.at, self.used) = (to, 0);
        self.pass_marks();
    }

    /// Charges an unrecorded reading of the clock: no time at first. Once the program seems to wait
    /// for the clock, each reading takes more than the one before, so that the wait ends.
    fn tick(&mut self, call: &str) {
        self.still += 1;
        let waits = u64::from(self.still.saturating_sub(STILL)) * TICK;
        if waits > 0 {
            let why =
                format!("it reads {call} more than {STILL} times in a row, which was not recorded");
            self.differences.first.get_or_insert(why);
            self.invent(waits);
        }
    }

    fn invent(&mut self, nanos: u64) {
        self.differences.invented = self.differences.invented.saturating_add(nanos);
        self.carried = self.carried.saturating_add(nanos);
    }

    fn entry(&self) -> Option<Entry<'_>> {
        Entry::read(self.lines[self.at..].lines().next()?)
    }

    /// Adds the interval of one call of the present line to the time to charge. After the last call
    /// of the line, continues with the next line.
    fn take(&mut self) {
        let Some(entry) = self.entry() else {
            return;
        };
        let interval = entry.before(self.used + 1) - entry.before(self.used);
        let is_last = self.used + 1 == entry.calls();
        self.carried = self.carried.saturating_add(interval);
        self.used += 1;
        if is_last {
            self.next_line();
        }
    }

    /// Continues with the next line, and adds the rest of this line's time to the time to charge.
    fn next_line(&mut self) {
        let Some(line) = self.lines[self.at..].lines().next() else {
            return;
        };
        if let Some(entry) = Entry::read(line) {
            let left = entry.nanos - entry.before(self.used);
            self.carried = self.carried.saturating_add(left);
        }
        self.at += line.len() + 1;
        self.used = 0;
        self.pass_marks();
    }
}

#[cfg(test)]
mod tests;
