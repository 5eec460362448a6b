//! Sure calls that a replay makes at another position than the recording, because the program
//! decides by time: for example, a worker does more tasks than it did, or fewer. A *sure* call is
//! one that always has a result, unlike a poll ([`super::entry`]).
//!
//! Calls of messages between two ranks may come in another order: such a call takes the next
//! recorded one of its name before the next call of another kind ([`SureCalls::ahead`]). Without
//! one it is *additional*.
//!
//! In all other cases a rank either continues a loop that it left in the recording, or leaves one
//! earlier. The two are distinguished by how often the recording has each of these two calls after
//! the call before: that of a loop is the more frequent. To continue the loop is an additional
//! call, which takes the mean time of its kind. To leave the loop jumps to the next position with
//! this call, and *leaves out* the calls in between.

use std::collections::{HashMap, HashSet};

use super::entry::{Entry, STEP, is_between_two};

/// The differences between a replay and the recording of its rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// The computing time that was charged without having been recorded, in nanoseconds.
    pub invented: u64,
    /// The computing time that was recorded and not charged, in nanoseconds.
    pub left_out: u64,
    /// The first call that differs from the recording, in words.
    pub first: Option<String>,
}

/// The sure calls of a rank's part of a trace, which are collected once a call differs.
pub(super) struct SureCalls {
    calls: Vec<SureCall>,
    /// The number that stands for each name of a call. Numbers begin at 1; 0 stands for the absent
    /// call before the first one.
    names: HashMap<String, u32>,
    /// The calls of each pair of names, where a call of the second name directly follows one of the
    /// first.
    pairs: HashMap<(u32, u32), Kind>,
    /// The calls of each name, by the number that encodes the name.
    named: HashMap<u32, Kind>,
    all: Kind,
    /// The positions, among the sure calls, of those that are not of messages between two ranks.
    ordered: Vec<usize>,
}

struct SureCall {
    name: u32,
    /// The offset of the call's line in the text of the trace.
    start: usize,
    /// The offset of the line that follows the call's line.
    end: usize,
}

/// The recorded calls of one procedure and key.
#[derive(Default)]
struct Kind {
    /// The positions of these calls among the sure calls, in ascending order.
    places: Vec<usize>,
    /// The total computing time between each of these calls and the preceding sure call, in
    /// nanoseconds.
    nanos: u64,
}

impl Kind {
    fn add(&mut self, place: usize, nanos: u64) {
        self.places.push(place);
        self.nanos = self.nanos.saturating_add(nanos);
    }

    fn mean(&self) -> Option<u64> {
        self.nanos.checked_div(self.places.len() as u64)
    }

    /// The position of the first of these calls after `place`. `None`: there is none.
    fn behind(&self, place: usize) -> Option<usize> {
        let at = self.places.partition_point(|other| *other <= place);
        self.places.get(at).copied()
    }
}

/// The treatment of a call where the recording has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// The recording does not contain the call. It follows this many nanoseconds of computing.
    Additional(u64),
    /// The recording contains the call later, after the line that ends at this offset.
    FurtherOn(usize),
}

impl SureCalls {
    /// The calls in the lines of a rank that every run makes (the sure ones).
    pub(super) fn of(lines: &str) -> SureCalls {
        let mut found = SureCalls {
            calls: Vec::new(),
            names: HashMap::new(),
            pairs: HashMap::new(),
            named: HashMap::new(),
            all: Kind::default(),
            ordered: Vec::new(),
        };
        let (mut end, mut nanos, mut before) = (0, 0u64, 0);
        for line in lines.split_inclusive('\n') {
            let start = end;
            end += line.len();
            let Some(entry) = Entry::read(line.trim_end_matches('\n')) else {
                continue;
            };
            nanos = nanos.saturating_add(entry.nanos);
            if !entry.is_sure() {
                continue;
            }
            let (place, name) = (found.calls.len(), found.intern(entry.name));
            let pair = found.pairs.entry((before, name)).or_default();
            pair.add(place, nanos);
            found.named.entry(name).or_default().add(place, nanos);
            found.all.add(place, nanos);
            found.calls.push(SureCall { name, start, end });
            if !is_between_two(entry.name) {
                found.ordered.push(place);
            }
            (nanos, before) = (0, name);
        }
        found
    }

    fn intern(&mut self, name: &str) -> u32 {
        match self.names.get(name) {
            Some(number) => *number,
            None => {
                let number = self.names.len() as u32 + 1;
                self.names.insert(name.to_owned(), number);
                number
            }
        }
    }

