//! Several pairs of processors on the two hosts of a benchmark: `--pairs`.
//!
//! Each pair runs the whole plan with its own device handle, queue pairs and memory, because one
//! processor cannot use up the message rate of a chip. The clients of all pairs wait for each other
//! before each size, so that all streams of a size run at the same time.

use std::iter::repeat_with;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow, bail};

use crate::control::ControlLink;
use crate::measure::{Found, Sample};
use crate::stream::Stream;

/// A barrier that threads, each of which runs one pair, use repeatedly.
pub struct Meeting {
    threads: usize,
    /// The number of arrivals of threads at all barriers until now.
    arrived: AtomicUsize,
    /// True if a thread has failed, and will not arrive any more.
    failed: AtomicBool,
}

/// The membership of one thread in a [`Meeting`]. A thread that drops its seat before its pair is
/// complete has failed.
pub struct Seat {
    meeting: Arc<Meeting>,
    rounds: usize,
    complete: bool,
}

impl Meeting {
    fn new(threads: usize) -> Arc<Meeting> {
        Arc::new(Meeting {
            threads,
            arrived: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        })
    }

    /// The members of a new [`Meeting`], one for each thread.
    pub fn of(threads: usize) -> Vec<Seat> {
        let meeting = Meeting::new(threads);
        let seats = repeat_with(|| Seat::at(meeting.clone()));
        seats.take(threads).collect()
    }
}

impl Seat {
    fn at(meeting: Arc<Meeting>) -> Seat {
        Seat {
            meeting,
            rounds: 0,
            complete: false,
        }
    }

    /// The member of a barrier that has no other members.
    pub(crate) fn alone() -> Seat {
        Seat::at(Meeting::new(1))
    }

    /// Arrives at the next barrier of the threads, and waits for the others.
    pub(crate) fn arrive(&mut self) {
        self.rounds += 1;
        self.meeting.arrived.fetch_add(1, Ordering::AcqRel);
    }

    /// True if all threads have arrived at the barrier of the last [`arrive`](Seat::arrive). An
    /// error if a thread has failed.
    pub(crate) fn is_met(&self) -> Result<bool> {
        let meeting = &self.meeting;
        if meeting.arrived.load(Ordering::Acquire) >= self.rounds * meeting.threads {
            return Ok(true);
        }
        if meeting.failed.load(Ordering::Acquire) {
            bail!(Consequence);
        }
        Ok(false)
    }

    /// Records that the pair is complete, so that dropping the seat does not count as a failure.
    pub(crate) fn leave(&mut self) {
        self.complete = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.complete {
            self.meeting.failed.store(true, Ordering::Release);
        }
    }
}

/// The error of a pair that ends because another pair has failed.
#[derive(Debug)]
struct Consequence;

impl std::fmt::Display for Consequence {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("another pair of this side has failed")
    }
}

impl std::error::Error for Consequence {}

/// Runs one side of all pairs, each in its own thread, and adds up their results. `step` is called
/// after each size of the first pair. `run` runs a pair on a device that it opens itself.
pub fn run(
    links: Vec<ControlLink>,
    mut step: impl FnMut(usize),
    run: impl Fn(ControlLink, Seat, &mut dyn FnMut(usize)) -> Result<Vec<Sample>> + Sync,
) -> Result<Vec<Sample>> {
    let seats = Meeting::of(links.len());
    let mut all = links.into_iter().zip(seats);
    let first = all.next();
    let found = thread::scope(|scope| {
        let others: Vec<_> = all
            .map(|(link, seat)| {
                let run = || run(link, seat, &mut |_| ());
                // If its thread cannot be started, the pair drops its seat, which ends the others.
                thread::Builder::new().spawn_scoped(scope, run)
            })
            .collect();
        let mut found = Vec::new();
        found.extend(first.map(|(link, seat)| run(link, seat, &mut step)));
        let failed = || Err(anyhow!("the thread of a pair has ended without a result"));
        found.extend(others.into_iter().map(|other| match other {
            Ok(other) => other.join().unwrap_or_else(|_| failed()),
            Err(why) => Err(anyhow!("cannot start the thread of a pair: {why}")),
        }));
        found
    });
    added_up(found, |why| why.is::<Consequence>())
}

