//! Errors of messages and collective calls. Ranks of a modelled machine note their calls as
//! [`Event`]s; after the job, a [`Machine`] takes all events in the order of their virtual times
//! and reports calls that do not fit each other.
//!
//! The calls of one communicator are compared by their numbers on each rank, messages by their
//! order between two ranks with one tag, which MPI keeps (MPI 5.0 §3.5): the receives of a rank in
//! the order of their calls take the messages of a sender in the order of its calls. A receive from
//! any source takes its place once its status is known. So a correct program is never reported:
//! where a match is not certain, it is not checked.
//!
//! Never here: ranks, printing.

mod collective;
mod event;
mod finding;
mod leaks;
mod machine;
mod matches;
mod races;
mod signature;
#[cfg(test)]
mod tests;

pub use event::{Data, End, Event, FIRST_TYPE, Kind, Origin, PARTS, Run, USER_OP, WORDS};
pub use finding::{Finding, Rule, Side};
pub use machine::{Machine, Wanted};
pub use signature::MOST_RUNS;