    /// The offset of the line of a recorded call of `name` that may be replayed before earlier
    /// ones: a call of a message between two ranks, after the line at `at`, not in `taken`, and
    /// before the next call of another kind.
    pub(super) fn ahead(&self, name: &str, at: usize, taken: &HashSet<usize>) -> Option<usize> {
        if !is_between_two(name) {
            return None;
        }
        let next = self.calls.partition_point(|call| call.end <= at);
        let end = self
            .ordered
            .get(self.ordered.partition_point(|place| *place < next));
        let end = end.copied().unwrap_or(self.calls.len());
        let places = &self.named.get(self.names.get(name)?)?.places;
        let places = &places[places.partition_point(|place| *place < next)..];
        let starts = { places.iter() }.take_while(|place| **place < end);
        let mut starts = starts.map(|place| self.calls[*place].start);
        starts.find(|start| !taken.contains(start))
    }

    /// Decides about a call `call` after one of `before`, where the recording continues with the
    /// line at `at`.
    pub(super) fn decide(&self, before: &str, call: &str, at: usize) -> Other {
        let [before, name] = [before, call].map(|name| self.names.get(name).copied());
        let may_be_further = !is_between_two(call);
        let (before, name) = (before.unwrap_or(0), name.unwrap_or(0));
        let next = self.calls.partition_point(|call| call.end <= at);
        let pair = self.pairs.get(&(before, name));
        let named = self.named.get(&name);
        let mut kinds = [pair, named, Some(&self.all)].into_iter().flatten();
        let additional = Other::Additional(kinds.find_map(Kind::mean).unwrap_or(0));
        let mut further = [pair, named].into_iter().flatten();
        let further = further.find_map(|kind| kind.behind(next));
        let further = further.filter(|_| may_be_further);
        let (Some(place), Some(recorded)) = (further, self.calls.get(next)) else {
            return additional;
        };
        let behind = |place: usize| Some(&self.calls[place.checked_sub(1)?]);
        let previous = behind(next).map_or(0, |call| call.name);
        let recorded = self.pairs.get(&(previous, recorded.name));
        let often = |kind: Option<&Kind>| kind.map_or(0, |kind| kind.places.len());
        match often(pair) > often(recorded) {
            true => additional,
            false => Other::FurtherOn(behind(place).map_or(0, |call| call.end)),
        }
    }
}

/// The nanoseconds of computing in lines, and the number of marks of steps among them.
pub(super) fn passed(lines: &str) -> (u64, u32) {
    let entries = lines.lines().filter_map(Entry::read);
    let nanos = entries.fold(0u64, |sum, entry| sum.saturating_add(entry.nanos));
    let marks = lines.lines().filter(|line| *line == STEP).count();
    (nanos, marks as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker with three tasks, then a phase in which it has one task.
    const WORKER: &str = "MPI_Recv 1\nMPI_Send 10\nMPI_Recv 1\nMPI_Send 20\nMPI_Recv 1\nMPI_Send 30\nMPI_Recv 1\n\
                          MPI_Barrier 5\nMPI_Recv 1\nMPI_Send 40\nMPI_Recv 1\nMPI_Finalize 7\n";

    fn offset(line: usize) -> usize {
        WORKER.split_inclusive('\n').take(line).map(str::len).sum()
    }

    #[test]
    fn one_task_more_takes_the_mean_of_the_tasks() {
        let calls = SureCalls::of(WORKER);
        let more = calls.decide("MPI_Recv", "MPI_Send", offset(7));
        assert_eq!(more, Other::Additional(25));
        // The time is the same where no further task follows.
        let more = calls.decide("MPI_Recv", "MPI_Send", offset(11));
        assert_eq!(more, Other::Additional(25));
    }

    #[test]
    fn one_task_less_goes_on_behind_the_loop() {
        let calls = SureCalls::of(WORKER);
        for tasks in 0..3 {
            let less = calls.decide("MPI_Recv", "MPI_Barrier", offset(2 * tasks + 1));
            assert_eq!(less, Other::FurtherOn(offset(7)), "{tasks}");
        }
        let less = calls.decide("MPI_Recv", "MPI_Finalize", offset(9));
        assert_eq!(less, Other::FurtherOn(offset(11)));
    }

    #[test]
    fn a_call_that_was_never_recorded_takes_the_mean_of_all() {
        let idle = SureCalls::of("MPI_Recv 8\nMPI_Finalize 4\n");
        let at = "MPI_Recv 8\n".len();
        assert_eq!(
            idle.decide("MPI_Recv", "MPI_Send", at),
            Other::Additional(6)
        );
        let nothing = SureCalls::of("");
        assert_eq!(nothing.decide("", "MPI_Send", 0), Other::Additional(0));
    }

    #[test]
    fn what_is_passed_is_counted() {
        assert_eq!(passed("MPI_Recv 8\nstep\nMPI_Test 9 x4\nstep\n"), (17, 2));
    }
}
