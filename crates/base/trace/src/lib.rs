//! Traces: the MPI calls of all ranks of a job, with what they move and with the computing before
//! each, as a file. A replay makes the calls again without the program and without its data.
//!
//! A trace describes itself. Its table of *signatures* has the parameters of each procedure that
//! the program calls, in the words of the table from which the library's entry points are
//! generated, and a call is a list of values, one for each parameter ([`Value`]). Handles are
//! numbers of the trace: a predefined handle has its number in the ABI, any other is [`FIRST_MADE`]
//! and the lowest number of its class that was free in its rank when the object was made. A buffer
//! has a number, too, not an address. Among the calls are [facts](Fact) about them.
//!
//! Calls are kept apart from times. Equal calls are one entry of a table, the calls of a rank
//! are loops of loops over them ([`fold`](Folder)), and ranks that do alike share their sequences.
//! The computing before each call is a stream of nanoseconds beside it.
//!
//! Invariants:
//! - nothing is lost: a trace gives back each call of each rank, in order, with its computing;
//! - a reader trusts nothing: each length is compared with what the file still has, references lead
//!   backwards only, and the sizes of what is expanded are bounded.
//!
//! Never here: handles, ranks of the library, virtual time.

#![forbid(unsafe_code)]

mod build;
mod bytes;
mod comms;
mod convert;
pub mod cut;
mod expand;
mod fact;
mod file;
mod fold;
mod gaps;
mod lossy;
mod make;
mod measured;
mod merge;
mod messages;
pub mod part_file;
mod queries;
mod raw;
mod signature;
mod standard;
mod times;
mod value;

pub use build::Builder;
pub use comms::comm_sizes;
pub use convert::{goal, time_independent};
pub use expand::Calls;
pub use fact::Fact;
pub use file::{COMPUTE_TRACE, MAGIC};
pub use fold::{Folder, Item};
pub use gaps::Gaps;
pub use make::{Pattern, Recipe};
pub use measured::{Inside, Measured, Taken};
pub use merge::merged;
pub use queries::is_query;
pub use raw::{Added, BLOCK_HEAD, Job, Part, RawWriter, parts};
pub use signature::{Access, HANDLE_CLASSES, Length, Parameter, Signature};
pub use standard::{SELF, WORLD};
pub use value::{Call, FIRST_MADE, NUMBER_OF_MEMORY, Value};

/// A trace: the calls of all ranks of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The program and its arguments, or the command that made the trace without one.
    pub program: String,
    /// Sentences about the recorded run, and the changes since the recording: what has been cut,
    /// scaled or folded.
    pub notes: Vec<String>,
    /// The times of work inside MPI on the computer of the recording, each a line. Empty: such work
    /// takes the time that the machine gives it.
    pub work: Vec<String>,
    /// The procedures that the calls call.
    pub signatures: Vec<Signature>,
    /// The different calls.
    pub calls: Vec<Call>,
    /// The sequences of calls and loops. A loop has a sequence before its own.
    pub sequences: Vec<Vec<Item>>,
    /// The calls and the computing times of each rank.
    pub ranks: Vec<RankCalls>,
}

/// The calls of one rank, with the computing between them.
#[derive(Clone, Debug, PartialEq)]
pub struct RankCalls {
    /// The number of the rank's sequence of calls.
    pub sequence: u32,
    /// The computing before each call, in nanoseconds.
    pub gaps: Gaps,
    /// The measured times of the program's reduction functions, in picoseconds and in the order of
    /// their calls. Empty if they took none, or took the times in [`Trace::work`].
    pub functions: Gaps,
    /// The times that the rank has measured, if a recorder of any MPI library has made its part.
    pub measured: Option<Measured>,
}

impl Trace {
    /// The calls of a rank in order, each as its number in the table of calls, with the nanoseconds
    /// of computing before it. Empty for a rank that does not exist.
    pub fn calls_of(&self, rank: usize) -> impl Iterator<Item = (u32, u64)> + '_ {
        let part = self.ranks.get(rank);
        let calls = part.map(|part| Calls::new(&self.sequences, part.sequence));
        let gaps = part.map(|part| part.gaps.iter());
        calls.into_iter().flatten().zip(gaps.into_iter().flatten())
    }

    /// True if the trace has receives from any source, with the sources of their messages.
    pub fn has_wildcards(&self) -> bool {
        let mut values = self.calls.iter().flat_map(|call| &call.values);
        values.any(|value| matches!(value, Value::Met(_)))
    }

    /// A copy of the trace whose receives from `MPI_ANY_SOURCE` name the sources that they matched
    /// when the trace was recorded.
    pub fn frozen(&self) -> Trace {
        Trace {
            calls: self.calls.iter().map(Call::frozen).collect(),
            ..self.clone()
        }
    }

    /// True if the trace marks the beginnings of steps.
    pub fn has_steps(&self) -> bool {
        let mut facts = self.signatures.iter().filter_map(Fact::of);
        facts.any(|fact| fact == Fact::Step)
    }

    /// The greatest number of threads of a rank that computed at the same time.
    pub fn threads(&self) -> usize {
        let number = |call: &Call| {
            let signature = &self.signatures[call.signature as usize];
            match (Fact::of(signature), &call.values[..]) {
                (Some(Fact::Threads), [number]) => usize::try_from(number.number()?).ok(),
                _ => None,
            }
        };
        self.calls.iter().filter_map(number).fold(1, usize::max)
    }

    /// The signature of a call.
    pub fn signature(&self, call: u32) -> &Signature {
        &self.signatures[self.calls[call as usize].signature as usize]
    }
}
