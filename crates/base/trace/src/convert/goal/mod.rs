//! GOAL, the schedules of LogGOPSim and ATLAHS: for each rank sends, receives and computing, with
//! dependencies between them (Hoefler, Schneider, Lumsdaine: LogGOPSim, 2010).
//!
//! A schedule is a graph, and the calls of an MPI rank are a sequence. The sequence is the order in
//! which the operations begin on a machine whose network takes no time ([`order`]); a message
//! begins without waiting, and the rank waits for it where an operation requires it. So no rank
//! waits for what could only come later. In the other direction ([`write`](write())) an operation
//! requires what its rank has waited for.

mod order;
mod read;
mod sizes;
mod write;

#[cfg(test)]
mod tests;

pub use write::write;

use crate::standard::ANY_TAG;
use crate::{Builder, Trace};

use super::script::{Peer, Script, Source};
use order::{Act, Ordered};

/// The kind of an operation of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Calc,
    Send,
    Recv,
}

/// An operation of a rank in a schedule.
#[derive(Clone, Debug)]
struct Op {
    line: usize,
    kind: Kind,
    /// Bytes of the message, or nanoseconds of the computing.
    size: u64,
    /// The rank at the other end. `None`: any source, or the operation is no message.
    peer: Option<usize>,
    /// The tag of the message. `None`: any tag, or the operation is no message.
    tag: Option<i64>,
    /// The operations of the rank that end before this one begins.
    requires: Vec<u32>,
    /// The operations of the rank that begin before this one.
    follows: Vec<u32>,
}

/// Reads a schedule. `program`: the command that reads it.
///
/// # Errors
/// The line that is no GOAL, or that no sequence of MPI calls can do, with the reason.
pub fn read(text: &str, program: String) -> Result<Trace, String> {
    let schedule = read::schedule(text)?;
    let Ordered { acts, met } = order::order(&schedule)?;
    let mut builder = Builder::new(program);
    for (rank, acts) in acts.iter().enumerate() {
        let ops = &schedule[rank];
        let message = |op: u32| {
            let one = &ops[op as usize];
            let source = match (one.peer, met.get(&(rank, op))) {
                (Some(peer), _) => Source::Rank(peer),
                (None, met) => Source::Met(met.copied().unwrap_or(rank)),
            };
            let sends = one.kind == Kind::Send;
            Peer::of_bytes(sends, source, one.size as i64, one.tag.unwrap_or(ANY_TAG))
        };
        let mut script = Script::new(rank);
        let mut requests = vec![None; ops.len()];
        let mut acts = acts.as_slice();
        while let Some((act, rest)) = acts.split_first() {
            acts = rest;
            match (act, rest.first()) {
                (Act::Compute(op), _) => script.compute(ops[*op as usize].size),
                (Act::Begin(op), Some(Act::Wait(waits))) if waits.as_slice() == [*op] => {
                    script.blocking(&mut builder, message(*op));
                    acts = &rest[1..];
                }
                (Act::Begin(op), _) => {
                    requests[*op as usize] = Some(script.begin(&mut builder, message(*op)));
                }
                (Act::Wait(waits), _) => {
                    let waits = waits.iter().filter_map(|op| requests[*op as usize]);
                    script.wait(&mut builder, &waits.collect::<Vec<i64>>());
                }
            }
        }
        script.end(&mut builder);
    }
    Ok(builder.finish())
}
