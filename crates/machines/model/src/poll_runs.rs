//! The lines of a compute trace during recording: equal polls in a row are one line, so that a
//! program may poll for as long as it needs.
//!
//! A replay gives each poll of a line an equal share of the line's time. So a poll begins a new
//! line if the computing before it differs much from that before the others.

use device::{CallKey, ProgramCall};

/// A line of a trace: one call, or equal polls with the computing before all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) call: ProgramCall,
    /// 0 for a single call with a result, else the number of polls.
    pub(crate) times: u64,
}

/// The calls that read the clock. Programs decide by the time between two of them, so their lines
/// are finer than those of polls.
const CLOCKS: [&str; 2] = ["MPI_Wtime", "clock_gettime"];
/// Computing times that are too short for a line of their own, in nanoseconds: before a poll, and
/// before a reading of the clock.
const SHORT: [u64; 2] = [10_000, 256];

/// The unfinished line for the polls of a rank since its last call that was no poll. `None` in it:
/// there was no such poll.
#[derive(Default)]
pub(crate) struct PollRuns(Option<Line>);

impl PollRuns {
    /// Adds a call that returns; `is_poll`: it is a poll or a reading of the clock. Returns the
    /// lines that are complete now, in order.
    pub(crate) fn add(&mut self, call: &ProgramCall, is_poll: bool) -> [Option<Line>; 2] {
        if !is_poll {
            let line = Line {
                call: *call,
                times: 0,
            };
            return [self.0.take(), Some(line)];
        }
        if let Some(run) = &mut self.0
            && run.call.name == call.name
            && is_alike(call.name, run.call.computed / run.times, call.computed)
        {
            run.call.computed += call.computed;
            run.times += 1;
            return [None, None];
        }
        let call = ProgramCall {
            // The requests that a poll tests do not matter to a replay.
            key: CallKey::default(),
            ..*call
        };
        [self.0.replace(Line { call, times: 1 }), None]
    }
}

/// True if two polls of `name`, with these computing times before them, may share a line.
fn is_alike(name: &str, one: u64, other: u64) -> bool {
    let (less, more) = (one.min(other), one.max(other));
    let is_clock = CLOCKS.contains(&name);
    let share = if is_clock { 4 } else { 1 };
    more <= (less + less / share).max(SHORT[usize::from(is_clock)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of calls: for each its name, its computing time and its number of polls.
    fn lines(calls: &[(&'static str, u64)]) -> Vec<(&'static str, u64, u64)> {
        let mut runs = PollRuns::default();
        let added = calls.iter().flat_map(|(name, computed)| {
            let is_poll = *name != "MPI_Send";
            runs.add(&ProgramCall::after(*computed, name), is_poll)
        });
        let added = added.flatten();
        { added }
            .map(|line| (line.call.name, line.call.computed, line.times))
            .collect()
    }

    #[test]
    fn equal_polls_in_a_row_are_one_line() {
        let found = lines(&[
            ("MPI_Test", 30),
            ("MPI_Test", 9_000),
            ("MPI_Test", 70),
            ("MPI_Iprobe", 5),
            ("MPI_Send", 8),
        ]);
        assert_eq!(
            found,
            [
                ("MPI_Test", 9_100, 3),
                ("MPI_Iprobe", 5, 1),
                ("MPI_Send", 8, 0)
            ]
        );
    }

    #[test]
    fn readings_of_the_clock_keep_what_a_program_measures() {
        let found = lines(&[
            ("MPI_Wtime", 5_000),
            ("MPI_Wtime", 60),
            ("MPI_Wtime", 5_000),
            ("MPI_Wtime", 6_000),
            ("MPI_Send", 8),
        ]);
        let wanted = [
            ("MPI_Wtime", 5_000, 1),
            ("MPI_Wtime", 60, 1),
            ("MPI_Wtime", 11_000, 2),
            ("MPI_Send", 8, 0),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn polls_behind_other_computing_are_lines_of_their_own() {
        let found = lines(&[
            ("MPI_Test", 100_000),
            ("MPI_Test", 150_000),
            ("MPI_Test", 400_000),
            ("MPI_Test", 20),
            ("MPI_Test", 20),
            ("MPI_Send", 8),
        ]);
        let wanted = [
            ("MPI_Test", 250_000, 2),
            ("MPI_Test", 400_000, 1),
            ("MPI_Test", 40, 2),
            ("MPI_Send", 8, 0),
        ];
        assert_eq!(found, wanted);
    }
}
