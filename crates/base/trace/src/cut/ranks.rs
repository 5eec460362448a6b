//! The part of a trace with some of its ranks, which are the whole world of the part.

use std::collections::{BTreeSet, HashMap};

use super::{Own, begin, numbers};
use crate::comms::{Comm, Place, Step, peer, walk};
use crate::standard::{ANY_SOURCE, PROC_NULL};
use crate::value::Value;
use crate::{Access, Gaps, Length, Signature, Trace};

/// The treatment of messages between a rank of the part and another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// A message with a rank that is left out is an error.
    Refuse,
    /// A message with a rank that is left out becomes one with MPI_PROC_NULL, which moves nothing.
    LeaveOut,
}

/// The calls of a part that do other work than in the whole trace, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The number of collective calls that have fewer ranks in the part.
    pub smaller: u64,
    /// The number of messages with other ranks, which are left out.
    pub left_out: u64,
}

/// The trace of these ranks alone. Collective calls have the ranks of the part.
///
/// # Errors
/// A call that involves a rank outside the part.
pub fn ranks(
    trace: &Trace,
    kept: &BTreeSet<usize>,
    others: Others,
    note: &str,
) -> Result<(Trace, Kept), String> {
    if let Some(rank) = kept.iter().find(|rank| **rank >= trace.ranks.len()) {
        let all = trace.ranks.len();
        return Err(format!("there is no rank {rank}: the trace has {all}"));
    }
    let mut builder = begin(trace, note)?;
    let new = numbers(trace, &mut builder);
    let mut known: HashMap<(u32, usize, usize), (u32, Kept)> = HashMap::new();
    let mut own = vec![Own::default(); trace.ranks.len()];
    let mut all = Kept::default();
    walk(trace, &mut |step| {
        if !kept.contains(&step.rank) {
            return Ok(());
        }
        let mut call = new[step.call as usize];
        if let Some((comm, place)) = partial(trace, step, kept)? {
            let key = (step.call, comm.id, place);
            let (other, found) = match known.get(&key) {
                Some(known) => *known,
                None => {
                    let (values, found) = Change {
                        trace,
                        step,
                        comm,
                        own: place,
                        kept,
                        others,
                    }
                    .values()?;
                    let signature = trace.signature(step.call).clone();
                    let signature = builder.signature(signature);
                    let made = (builder.call(signature, values), found);
                    known.insert(key, made);
                    made
                }
            };
            call = other;
            all.smaller += found.smaller;
            all.left_out += found.left_out;
        }
        own[step.rank].push(call, step.nanos);
        Ok(())
    })?;
    for rank in kept {
        let own = std::mem::take(&mut own[*rank]);
        builder.rank(&own.calls, own.gaps, Gaps::default());
    }
    Ok((builder.finish(), all))
}

/// The communicator of a call, if some of its ranks are outside the part.
fn partial<'a>(
    trace: &Trace,
    step: &'a Step,
    kept: &BTreeSet<usize>,
) -> Result<Option<(&'a Comm, usize)>, String> {
    match step.place {
        Place::None => Ok(None),
        Place::In(comm, own) => {
            let is_whole = comm.members.iter().all(|member| kept.contains(member));
            Ok((!is_whole).then_some((comm, *own)))
        }
        // It may have ranks outside the part, unless all are in it.
        Place::Unknown(_) if kept.len() == trace.ranks.len() => Ok(None),
        Place::Unknown(maker) => Err(format!(
            "{}: its communicator comes from {maker}, and the trace does not say its ranks",
            step.name(trace)
        )),
    }
}

/// A call that is changed because its communicator has ranks outside the part.
struct Change<'a> {
    trace: &'a Trace,
    step: &'a Step<'a>,
    comm: &'a Comm,
    own: usize,
    kept: &'a BTreeSet<usize>,
    others: Others,
}

