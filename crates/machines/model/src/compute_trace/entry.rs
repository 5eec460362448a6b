//! One line of a rank's part of a compute trace, and the kinds of calls.
//!
//! A *sure* call always has a result, so a program makes the same sure calls in every run, unless
//! it decides by time. A *poll* may return without a result, and a *wait* is unnecessary if a poll
//! had the result: the numbers of both between two sure calls depend on time. Readings of the clock
//! count as polls. A *question* about a status or a handle may follow a poll that has a result, so
//! it is no sure call either; otherwise it is treated like a wait.

use std::fmt::Write;

use super::key;

/// The line of a compute trace that marks the beginning of a step, before the step's first call.
pub(super) const STEP: &str = "step";
/// The procedures that may return without a result, without the prefix `MPI_`.
const POLLS: [&str; 12] = [
    "Improbe",
    "Iprobe",
    "Parrived",
    "Request_get_status",
    "Request_get_status_all",
    "Request_get_status_any",
    "Request_get_status_some",
    "Test",
    "Testall",
    "Testany",
    "Testsome",
    "Win_test",
];
/// The procedures that wait for a result that a poll may have found already, without the prefix
/// `MPI_`.
const WAITS: [&str; 7] = [
    "Mprobe", "Probe", "Wait", "Waitall", "Waitany", "Waitsome", "Win_wait",
];
/// The procedures that query a message or a handle, except those of a status (`MPI_Status_`),
/// without the prefix `MPI_`.
const QUESTIONS: [&str; 14] = [
    "Comm_get_attr",
    "Comm_rank",
    "Comm_size",
    "Comm_test_inter",
    "Get_count",
    "Get_count_c",
    "Get_elements",
    "Get_elements_c",
    "Get_elements_x",
    "Test_cancelled",
    "Type_get_extent",
    "Type_get_extent_c",
    "Type_size",
    "Type_size_c",
];
/// The calls of messages between two ranks, without the prefix `MPI_` and the suffix `_c`. A
/// program that decides by time may make them in another order.
const BETWEEN_TWO: [&str; 16] = [
    "Bsend",
    "Cancel",
    "Ibsend",
    "Imrecv",
    "Irecv",
    "Irsend",
    "Isend",
    "Issend",
    "Mrecv",
    "Recv",
    "Request_free",
    "Rsend",
    "Send",
    "Ssend",
    "Start",
    "Startall",
];
/// The waits and polls that return one of several results: which one depends on time.
const CHOICES: [&str; 4] = ["Testany", "Testsome", "Waitany", "Waitsome"];
/// The peer in a key that means MPI_ANY_SOURCE (MPI 5.0, appendix A).
const ANY_SOURCE: i32 = -1 - (1 << 30);

fn is_one_of(names: &[&str], call: &str) -> bool {
    call.strip_prefix("MPI_")
        .is_some_and(|name| names.contains(&name))
}

/// True if a call of this name waits for a result that a poll may have found already.
pub(super) fn is_wait(call: &str) -> bool {
    is_one_of(&WAITS, call)
}

/// True if a call of this name is a question: it queries a message, a status or a handle.
pub(super) fn is_question(call: &str) -> bool {
    is_one_of(&QUESTIONS, call) || call.starts_with("MPI_Status_")
}

/// True if a call of this name is one of a message between two ranks.
pub(super) fn is_between_two(call: &str) -> bool {
    is_one_of(&BETWEEN_TWO, call.strip_suffix("_c").unwrap_or(call))
}

/// A line of the trace: a sure call (one that always has a result), a wait, or equal polls in a
/// row. Polls have their number, as in `MPI_Test 730 x12`. The key of a call comes last, as in
/// `MPI_Send 12 c257,s4,p-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    /// The computing time before the call, or before all calls of the line, in nanoseconds.
    pub(super) nanos: u64,
    /// 0 for a single call, else the number of polls.
    pub(super) times: u64,
    /// The key of the call as text; empty if the call has none.
    pub(super) key: &'a str,
}

impl<'a> Entry<'a> {
    pub(super) fn read(line: &'a str) -> Option<Entry<'a>> {
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

    /// True if the line is of polls: calls that may return without a result.
    pub(super) fn is_poll(&self) -> bool {
        self.times > 0 || is_one_of(&POLLS, self.name)
    }

    /// True if the line is of a sure call: one that always has a result.
    pub(super) fn is_sure(&self) -> bool {
        !self.is_poll() && !is_wait(self.name) && !is_question(self.name)
    }

    /// True if the result of the call depends on time.
    pub(super) fn is_choice(&self) -> bool {
        let from_any = || key::parse(self.key).is_some_and(|key| key.peer == Some(ANY_SOURCE));
        self.is_poll() || is_one_of(&CHOICES, self.name) || !self.key.is_empty() && from_any()
    }

    /// The number of calls for which the line stands.
    pub(super) fn calls(&self) -> u64 {
        self.times.max(1)
    }

    /// The nanoseconds of computing before the first `calls` calls of the line.
    pub(super) fn before(&self, calls: u64) -> u64 {
        (u128::from(self.nanos) * u128::from(calls) / u128::from(self.calls())) as u64
    }

    /// True if both lines have equal calls, whatever their times of computing are.
    pub(super) fn is_of(&self, other: &Entry) -> bool {
        (self.name, self.times, self.key) == (other.name, other.times, other.key)
    }

    pub(super) fn write(&self, text: &mut String) {
        let Entry {
            name,
            nanos,
            times,
            key,
        } = self;
        // Writing to a String does not fail.
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
