//! The combination of several traces of one program into one.
//!
//! Sure calls are the same in all of the traces, if the program does not decide by time. Polls,
//! waits and readings of the clock between two sure calls may differ: the result then has those of
//! the trace whose computing between the two calls takes the median time.

use datatype::local_work::Rates;

use super::ComputeTrace;
use super::entry::Entry;

impl ComputeTrace {
    /// One trace in which each call has the median of its times in `traces`. `None` if not all of
    /// the traces have the same sure calls, or if there is no trace.
    pub fn median(traces: &[&ComputeTrace]) -> Option<ComputeTrace> {
        let first = traces.first()?;
        let fits = |trace: &&ComputeTrace| trace.ranks.len() == first.ranks.len();
        if !traces.iter().all(fits) {
            return None;
        }
        let of_rank = |rank: usize| {
            let parts = traces.iter().map(|trace| trace.ranks[rank].as_str());
            median_of_rank(parts.collect())
        };
        let ranks = (0..first.ranks.len()).map(of_rank);
        Some(ComputeTrace {
            program: first.program.clone(),
            ranks: ranks.collect::<Option<_>>()?,
            work: median_of_work(traces),
        })
    }

    /// One trace for several of one program: their [`median`](ComputeTrace::median). Where their
    /// sure calls differ, the result is the trace with the median of the total computing times.
    /// `None` if there is no trace.
    pub fn middle(traces: &[&ComputeTrace]) -> Option<ComputeTrace> {
        ComputeTrace::median(traces).or_else(|| {
            let mut ordered = traces.to_vec();
            ordered.sort_by_key(|trace| trace.total());
            let middle = ordered.get(ordered.len().saturating_sub(1) / 2)?;
            Some(ComputeTrace {
                work: median_of_work(traces),
                ..(*middle).clone()
            })
        })
    }

    /// True if all traces have the same calls on every rank. The position of a call then identifies
    /// it in every trace.
    pub fn have_equal_calls(traces: &[&ComputeTrace]) -> bool {
        let same = |two: &[&ComputeTrace]| {
            let (one, other) = (two[0], two[1]);
            let calls = |trace: &ComputeTrace, rank| {
                let calls = trace
                    .calls(rank)
                    .map(|(name, key, _)| (name.to_owned(), key));
                calls.collect::<Vec<_>>()
            };
            one.ranks() == other.ranks()
                && (0..one.ranks()).all(|rank| calls(one, rank) == calls(other, rank))
        };
        traces.windows(2).all(same)
    }
}

fn median_of_work(traces: &[&ComputeTrace]) -> Rates {
    Rates::median(traces.iter().map(|trace| &trace.work))
}

/// A sure call (one that always has a result), with the other calls of its rank before it.
struct Gap<'a> {
    entries: Vec<Entry<'a>>,
}

