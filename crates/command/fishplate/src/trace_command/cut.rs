//! `fishplate trace cut`: some ranks or some iterations of a trace.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use ::compare::work::{Wanted, Work};
use clap::Args;
use replay::Computing;
use trace::cut::{Others, ranks, windows};
use trace::{Fact, Trace};

use super::written;
use crate::trace_file::read;

#[derive(Args)]
pub(super) struct CutArguments {
    /// The trace
    file: PathBuf,

    /// The ranks to keep, such as 0-15,20: they are the world of the part, and collective calls
    /// have them alone
    #[arg(long, value_name = "RANK,RANK-RANK", required_unless_present_any = ["iterations", "seconds"],
        value_delimiter = ',', value_parser = rank_range)]
    ranks: Vec<Range<usize>>,

    /// Leave out messages between ranks that are kept and others
    #[arg(long, requires = "ranks")]
    leave_out_others: bool,

    /// The iterations of the program's loop to keep, from A on and before B, the first is 0; with
    /// them what makes and frees objects
    #[arg(long, value_name = "A:B", conflicts_with = "seconds", value_parser = span::<usize>)]
    iterations: Option<Range<usize>>,

    /// Keep the iterations that begin from A on and before B, in seconds of a rank's computing
    #[arg(long, value_name = "A:B", value_parser = span::<f64>)]
    seconds: Option<Range<f64>>,

    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
}

/// Parses a rank or a range of ranks.
fn rank_range(word: &str) -> Result<Range<usize>, String> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let range = first.parse().ok().zip(last.parse::<usize>().ok());
    let range = range.filter(|(first, last)| first <= last && *last < 1 << 20);
    match range {
        Some((first, last)) => Ok(first..last + 1),
        None => Err("valid are a rank such as 3, and ranks such as 0-15".into()),
    }
}

/// A number of a span, which may be left out at its end.
trait Bound: std::str::FromStr + PartialOrd + Default {
    const END: Self;
}

impl Bound for usize {
    const END: usize = usize::MAX;
}

impl Bound for f64 {
    const END: f64 = f64::INFINITY;
}

/// Parses a span in the form `A:B`, `A:` or `:B`.
fn span<T: Bound>(word: &str) -> Result<Range<T>, String> {
    let parse = |word: &str, left_out: T| match word {
        "" => Some(left_out),
        word => word.parse().ok(),
    };
    let ends = word.split_once(':');
    let ends = ends.and_then(|(a, b)| parse(a, T::default()).zip(parse(b, T::END)));
    match ends.filter(|(a, b)| a < b && *a >= T::default()) {
        Some((a, b)) => Ok(a..b),
        None => Err("valid are A:B with A below B, A: and :B".into()),
    }
}

pub(super) fn cut(arguments: &CutArguments) -> Result<String, String> {
    let wrong = |why: String| format!("{}: {why}", arguments.file.display());
    let mut part = read(&arguments.file)?;
    let mut text = String::new();
    if arguments.iterations.is_some() || arguments.seconds.is_some() {
        let (cut, said) = iterations(&part, arguments).map_err(wrong)?;
        (part, text) = (cut, said);
    }
    let kept: BTreeSet<usize> = arguments.ranks.iter().cloned().flatten().collect();
    if !kept.is_empty() {
        let others = match arguments.leave_out_others {
            true => Others::LeaveOut,
            false => Others::Refuse,
        };
        let note = format!("cut: {} of {} ranks", kept.len(), part.ranks.len());
        let (cut, found) = ranks(&part, &kept, others, &note).map_err(wrong)?;
        part = cut;
        text += &format!("{} ranks\n", kept.len());
        if found.smaller > 0 {
            text += &format!("{} collective calls have fewer ranks\n", found.smaller);
        }
        if found.left_out > 0 {
            text += &format!(
                "{} ends of messages with other ranks are left out\n",
                found.left_out
            );
        }
    }
    replay::check(&part).map_err(wrong)?;
    written(&arguments.output, &part).map(|()| text)
}

/// The part of a trace that consists of the requested iterations, and the note about it.
fn iterations(trace: &Trace, arguments: &CutArguments) -> Result<(Trace, String), String> {
    let computing = Computing::of(Arc::new(trace.clone()))?;
    let work = Work::of(&computing, &Wanted::default()).map_err(|why| why.to_string())?;
    let found = work
        .found
        .map_err(|why| format!("no loop was found, so there are no iterations to choose: {why}"))?;
    let boundaries = &found.found.boundaries;
    let marked = computing.trace(boundaries);
    let marks = Marks::of(&marked);
    let all = found.found.iterations();
    let chosen = match (&arguments.iterations, &arguments.seconds) {
        (Some(span), _) => span.start.min(all)..span.end.min(all),
        (None, Some(span)) => marks.between(span, all),
        (None, None) => 0..all,
    };
    if chosen.is_empty() {
        let length = marks.begins.last().copied().unwrap_or(0.0);
        return Err(format!(
            "none of its iterations is meant: there are {all}, which begin before {length:.3} s of computing"
        ));
    }
    let calls = marks
        .calls
        .iter()
        .map(|calls| calls[chosen.start]..calls[chosen.end]);
    let (from, to) = (chosen.start, chosen.end);
    let note = format!("cut: iterations {from} to {} of {all}", to - 1);
    let part = windows(trace, &calls.collect::<Vec<_>>(), &note)?;
    Ok((part, format!("iterations {from} to {} of {all}\n", to - 1)))
}

/// The calls at which the iterations of each rank begin.
struct Marks {
    /// For each rank the number of the call with which each begins, and of that behind the last.
    calls: Vec<Vec<usize>>,
    /// The mean computing of the ranks before each iteration, in seconds.
    begins: Vec<f64>,
}

impl Marks {
    /// The marks of a trace that contains the beginnings of all iterations.
    fn of(marked: &Trace) -> Marks {
        let mut calls = Vec::new();
        let mut begins: Vec<f64> = Vec::new();
        for rank in 0..marked.ranks.len() {
            let (mut own, mut number, mut nanos) = (Vec::new(), 0, 0u64);
            for (call, before) in marked.calls_of(rank) {
                if Fact::of(marked.signature(call)) == Some(Fact::Step) {
                    if begins.len() == own.len() {
                        begins.push(0.0);
                    }
                    begins[own.len()] += nanos as f64 * 1e-9 / marked.ranks.len() as f64;
                    own.push(number);
                } else {
                    number += 1;
                    nanos = nanos.saturating_add(before);
                }
            }
            calls.push(own);
        }
        Marks { calls, begins }
    }

    /// The iterations (numbers below `all`) that begin in a span of seconds.
    fn between(&self, span: &Range<f64>, all: usize) -> Range<usize> {
        let begins = &self.begins[..all.min(self.begins.len())];
        let from = begins.iter().take_while(|at| **at < span.start).count();
        let to = begins.iter().take_while(|at| **at < span.end).count();
        from..to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_spans_are_parsed() {
        assert_eq!(rank_range("3"), Ok(3..4));
        assert_eq!(rank_range("0-15"), Ok(0..16));
        assert!(rank_range("5-4").is_err() && rank_range("x").is_err());
        assert_eq!(span::<usize>("2:5"), Ok(2..5));
        assert_eq!(span::<usize>(":5"), Ok(0..5));
        assert_eq!(span::<f64>("0.5:"), Ok(0.5..f64::INFINITY));
        for wrong in ["5:5", "-1:2", "5", ":x"] {
            assert!(span::<f64>(wrong).is_err(), "{wrong}");
        }
    }
}
