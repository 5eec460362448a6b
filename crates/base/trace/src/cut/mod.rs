//! Parts of a trace: some of its calls, or some of its ranks.
//!
//! A part can be replayed like the whole: each message of it has both ends, each collective call
//! all its ranks, and each object that a call uses is made before it. Where that does not hold, the
//! error names the call and its rank.

mod beginning;
mod ranks;
#[cfg(test)]
mod tests;
mod windows;

pub use beginning::{Beginning, beginning};
pub(crate) use ranks::collective;
pub use ranks::{Kept, Others, ranks};
pub use windows::windows;

use crate::gaps::Gaps;
use crate::{Builder, Trace};

/// The calls of a rank of a part, and the computing before each.
#[derive(Clone, Default)]
struct Own {
    calls: Vec<u32>,
    gaps: Gaps,
}

impl Own {
    fn push(&mut self, call: u32, nanos: u64) {
        self.calls.push(call);
        self.gaps.push(nanos, 1);
    }
}

/// The beginning of a part: the trace without its ranks. `note`: a description of the part.
fn begin(trace: &Trace, note: &str) -> Result<Builder, String> {
    if let Some(rank) = trace.ranks.iter().position(|one| one.functions.count() > 0) {
        return Err(format!(
            "rank {rank} has measured times of the program's own reductions, which do not say their call; record it without `--compute`, or on a modelled machine"
        ));
    }
    let mut builder = Builder::new(trace.program.clone());
    trace.notes.iter().for_each(|note| builder.note(note));
    builder.note(note);
    builder.work(&trace.work.join("\n"));
    Ok(builder)
}

/// The numbers of the calls of a trace in a trace in the making.
fn numbers(trace: &Trace, builder: &mut Builder) -> Vec<u32> {
    let signatures = trace.signatures.iter();
    let signatures: Vec<u32> = signatures
        .map(|one| builder.signature(one.clone()))
        .collect();
    let calls = trace.calls.iter();
    let call =
        calls.map(|call| builder.call(signatures[call.signature as usize], call.values.clone()));
    call.collect()
}
