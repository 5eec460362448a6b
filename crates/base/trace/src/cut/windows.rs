//! Some calls of each rank, such as those of some iterations of a loop.
//!
//! Calls outside stay if they make, change or free an object that later calls may use, or open and
//! close the epochs of windows; they lose their computing. All others go.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::{Own, begin, numbers};
use crate::comms::{Place, Step, walk};
use crate::messages::{Event, Message, Requests};
use crate::{Access, Fact, Gaps, Parameter, Signature, Trace};

/// The trace with only these calls of each rank, by their numbers. `note`: a description of the
/// part.
///
/// # Errors
/// A message, a request or a collective call that lies within the part and outside, too.
pub fn windows(trace: &Trace, windows: &[Range<usize>], note: &str) -> Result<Trace, String> {
    let mut builder = begin(trace, note)?;
    let new = numbers(trace, &mut builder);
    let stays: Vec<bool> = trace.signatures.iter().map(stays).collect();
    let size = trace.ranks.len();
    let mut cut = Cut {
        trace,
        own: vec![Own::default(); size],
        requests: (0..size).map(|_| Requests::default()).collect(),
        open: vec![HashMap::new(); size],
        messages: BTreeMap::new(),
        collectives: BTreeMap::new(),
    };
    // The facts of the next call of each rank, which stay if it does.
    let mut facts = vec![Vec::new(); size];
    walk(trace, &mut |step| {
        let window = windows.get(step.rank).cloned().unwrap_or_default();
        let is_inside = window.contains(&step.at);
        let signature = trace.signature(step.call);
        match Fact::of(signature) {
            Some(Fact::Step) => return Ok(()),
            Some(_) => {
                facts[step.rank].push(new[step.call as usize]);
                return Ok(());
            }
            None => (),
        }
        let facts = std::mem::take(&mut facts[step.rank]);
        cut.follow(step, is_inside)?;
        let signature = trace.calls[step.call as usize].signature;
        if is_inside || stays[signature as usize] {
            let nanos = if is_inside { step.nanos } else { 0 };
            let own = &mut cut.own[step.rank];
            facts.into_iter().for_each(|fact| own.push(fact, 0));
            cut.own[step.rank].push(new[step.call as usize], nanos);
        }
        Ok(())
    })?;
    cut.check()?;
    for own in cut.own {
        builder.rank(&own.calls, own.gaps, Gaps::default());
    }
    Ok(builder.finish())
}

/// True if a call outside the part stays in it.
fn stays(signature: &Signature) -> bool {
    const OBJECTS: [&str; 7] = ["comm", "datatype", "file", "group", "op", "win", "message"];
    let name = signature.name.as_str();
    let changes = signature.parameters.iter().any(|one| {
        let is_result = matches!(one.access, Access::Out | Access::InOut);
        is_result && OBJECTS.contains(&one.kind.as_str())
    });
    let plain = name.strip_suffix("_c").unwrap_or(name);
    changes
        || plain.ends_with("_init")
        || ["MPI_Win_", "MPI_Buffer_", "MPI_Comm_set_", "MPI_Type_set_"]
            .iter()
            .any(|start| name.starts_with(start))
        || ["MPI_Init", "MPI_Init_thread", "MPI_Finalize"].contains(&name)
}

/// The number of the request that a call has made.
fn begun(trace: &Trace, call: u32) -> Option<i64> {
    let parameters = trace.signature(call).parameters.iter();
    let made = |one: &Parameter| one.kind == "request" && one.access == Access::Out;
    let at = { parameters }.position(made)?;
    trace.calls[call as usize].values[at].number()
}

/// The state of a cut: what later calls need, so that nothing leads out of the part.
struct Cut<'a> {
    trace: &'a Trace,
    own: Vec<Own>,
    requests: Vec<Requests>,
    /// For each rank its open requests: the call that began each, and whether it is in the part.
    open: Vec<HashMap<i64, (String, bool)>>,
    /// For each communicator, source and destination in the part, the messages sent and received.
    messages: BTreeMap<(usize, usize, usize), [u64; 2]>,
    /// For each communicator and member, the collective calls in the part.
    collectives: BTreeMap<usize, BTreeMap<usize, u64>>,
}

impl Cut<'_> {
    fn follow(&mut self, step: &Step, is_inside: bool) -> Result<(), String> {
        let trace = self.trace;
        let name = trace.signature(step.call).name.as_str();
        if !is_inside && name.starts_with("MPI_Comm_idup") {
            return Err(format!(
                "{}: it is outside the part, and what completes it would be lost; choose iterations from 0 on",
                step.name(trace)
            ));
        }
        let events = self.requests[step.rank].events(trace, step)?;
        if events.is_empty()
            && !name.contains("_init")
            && let Some(request) = begun(trace, step.call)
        {
            self.open[step.rank].insert(request, (step.name(trace), is_inside));
        }
        for event in events {
            match event {
                Event::Blocks(messages) => self.count(step, &messages, is_inside)?,
                Event::Begins(request, messages) => {
                    self.count(step, &messages, is_inside)?;
                    let begun = (step.name(trace), is_inside);
                    self.open[step.rank].insert(request, begun);
                }
                Event::Completes(request) => {
                    let begun = self.open[step.rank].remove(&request);
                    if let Some((by, was_inside)) = begun
                        && was_inside != is_inside
                    {
                        return Err(format!(
                            "{by}: it completes in {}, of which one is in the part and one is not; choose other iterations",
                            step.name(trace)
                        ));
                    }
                }
            }
        }
        if is_inside && super::collective(name).is_some() {
            let Place::In(comm, _) = step.place else {
                return Ok(());
            };
            if comm.members.len() > 1 {
                let of = self.collectives.entry(comm.id).or_default();
                for member in &comm.members {
                    of.entry(*member).or_default();
                }
                *of.entry(step.rank).or_default() += 1;
            }
        }
        Ok(())
    }

    fn count(&mut self, step: &Step, messages: &[Message], is_inside: bool) -> Result<(), String> {
        for message in messages.iter().filter(|_| is_inside) {
            let Some(peer) = message.peer else {
                return Err(format!(
                    "{}: it receives from any source, and the trace does not say from which",
                    step.name(self.trace)
                ));
            };
            let ends = if message.sends {
                (step.rank, peer)
            } else {
                (peer, step.rank)
            };
            let of = self
                .messages
                .entry((message.comm.id, ends.0, ends.1))
                .or_default();
            of[usize::from(!message.sends)] += 1;
        }
        Ok(())
    }

    /// Checks that messages have two ends, and collective calls all their ranks.
    fn check(&self) -> Result<(), String> {
        for ((_, from, to), [sent, received]) in &self.messages {
            if sent != received {
                return Err(format!(
                    "in the part rank {from} sends {sent} messages to rank {to}, which receives {received} there; choose other iterations"
                ));
            }
        }
        for members in self.collectives.values() {
            let mut counts = members.iter();
            let Some((first, calls)) = counts.next() else {
                continue;
            };
            if let Some((other, others)) = counts.find(|(_, other)| *other != calls) {
                return Err(format!(
                    "in the part rank {first} makes {calls} collective calls of a communicator, and rank {other} {others}; choose other iterations"
                ));
            }
        }
        Ok(())
    }
}
