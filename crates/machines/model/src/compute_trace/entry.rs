//! One line of a rank's part of a trace, and the parts that a call has in a program.
//!
//! A *sure* call always has a result, so a program makes the same sure calls in every run, unless
//! it decides by time. A *poll* may return without a result, and a *wait* may be unnecessary
//! because a poll had one: how many of both there are between two sure calls depends on time.
//! Readings of the clock count as polls. A *question* about a status or a handle may follow a poll
//! that has a result, so it is no sure call either; for the rest it is like a wait.

use std::fmt::Write;

use super::key;

/// The line before the first call of a step.
pub(super) const STEP: &str = "step";
/// The procedures that may return without a result, without their prefix.
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
/// The procedures that wait for what a poll may have found already, without their prefix.
const WAITS: [&str; 7] = [
    "Mprobe", "Probe", "Wait", "Waitall", "Waitany", "Waitsome", "Win_wait",
];
/// The procedures that ask about a message or a handle, but for those of a status, without their
/// prefix.
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
/// The calls that a program which decides by time may make in another order, without their prefix
/// and without `_c`: those of messages between two ranks.
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
/// The peer of a key that is MPI_ANY_SOURCE (MPI 5.0, appendix A).
const ANY_SOURCE: i32 = -1 - (1 << 30);

fn is_one_of(names: &[&str], call: &str) -> bool {
    call.strip_prefix("MPI_")
        .is_some_and(|name| names.contains(&name))
}

/// A call of this name is a wait.
pub(super) fn is_wait(call: &str) -> bool {
    is_one_of(&WAITS, call)
}

/// A call of this name is a question.
pub(super) fn is_question(call: &str) -> bool {
    is_one_of(&QUESTIONS, call) || call.starts_with("MPI_Status_")
}

/// A call of this name is one of a message between two ranks.
pub(super) fn is_between_two(call: &str) -> bool {
    is_one_of(&BETWEEN_TWO, call.strip_suffix("_c").unwrap_or(call))
}

/// A sure call, a wait, or equal polls in a row. Polls have their number, as in `MPI_Test 730 x12`.
/// The key of a call follows, as in `MPI_Send 12 c257,s4,p-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    /// The computing time before the call, or before all of the calls.
    pub(super) nanos: u64,
    /// 0 for one call, else the number of polls.
    pub(super) times: u64,
    /// The key as text; empty without one.
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

    /// The line is of polls.
    pub(super) fn is_poll(&self) -> bool {
        self.times > 0 || is_one_of(&POLLS, self.name)
    }

    /// The line is of a sure call.
    pub(super) fn is_sure(&self) -> bool {
        !self.is_poll() && !is_wait(self.name) && !is_question(self.name)
    }

    /// The result of the call depends on time.
    pub(super) fn is_choice(&self) -> bool {
        let from_any = || key::parse(self.key).is_some_and(|key| key.peer == Some(ANY_SOURCE));
        self.is_poll() || is_one_of(&CHOICES, self.name) || !self.key.is_empty() && from_any()
    }

    /// The number of calls.
    pub(super) fn calls(&self) -> u64 {
        self.times.max(1)
    }

    /// The time before the first `calls` calls of the line.
    pub(super) fn before(&self, calls: u64) -> u64 {
        (u128::from(self.nanos) * u128::from(calls) / u128::from(self.calls())) as u64
    }

    /// Both lines are of the same call.
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
