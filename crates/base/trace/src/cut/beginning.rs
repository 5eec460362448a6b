//! The beginning of a trace whose ranks do not all reach `MPI_Finalize`, because they were killed
//! or their recording ended.
//!
//! It ends behind a collective operation of all ranks: all of them have completed it, and with it,
//! in a correct program, the same collective operations of all other communicators, windows and
//! files, because these come in one order. Of these places it is the last one at which no request
//! is open and each message that was sent has been received.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Own, begin, collective, numbers};
use crate::comms::{Place, Step, walk};
use crate::messages::{Event, Message, Requests};
use crate::{Access, Fact, Gaps, Signature, Trace};

/// The beginning of a trace.
pub struct Beginning {
    /// The trace, whose ranks end with `MPI_Finalize`.
    pub trace: Trace,
    /// The number of calls behind it, which are left out.
    pub left_out: u64,
}

/// The ranks keep their measured times if at most one call in so many is left out.
const FEW: u64 = 100;

/// The beginning that can be replayed of a trace whose ranks do not all reach `MPI_Finalize`.
/// `None`: they all do.
///
/// # Errors
/// There is no such beginning, and why.
pub fn beginning(trace: &Trace) -> Result<Option<Beginning>, String> {
    let size = trace.ranks.len();
    let mut ranks: Vec<Places> = (0..size).map(|_| Places::default()).collect();
    // A call that not all members of a communicator have reached ends the walk of its ranks.
    let _ = walk(trace, &mut |step| {
        ranks[step.rank].follow(trace, step, size);
        Ok(())
    });
    if ranks.iter().all(|rank| rank.is_whole) {
        return Ok(None);
    }
    if let Some(why) = ranks.iter_mut().find_map(|rank| rank.unknown.take()) {
        return Err(why);
    }
    let common = ranks.iter().map(|rank| rank.places.len()).min();
    let is_closed = |number: &usize| {
        let at = ranks.iter().map(|rank| &rank.places[*number]);
        let sums = at.clone().map(|place| place.balance);
        at.clone().all(|place| place.open == 0) && sums.fold(0, u64::wrapping_add) == 0
    };
    let last = (0..common.unwrap_or(0)).rev().find(is_closed);
    let Some(last) = last else {
        return Err(
            "not all ranks reach MPI_Finalize, and they have no collective operation of all ranks behind which no message is on its way".into(),
        );
    };
    let ends: Vec<usize> = ranks.iter().map(|rank| rank.places[last].end).collect();
    Ok(Some(cut(trace, &ends)?))
}

/// The calls before the end of each rank, and `MPI_Finalize`.
fn cut(trace: &Trace, ends: &[usize]) -> Result<Beginning, String> {
    let calls = |rank: usize| trace.calls_of(rank).count();
    let all: Vec<usize> = (0..ends.len()).map(calls).collect();
    let left_out = all.iter().zip(ends).map(|(all, end)| (all - end) as u64);
    let left_out: u64 = left_out.sum();
    let note = format!(
        "cut: {left_out} of {} calls at the end are left out, so that all ranks end behind one collective operation",
        all.iter().sum::<usize>()
    );
    let is_short = left_out * FEW > all.iter().sum::<usize>() as u64;
    let mut builder = begin(trace, &note)?;
    let new = numbers(trace, &mut builder);
    let finalize = Signature::parse("MPI_Finalize").map(|line| builder.signature(line));
    let finalize = finalize.map(|line| builder.call(line, Vec::new()));
    for (rank, end) in ends.iter().enumerate() {
        let mut own = Own::default();
        for (call, nanos) in trace.calls_of(rank).take(*end) {
            own.push(new[call as usize], nanos);
        }
        finalize.iter().for_each(|call| own.push(*call, 0));
        builder.rank(&own.calls, own.gaps, Gaps::default());
        let measured = trace.ranks[rank].measured.clone();
        measured
            .filter(|_| !is_short)
            .into_iter()
            .for_each(|mut times| {
                times.end_before(*end as u64);
                builder.measured(times);
            });
    }
    Ok(Beginning {
        trace: builder.finish(),
        left_out,
    })
}

/// The collective operations of all ranks that one rank has made.
#[derive(Default)]
struct Places {
    places: Vec<Placed>,
    requests: Requests,
    open: HashSet<i64>,
    /// The messages that the rank has sent, less those that it has received. The sum over all ranks
    /// is 0 if each message has both ends.
    balance: u64,
    is_whole: bool,
    /// The message whose other end is unknown.
    unknown: Option<String>,
}

/// The state of a rank behind a collective operation of all ranks.
struct Placed {
    /// The number of the call behind it.
    end: usize,
    open: usize,
    balance: u64,
}

impl Places {
    fn follow(&mut self, trace: &Trace, step: &Step, size: usize) {
        let signature = trace.signature(step.call);
        let name = signature.name.as_str();
        if Fact::of(signature).is_some() {
            return;
        }
        self.is_whole = name == "MPI_Finalize";
        match self.requests.events(trace, step) {
            Err(why) => self.unknown = self.unknown.take().or(Some(why)),
            Ok(events) => self.take(trace, step, events),
        }
        let of_all = match step.place {
            Place::In(comm, _) => comm.members.len() == size,
            _ => false,
        };
        if of_all && collective(name).is_some() {
            self.places.push(Placed {
                end: step.at + 1,
                open: self.open.len(),
                balance: self.balance,
            });
        }
    }

    fn take(&mut self, trace: &Trace, step: &Step, events: Vec<Event>) {
        let signature = trace.signature(step.call);
        if events.is_empty() && !signature.name.contains("_init") {
            let mut parameters = signature.parameters.iter();
            let made =
                parameters.position(|one| one.kind == "request" && one.access == Access::Out);
            let values = &trace.calls[step.call as usize].values;
            self.open.extend(made.and_then(|at| values[at].number()));
        }
        for event in events {
            match event {
                Event::Blocks(messages) => self.count(trace, step, &messages),
                Event::Begins(request, messages) => {
                    self.count(trace, step, &messages);
                    self.open.insert(request);
                }
                Event::Completes(request) => drop(self.open.remove(&request)),
            }
        }
    }

    fn count(&mut self, trace: &Trace, step: &Step, messages: &[Message]) {
        for message in messages {
            let Some(peer) = message.peer else {
                let why = format!(
                    "{}: it receives from any source, and the trace does not say from which",
                    step.name(trace)
                );
                self.unknown = self.unknown.take().or(Some(why));
                continue;
            };
            let (from, to) = match message.sends {
                true => (step.rank, peer),
                false => (peer, step.rank),
            };
            let mut hasher = DefaultHasher::new();
            (message.comm.id, from, to, "message").hash(&mut hasher);
            let weight = hasher.finish();
            self.balance = match message.sends {
                true => self.balance.wrapping_add(weight),
                false => self.balance.wrapping_sub(weight),
            };
        }
    }
}
