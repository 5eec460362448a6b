//! Compute traces from other sources than a run, and their times for other replays.

use datatype::local_work::Rates;

use super::entry::Entry;
use super::{CallKey, ComputeTrace, key};

/// A call of a compute trace that is being generated.
#[derive(Clone, Copy, Debug)]
pub struct MadeCall<'a> {
    /// The name of the procedure.
    pub name: &'a str,
    /// The computing before the call, in nanoseconds.
    pub nanos: u64,
    /// True for a reading of the clock, and for another call that is no step of the program.
    pub is_aside: bool,
    /// The key of the call.
    pub key: CallKey,
}

/// A compute trace that has no ranks yet.
pub fn begin(program: String, work: Rates) -> ComputeTrace {
    ComputeTrace {
        program,
        ranks: Vec::new(),
        work,
    }
}

/// Adds the next rank of a trace with its calls. Each of them has a line of its own.
pub fn add_rank<'a>(trace: &mut ComputeTrace, calls: impl Iterator<Item = MadeCall<'a>>) {
    let mut lines = String::new();
    for call in calls {
        let entry = Entry {
            name: call.name,
            nanos: call.nanos,
            times: u64::from(call.is_aside),
            key: &key::text(call.key),
        };
        entry.write(&mut lines);
    }
    trace.ranks.push(lines);
}

/// The lines of a rank: the nanoseconds before a call, or `None` where a step begins.
pub fn lines(trace: &ComputeTrace, rank: usize) -> impl Iterator<Item = Option<u64>> + '_ {
    let lines = trace.ranks.get(rank).map_or("", String::as_str).lines();
    lines.map(|line| Entry::read(line).map(|entry| entry.nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_a_line_and_calls_aside_are_no_steps() {
        let call = |name, nanos, is_aside| MadeCall {
            name,
            nanos,
            is_aside,
            key: CallKey {
                peer: Some(-1),
                ..CallKey::default()
            },
        };
        let calls = [
            call("MPI_Send", 5, false),
            call("MPI_Wtime", 7, true),
            call("MPI_Recv", 1, false),
        ];
        let mut trace = begin("./a".into(), Rates::none());
        add_rank(&mut trace, calls.into_iter());
        add_rank(&mut trace, [].into_iter());
        assert_eq!(ComputeTrace::parse(&trace.text()), Ok(trace.clone()));
        let names: Vec<_> = trace
            .calls(0)
            .map(|(name, _, nanos)| (name, nanos))
            .collect();
        assert_eq!(names, [("MPI_Send", 5), ("MPI_Recv", 8)]);
        let first: Vec<_> = lines(&trace.with_steps(&[vec![1]]), 0).collect();
        assert_eq!(first, [Some(5), None, Some(7), Some(1)]);
        assert_eq!(lines(&trace, 1).count(), 0);
    }
}