impl Change<'_> {
    fn wrong<T>(&self, why: &str) -> Result<T, String> {
        Err(format!("{}: {why}", self.step.name(self.trace)))
    }

    /// The values of the call's parameters in the part.
    fn values(&self) -> Result<(Vec<Value>, Kept), String> {
        let signature = self.trace.signature(self.step.call);
        let mut values = self.trace.calls[self.step.call as usize].values.clone();
        let mut found = Kept::default();
        let name = signature.name.as_str();
        if let Some(kind) = collective(name) {
            if kind == "neighbor_" {
                return self.wrong("its neighbours may be outside the part");
            }
            found.smaller = 1;
            self.collective(signature, &mut values)?;
            return Ok((values, found));
        }
        for (parameter, value) in signature.parameters.iter().zip(&mut values) {
            if ["dest", "source"].contains(&parameter.kind.as_str()) {
                found.left_out += u64::from(self.peer(value)?);
            }
        }
        let is_message = signature.parameters.iter();
        let is_message = { is_message }.any(|one| ["dest", "source"].contains(&one.kind.as_str()));
        let makes = signature.parameters.iter().find(|one| {
            one.access == Access::Out
                && ["comm", "file", "group", "request", "win"].contains(&one.kind.as_str())
        });
        const MADE: [&str; 6] = [
            "MPI_Comm_dup",
            "MPI_Comm_dup_with_info",
            "MPI_Comm_idup",
            "MPI_Comm_idup_with_info",
            "MPI_Comm_split",
            "MPI_Comm_split_type",
        ];
        match makes {
            Some(made) if !is_message && !MADE.contains(&name) => {
                let (class, all) = (&made.kind, self.comm.members.len());
                self.wrong(&format!(
                    "it makes a {class} of {all} ranks, of which some are outside the part"
                ))
            }
            _ => Ok((values, found)),
        }
    }

    /// Changes the peer of a message. True if it is left out.
    fn peer(&self, value: &mut Value) -> Result<bool, String> {
        if matches!(value, Value::Number(ANY_SOURCE)) {
            return self.wrong("the trace does not say from which source it receives");
        }
        let Some(rank) = peer(value, self.comm, self.own) else {
            return Ok(false);
        };
        match (self.place(rank), self.others) {
            (Some(place), _) => {
                let own = self.place(self.step.rank).unwrap_or(0);
                let distance = place as i64 - own as i64;
                *value = match value {
                    Value::Met(_) => Value::Met(distance),
                    _ => Value::Relative(distance),
                };
                Ok(false)
            }
            (None, Others::LeaveOut) => {
                *value = Value::Number(PROC_NULL);
                Ok(true)
            }
            (None, Others::Refuse) => self.wrong(&format!(
                "its peer, rank {rank}, is outside the part; --leave-out-others leaves such messages out"
            )),
        }
    }

    /// The number of a rank of the world in the communicator without the ranks outside.
    fn place(&self, rank: usize) -> Option<usize> {
        let members = self.comm.members.iter();
        { members }
            .filter(|member| self.kept.contains(member))
            .position(|member| *member == rank)
    }

    /// Changes the root of a collective call, and its arrays with an element for each rank.
    fn collective(&self, signature: &Signature, values: &mut [Value]) -> Result<(), String> {
        for (parameter, value) in signature.parameters.iter().zip(values) {
            if parameter.kind == "root" {
                let root = value.number().and_then(|root| usize::try_from(root).ok());
                let rank = root.and_then(|root| self.comm.members.get(root).copied());
                let Some(rank) = rank else {
                    return self.wrong("its root is no rank of the communicator");
                };
                match self.place(rank) {
                    Some(place) => *value = Value::Number(place as i64),
                    None => {
                        return self.wrong(&format!("its root, rank {rank}, is outside the part"));
                    }
                }
            }
            let is_of_ranks = parameter.length == Length::Unknown
                && value.numbers().len() == self.comm.members.len();
            if is_of_ranks {
                let pairs = value.numbers().iter().zip(&self.comm.members);
                let stay = pairs.filter(|(_, member)| self.kept.contains(member));
                *value = Value::Numbers(stay.map(|(number, _)| *number).collect());
            }
        }
        Ok(())
    }
}

/// The kind of a collective procedure that moves data: its name without the parts that do not
/// change its ranks. `None`: it is another procedure.
pub(crate) fn collective(name: &str) -> Option<&'static str> {
    const KINDS: [&str; 8] = [
        "barrier",
        "bcast",
        "gather",
        "scatter",
        "reduce",
        "alltoall",
        "scan",
        "neighbor_",
    ];
    let name = name.strip_prefix("MPI_")?.to_ascii_lowercase();
    let is_local = name.starts_with("reduce_local");
    let all = KINDS.iter().rev();
    { all }
        .find(|kind| !is_local && name.contains(**kind))
        .copied()
}