/// The sums of the results of all pairs, or the error of the first pair that failed for a reason of
/// its own.
pub(crate) fn added_up(
    found: Vec<Result<Vec<Sample>>>,
    is_consequence: impl Fn(&anyhow::Error) -> bool,
) -> Result<Vec<Sample>> {
    let (mut good, mut failed) = (Vec::new(), Vec::new());
    for one in found {
        match one {
            Ok(samples) => good.push(samples),
            Err(why) => failed.push(why),
        }
    }
    let cause = failed.iter().position(|why| !is_consequence(why));
    if !failed.is_empty() {
        return Err(failed.swap_remove(cause.unwrap_or(0)));
    }
    let mut good = good.into_iter();
    let mut sum = good.next().unwrap_or_default();
    let others: Vec<Vec<Sample>> = good.collect();
    if others.is_empty() {
        return Ok(sum);
    }
    for (at, sample) in sum.iter_mut().enumerate() {
        let same = others.iter().filter_map(|pair| pair.get(at));
        add(sample, &same.collect::<Vec<_>>());
    }
    Ok(sum)
}

/// Adds the samples of other pairs to the sample of the first pair. A model counts the traffic of
/// the whole machine, so the traffic is not added.
fn add(sample: &mut Sample, others: &[&Sample]) {
    for other in others {
        sample.counts.requests += other.counts.requests;
    }
    if let Found::Stream(own) = &mut sample.found {
        let streams = others.iter().filter_map(|other| match &other.found {
            Found::Stream(stream) => Some(*stream),
            Found::Latency(_) => None,
        });
        let all: Vec<Stream> = [*own].into_iter().chain(streams).collect();
        let sent: Vec<_> = all.iter().map(|one| (one.sent, one.sent_rate)).collect();
        let received: Option<Vec<_>> = all.iter().map(|one| one.received).collect();
        (own.sent, own.sent_rate) = together(&sent);
        own.received = received.map(|all| together(&all));
    }
}

/// The number of messages and the rate of several streams that begin at one time: all messages,
/// divided by the time of the slowest stream.
fn together(streams: &[(usize, f64)]) -> (usize, f64) {
    let messages = streams.iter().map(|(messages, _)| messages).sum::<usize>();
    let times = streams
        .iter()
        .map(|&(messages, rate)| messages as f64 / rate);
    let slowest = times.fold(0.0, f64::max);
    match slowest > 0.0 && slowest.is_finite() {
        true => (messages, messages as f64 / slowest),
        false => (messages, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_stream_gives_the_time() {
        assert_eq!(together(&[(100, 10.0), (100, 5.0)]), (200, 10.0));
        // No messages take no time, and for messages without a rate no time was measured.
        assert_eq!(together(&[(0, 0.0), (7, 7.0)]), (7, 7.0));
        assert_eq!(together(&[(3, 0.0), (7, 7.0)]), (10, 0.0));
    }

    #[test]
    fn a_round_is_met_when_all_have_arrived() {
        let mut seats = Meeting::of(2);
        seats[0].arrive();
        assert!(!seats[0].is_met().unwrap());
        seats[1].arrive();
        assert!(seats.iter().all(|seat| seat.is_met().unwrap()));
        seats[0].arrive();
        assert!(!seats[0].is_met().unwrap());
        drop(seats.pop());
        assert!(seats[0].is_met().is_err());
    }

    #[test]
    fn the_cause_of_a_failure_is_reported_and_not_its_consequence() {
        let found = vec![
            Ok(Vec::new()),
            Err(anyhow!(Consequence)),
            Err(anyhow!("the cable is cut")),
        ];
        let why = added_up(found, |why| why.is::<Consequence>()).unwrap_err();
        assert_eq!(why.to_string(), "the cable is cut");
    }
}