impl<'a> Gap<'a> {
    /// Reads the lines up to the next sure call, or to the end of the trace. `None`: a line is not
    /// valid.
    fn read(lines: &mut impl Iterator<Item = &'a str>) -> Option<Gap<'a>> {
        let mut entries = Vec::new();
        for line in lines {
            let entry = Entry::read(line)?;
            entries.push(entry);
            if entry.is_sure() {
                break;
            }
        }
        Some(Gap { entries })
    }

    /// The name and the key of the sure call that ends the gap.
    fn end(&self) -> Option<(&str, &str)> {
        let last = self.entries.last().filter(|entry| entry.is_sure())?;
        Some((last.name, last.key))
    }

    fn has_calls_of(&self, other: &Gap) -> bool {
        let mut pairs = self.entries.iter().zip(&other.entries);
        self.entries.len() == other.entries.len() && pairs.all(|(one, other)| one.is_of(other))
    }

    fn total(&self) -> u64 {
        let nanos = self.entries.iter().map(|entry| entry.nanos);
        nanos.fold(0, u64::saturating_add)
    }
}

fn median_of_rank(parts: Vec<&str>) -> Option<String> {
    let mut parts: Vec<_> = parts.into_iter().map(str::lines).collect();
    let mut text = String::new();
    loop {
        let gaps = parts.iter_mut().map(Gap::read);
        let gaps = gaps.collect::<Option<Vec<_>>>()?;
        if gaps.iter().any(|gap| gap.end() != gaps[0].end()) {
            return None;
        }
        match gaps.iter().all(|gap| gap.has_calls_of(&gaps[0])) {
            true => write_medians(&gaps, &mut text),
            false => write_middle(&gaps, &mut text),
        }
        if gaps[0].end().is_none() {
            return Some(text);
        }
    }
}

/// Writes gaps that have the same calls: each call with the median of its times.
fn write_medians(gaps: &[Gap], text: &mut String) {
    for (at, entry) in gaps[0].entries.iter().enumerate() {
        let mut nanos: Vec<u64> = gaps.iter().map(|gap| gap.entries[at].nanos).collect();
        let nanos = median(&mut nanos);
        Entry { nanos, ..*entry }.write(text);
    }
}

/// Writes gaps that have different calls: the calls of the gap with the median total, scaled to the
/// median of all totals.
fn write_middle(gaps: &[Gap], text: &mut String) {
    let mut ordered: Vec<&Gap> = gaps.iter().collect();
    ordered.sort_by_key(|gap| gap.total());
    let middle = ordered[(ordered.len() - 1) / 2];
    let wanted = median(&mut gaps.iter().map(Gap::total).collect::<Vec<u64>>());
    let total = u128::from(middle.total());
    let (mut before, mut written) = (0u128, 0);
    let last = middle.entries.len().saturating_sub(1);
    for (at, entry) in middle.entries.iter().enumerate() {
        before += u128::from(entry.nanos);
        let share = (before * u128::from(wanted)).checked_div(total);
        // If the chosen gap has no time, the last call gets all of it.
        let until = if at == last {
            wanted
        } else {
            share.unwrap_or(0) as u64
        };
        let nanos = until - written;
        written = until;
        Entry { nanos, ..*entry }.write(text);
    }
}

/// The median of numbers; of an even number of them the mean of the two in the middle.
fn median(numbers: &mut [u64]) -> u64 {
    numbers.sort_unstable();
    let [low, high] = [(numbers.len() - 1) / 2, numbers.len() / 2].map(|at| numbers[at]);
    low.midpoint(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_trace::tests::of;

    #[test]
    fn the_median_of_each_call_leaves_out_a_disturbance() {
        let quiet = of(&["MPI_Send 10\nMPI_Test 70 x7\n", "MPI_Recv 5\n"]);
        let disturbed = of(&["MPI_Send 9000\nMPI_Test 72 x7\n", "MPI_Recv 1\n"]);
        let third = of(&["MPI_Send 12\nMPI_Test 90 x7\n", "MPI_Recv 6\n"]);
        let wanted = of(&["MPI_Send 12\nMPI_Test 72 x7\n", "MPI_Recv 5\n"]);
        let all = [&quiet, &disturbed, &third];
        assert_eq!(ComputeTrace::median(&all), Some(wanted.clone()));
        assert_eq!(ComputeTrace::middle(&all), Some(wanted));
        // The median of two times is their mean.
        let wanted = of(&["MPI_Send 11\nMPI_Test 80 x7\n", "MPI_Recv 5\n"]);
        assert_eq!(ComputeTrace::median(&[&quiet, &third]), Some(wanted));
        assert_eq!(ComputeTrace::median(&[]), None);
        assert!(ComputeTrace::have_equal_calls(&all));
    }

    #[test]
    fn other_polls_and_clock_readings_are_those_of_the_middle() {
        let few = of(&["MPI_Wtime 40 x2\nMPI_Recv 10\nMPI_Send 3\n"]);
        let more = of(&["MPI_Wtime 60 x3\nMPI_Wait 30\nMPI_Recv 10\nMPI_Send 5\n"]);
        let many = of(&["MPI_Wtime 900 x40\nMPI_Test 10\nMPI_Recv 10\nMPI_Send 9\n"]);
        let middle = of(&["MPI_Wtime 60 x3\nMPI_Wait 30\nMPI_Recv 10\nMPI_Send 5\n"]);
        assert_eq!(ComputeTrace::median(&[&many, &few, &more]), Some(middle));
        // The median of two gaps has the calls of the shorter one and the mean of both times.
        let mean = of(&["MPI_Wtime 60 x2\nMPI_Recv 15\nMPI_Send 4\n"]);
        assert_eq!(ComputeTrace::median(&[&few, &more]), Some(mean));
        assert!(ComputeTrace::have_equal_calls(&[&few, &many]));
        assert!(!ComputeTrace::have_equal_calls(&[&few, &more]));
        let idle = of(&["MPI_Recv 0\nMPI_Send 3\n"]);
        let wanted = of(&["MPI_Recv 25\nMPI_Send 3\n"]);
        assert_eq!(ComputeTrace::median(&[&idle, &few]), Some(wanted));
    }

    #[test]
    fn where_sure_calls_differ_one_whole_trace_is_taken() {
        let short = of(&["MPI_Test 10 x1\nMPI_Recv 5\n"]);
        let middle = of(&["MPI_Test 20 x2\nMPI_Bcast 5\n"]);
        let long = of(&["MPI_Test 90 x9\nMPI_Recv 5 s4\n"]);
        let more = of(&["MPI_Test 10 x1\nMPI_Recv 5\nMPI_Send 1\n"]);
        let wider = of(&["MPI_Test 10 x1\nMPI_Recv 5\n", "MPI_Recv 5\n"]);
        for other in [&middle, &long, &more, &wider] {
            assert_eq!(ComputeTrace::median(&[&short, other]), None, "{other:?}");
            assert_eq!(ComputeTrace::median(&[other, &short]), None, "{other:?}");
        }
        let found = ComputeTrace::middle(&[&long, &short, &middle]);
        assert_eq!(found, Some(middle));
    }
}
