//! Sure calls that were not recorded where a replay makes them, because the program decides by
//! time: a worker does more tasks than it did, or fewer.
//!
//! Calls of messages between two ranks may come in another order: such a call takes the next
//! recorded one of its name before the next call of another kind ([`SureCalls::ahead`]). Without
//! one it is *additional*.
//!
//! For the rest, a rank either goes on with a loop that it left in the recording, or leaves one
//! earlier. The two are distinguished by how often the recording has each continuation after the
//! call before: that of a loop is the more frequent. Going on is an additional call, which takes
//! the mean of its kind. Leaving jumps to the next place with this continuation, and *leaves out*
//! what lies between.

use std::collections::{HashMap, HashSet};

use super::entry::{Entry, STEP, is_between_two};

/// The differences between a replay and the recording of its rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// The computing that was not recorded, in nanoseconds.
    pub invented: u64,
    /// The computing that was recorded and not replayed, in nanoseconds.
    pub left_out: u64,
    /// The first call that differs, in words.
    pub first: Option<String>,
}

/// The sure calls of a rank's part of a trace, found once a call differs.
pub(super) struct SureCalls {
    calls: Vec<SureCall>,
    /// The numbers of names, from 1 on: 0 is no call.
    names: HashMap<String, u32>,
    /// The calls of a name behind a call of another name.
    pairs: HashMap<(u32, u32), Kind>,
    /// The calls of each name.
    named: HashMap<u32, Kind>,
    all: Kind,
    /// The places of calls that are no messages between two ranks.
    ordered: Vec<usize>,
}

struct SureCall {
    name: u32,
    /// The offset of its line, and the one behind it.
    start: usize,
    end: usize,
}

/// Calls of one kind.
#[derive(Default)]
struct Kind {
    /// Their places among the sure calls.
    places: Vec<usize>,
    /// The computing since the sure call before, in nanoseconds.
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

    /// The first place behind `place`.
    fn behind(&self, place: usize) -> Option<usize> {
        let at = self.places.partition_point(|other| *other <= place);
        self.places.get(at).copied()
    }
}

/// The treatment of a call at a place where the recording has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// It is an additional one, behind so many nanoseconds of computing.
    Additional(u64),
    /// It is recorded further on, behind the line at this offset.
    FurtherOn(usize),
}

impl SureCalls {
    /// The sure calls in the lines of a rank.
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

    /// The offset of the line of a call of `name` that may come before others: one of a message
    /// between two ranks, behind the line at `at`, not among `taken`, before the next call of
    /// another kind.
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

    /// Decides about a `call` behind one of `before`, where the line at `at` is the next.
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

/// The computing in lines, in nanoseconds, and the marks of steps among them.
pub(super) fn passed(lines: &str) -> (u64, u32) {
    let entries = lines.lines().filter_map(Entry::read);
    let nanos = entries.fold(0u64, |sum, entry| sum.saturating_add(entry.nanos));
    let marks = lines.lines().filter(|line| *line == STEP).count();
    (nanos, marks as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker with three tasks, then a phase in which it has one.
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
        // Also where none follows.
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
