//! The lines of a compute trace while it is recorded: equal polls in a row are one line, so that a
//! program may poll for as long as it likes.
//!
//! A replay gives each poll of a line an equal share of its time. So a poll begins a new line where
//! the computing before it differs much from that before the others.

use device::{CallKey, ProgramCall};

/// A line of a trace: a call, or polls with the computing before all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) call: ProgramCall,
    /// 0 for a sure call or a wait, else the number of polls.
    pub(crate) times: u64,
}

/// The readings of the clock. Programs decide by the time between two of them, so their lines are
/// finer than those of polls.
const CLOCKS: [&str; 2] = ["MPI_Wtime", "clock_gettime"];
/// Computing that is too short to be worth a line, before a poll and before a reading of the clock,
/// in nanoseconds.
const SHORT: [u64; 2] = [10_000, 256];

/// The polls since the last other call of a rank.
#[derive(Default)]
pub(crate) struct PollRuns(Option<Line>);

impl PollRuns {
    /// A call returns. Returns the lines that are complete now, in order. `is_poll`: it is a poll
    /// or a reading of the clock.
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
            // Which of its requests a poll asks about changes nothing.
            key: CallKey::default(),
            ..*call
        };
        [self.0.replace(Line { call, times: 1 }), None]
    }
}

/// Two polls of a name, behind so much computing, may share a line.
fn is_alike(name: &str, one: u64, other: u64) -> bool {
    let (less, more) = (one.min(other), one.max(other));
    let is_clock = CLOCKS.contains(&name);
    let share = if is_clock { 4 } else { 1 };
    more <= (less + less / share).max(SHORT[usize::from(is_clock)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of calls: their name, computing and number.
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
