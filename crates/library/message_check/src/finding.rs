//! A finding: what is wrong, the calls of both ranks, why, and what to do.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The most findings that are kept.
const MOST: usize = 1000;

/// An error of the program, or a note about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the finding.
    pub rule: Rule,
    /// The sentence that says what differs.
    pub what: String,
    /// The calls that the finding is about.
    pub sides: Vec<Side>,
    /// The number of later findings of this rule with the same ranks and calls.
    pub repeated: u64,
}

/// A call of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The world rank.
    pub rank: u32,
    /// The procedure.
    pub call: Arc<str>,
    /// The virtual time of the call, in picoseconds.
    pub time: u64,
    /// The arguments that matter, or the state of the operation.
    pub detail: String,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Ranks call different collective operations on a communicator.
    Calls,
    /// A rank never makes a collective call that others make.
    Absent,
    /// The roots of a collective operation differ.
    Roots,
    /// The reduction operations differ.
    Operations,
    /// The numbers of elements differ.
    Counts,
    /// The type signatures of a collective operation differ.
    Signatures,
    /// A block that one rank gives is not what another expects of it.
    Blocks,
    /// The basic types of a message and of its receive differ.
    Types,
    /// A message is longer than its receive.
    Truncated,
    /// A message that no receive has taken when its receiver ends.
    Unreceived,
    /// A request that is still active at the end.
    Unfinished,
    /// Another message could have matched a receive from any source or with any tag.
    Race,
    /// An object that has not been freed.
    Leak,
}

impl Rule {
    /// True for an error of the program, false for a note.
    pub fn is_error(self) -> bool {
        !matches!(self, Rule::Race | Rule::Leak)
    }

    /// The reason why the program is wrong, with the section of the standard.
    fn why(self) -> &'static str {
        match self {
            Rule::Calls => {
                "all members call the same collective operations on a communicator in the same \
                 order, and a blocking one does not match a nonblocking one (MPI 5.0 §6.12, §6.14)"
            }
            Rule::Absent => "all members of the communicator make a collective call (MPI 5.0 §6.1)",
            Rule::Roots => "all members name the same root (MPI 5.0 §6.2.1)",
            Rule::Operations => "all members of a reduction name the same operation (MPI 5.0 §6.9)",
            Rule::Counts | Rule::Signatures => {
                "what a member gives has the type signature of what the others give or expect \
                 (MPI 5.0 §6.1)"
            }
            Rule::Blocks => {
                "the block that one member gives has exactly the type signature that the other \
                 expects of it (MPI 5.0 §6.5 to §6.8)"
            }
            Rule::Types => {
                "the basic types of a message and of its receive match one by one (MPI 5.0 §3.3.1)"
            }
            Rule::Truncated => {
                "a message must not be longer than the receive buffer (MPI 5.0 §3.2.4)"
            }
            Rule::Unreceived => {
                "before MPI_Finalize, each send needs its receive (MPI 5.0 §11.2.2)"
            }
            Rule::Unfinished => {
                "before MPI_Finalize, all requests must be complete (MPI 5.0 §11.2.2)"
            }
            Rule::Race => {
                "no call orders the two sends before the receive, so another run may match the \
                 other one (MPI 5.0 §3.5)"
            }
            Rule::Leak => "an object lasts until it is freed",
        }
    }

    /// The advice to the programmer.
    fn remedy(self) -> &'static str {
        match self {
            Rule::Calls => "let all ranks of the communicator make the same calls in one order",
            Rule::Absent => "make the call on this rank too, or use a communicator without it",
            Rule::Roots => "pass one root on all ranks",
            Rule::Operations => "pass one operation on all ranks",
            Rule::Counts => "pass counts that describe the same number of elements",
            Rule::Signatures => "pass datatypes with the same basic types in the same order",
            Rule::Blocks => "let the count and datatype for this pair of ranks agree at both",
            Rule::Types => "receive with the datatype of the send, or both with MPI_BYTE",
            Rule::Truncated => "pass a larger count at the receive, or send fewer elements",
            Rule::Unreceived => {
                "receive the message, or do not send it; check tag and communicator"
            }
            Rule::Unfinished => "complete it by MPI_Wait, MPI_Test or one of their like",
            Rule::Race => "name the source or the tag, if the order of messages matters",
            Rule::Leak => "call the procedure that frees it before MPI_Finalize",
        }
    }
}

/// The findings, each with the number of its repetitions.
#[derive(Default)]
pub(crate) struct Findings {
    all: Vec<Finding>,
    known: HashMap<Key, usize>,
}

/// Findings that are equal in this are one finding.
type Key = (Rule, Vec<(u32, Arc<str>)>);

impl Findings {
    pub(crate) fn add(&mut self, rule: Rule, what: String, sides: Vec<Side>) {
        let named = sides.iter().map(|side| (side.rank, side.call.clone()));
        let key = (rule, named.collect());
        if let Some(at) = self.known.get(&key) {
            self.all[*at].repeated += 1;
        } else if self.all.len() < MOST {
            self.known.insert(key, self.all.len());
            self.all.push(Finding {
                rule,
                what,
                sides,
                repeated: 0,
            });
        }
    }

    /// All findings, errors before notes.
    pub(crate) fn sorted(self) -> Vec<Finding> {
        let mut all = self.all;
        all.sort_by_key(|finding| !finding.rule.is_error());
        all
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:", self.what)?;
        for side in &self.sides {
            write!(f, "\n  {side}")?;
        }
        write!(f, "\n  why: {}", self.rule.why())?;
        write!(f, "\n  remedy: {}", self.rule.remedy())?;
        match self.repeated {
            0 => Ok(()),
            1 => write!(f, "\n  One more such case follows."),
            many => write!(f, "\n  {many} more such cases follow."),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (micros, nanos) = (self.time / 1_000_000, self.time / 1000 % 1000);
        let Side { rank, call, .. } = self;
        write!(f, "rank {rank} at {micros}.{nanos:03} us: {call}")?;
        match self.detail.as_str() {
            "" => Ok(()),
            detail => write!(f, ", {detail}"),
        }
    }
}
