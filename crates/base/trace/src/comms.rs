//! The communicators of all ranks, by the calls that make them.
//!
//! A trace has no ranks of the world: peers are distances in a communicator, and each rank numbers
//! its communicators itself. A walk over the calls of all ranks finds the members of each: a rank
//! pauses at a call that makes a communicator until the other members have reached theirs.

use std::collections::HashMap;
use std::rc::Rc;

use crate::Trace;
use crate::standard::{SELF, WORLD};
use crate::value::{FIRST_MADE, Value};

/// A communicator of the recorded program.
#[derive(Debug, PartialEq)]
pub(crate) struct Comm {
    /// A number that no other communicator has. That of MPI_COMM_WORLD is 0.
    pub(crate) id: usize,
    /// The ranks of the world that are its members, in its order.
    pub(crate) members: Vec<usize>,
}

/// The communicator in which a call is made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// The call has no communicator, or a null handle.
    None,
    /// The communicator, and the number of the calling rank in it.
    In(Rc<Comm>, usize),
    /// The call that made the communicator, whose members the trace does not say.
    Unknown(String),
}

/// A call of a rank, as a walk over the trace reaches it.
pub(crate) struct Step<'a> {
    pub(crate) rank: usize,
    /// The number of the call among those of the rank, from 0 on.
    pub(crate) at: usize,
    /// The number of the call in the trace's table.
    pub(crate) call: u32,
    /// The computing before the call, in nanoseconds.
    pub(crate) nanos: u64,
    pub(crate) place: &'a Place,
}

impl Step<'_> {
    /// The rank, the call and its number among those of the rank, for messages.
    pub(crate) fn name(&self, trace: &Trace) -> String {
        let name = &trace.signature(self.call).name;
        format!("rank {}, call {}, {name}", self.rank, self.at)
    }
}

/// A function that takes each call of a trace.
type Visit<'a> = dyn FnMut(&Step) -> Result<(), String> + 'a;

/// Visits each call of each rank: the calls of a rank in order, and the makings of a communicator
/// before its uses.
///
/// # Errors
/// That of the visit, or ranks that do not all make a communicator.
pub(crate) fn walk(trace: &Trace, visit: &mut Visit) -> Result<(), String> {
    let size = trace.ranks.len();
    let world = Rc::new(Comm {
        id: 0,
        members: (0..size).collect(),
    });
    let mut walk = Walk {
        trace,
        made: 1,
        meetings: HashMap::new(),
        ranks: Vec::with_capacity(size),
    };
    for rank in 0..size {
        let own = Rc::new(Comm {
            id: walk.made,
            members: vec![rank],
        });
        walk.made += 1;
        let comms = [
            (WORLD, Place::In(world.clone(), rank)),
            (SELF, Place::In(own, 0)),
        ];
        walk.ranks.push(comms.into());
    }
    let calls = |rank| trace.calls_of(rank).enumerate();
    let mut calls: Vec<_> = (0..size).map(calls).collect();
    let mut ready: Vec<usize> = (0..size).rev().collect();
    while let Some(rank) = ready.pop() {
        for (at, (call, nanos)) in calls[rank].by_ref() {
            let place = walk.place(rank, call);
            visit(&Step {
                rank,
                at,
                call,
                nanos,
                place: &place,
            })?;
            if let Some(woken) = walk.after(rank, call, place) {
                ready.extend(woken);
                break;
            }
        }
    }
    match walk.meetings.keys().next() {
        Some((id, name)) => Err(format!(
            "not all ranks of a communicator (number {id}) call {name}, so who is in the new one is unknown"
        )),
        None => Ok(()),
    }
}

/// The number of members of each communicator in which calls are made: for each rank, by the rank's
/// number of it.
///
/// # Errors
/// Not all ranks of a communicator make a new one.
pub fn comm_sizes(trace: &Trace) -> Result<Vec<HashMap<i64, usize>>, String> {
    let mut sizes = vec![HashMap::new(); trace.ranks.len()];
    walk(trace, &mut |step| {
        if let Place::In(comm, _) = step.place
            && let Some(at) = trace.signature(step.call).first_of("comm")
            && let Some(number) = trace.calls[step.call as usize].values[at].number()
        {
            sizes[step.rank].insert(number, comm.members.len());
        }
        Ok(())
    })?;
    Ok(sizes)
}

/// The state of a walk over the calls of a trace.
struct Walk<'a> {
    trace: &'a Trace,
    /// The number of communicators that calls have made so far.
    made: usize,
    /// The members that wait in a call, by the communicator and the procedure.
    meetings: HashMap<(usize, &'a str), Vec<Waiting>>,
    /// For each rank its communicators, by their numbers.
    ranks: Vec<HashMap<i64, Place>>,
}

/// A rank that waits for the other members of a communicator that they make.
struct Waiting {
    rank: usize,
    own: usize,
    color: i64,
    key: i64,
    /// The number of the communicator that the call makes, or a null handle.
    new: i64,
}

impl<'a> Walk<'a> {
    fn place(&self, rank: usize, call: u32) -> Place {
        let signature = self.trace.signature(call);
        let comm = signature.first_of("comm");
        let number = comm.and_then(|at| self.trace.calls[call as usize].values[at].number());
        match number {
            Some(number) if number >= FIRST_MADE || [WORLD, SELF].contains(&number) => {
                let found = self.ranks[rank].get(&number).cloned();
                found.unwrap_or_else(|| Place::Unknown("a call that is not in the trace".into()))
            }
            _ => Place::None,
        }
    }

    /// Processes the results of a call. `Some`: the rank pauses, and these ranks continue.
    fn after(&mut self, rank: usize, call: u32, place: Place) -> Option<Vec<usize>> {
        let trace = self.trace;
        let (signature, values) = (trace.signature(call), &trace.calls[call as usize].values);
        let made = |one: &crate::Parameter| one.kind == "comm" && one.access == crate::Access::Out;
        let at = signature.parameters.iter().position(made)?;
        let new = values[at].number().filter(|new| *new >= FIRST_MADE);
        let value = |name: &str| values[signature.position(name)?].number();
        let name = signature.name.as_str();
        let kind = name.strip_prefix("MPI_Comm_").unwrap_or_default();
        let is_dup = ["dup", "dup_with_info", "idup", "idup_with_info"].contains(&kind);
        match place {
            Place::In(comm, own) if is_dup || kind == "split" => {
                let waiting = Waiting {
                    rank,
                    own,
                    color: if is_dup {
                        0
                    } else {
                        value("color").unwrap_or(0)
                    },
                    key: value("key").unwrap_or(0),
                    new: new.unwrap_or(0),
                };
                Some(self.meet(name, &comm, waiting))
            }
            Place::In(comm, own) if name == "MPI_Cart_create" && value("reorder") == Some(0) => {
                let dims = signature.position("dims").map(|at| values[at].numbers());
                let points = dims.unwrap_or_default().iter();
                let points = points.fold(1usize, |all, side| {
                    all.saturating_mul(usize::try_from(*side).unwrap_or(0))
                });
                if let Some(new) = new.filter(|_| points <= comm.members.len() && own < points) {
                    let waiting = Waiting {
                        rank,
                        own,
                        color: 0,
                        key: 0,
                        new,
                    };
                    return Some(self.meet_first(name, &comm, points, waiting));
                }
                None
            }
            _ => {
                if let Some(new) = new {
                    self.ranks[rank].insert(new, Place::Unknown(name.into()));
                }
                None
            }
        }
    }

    fn meet(&mut self, name: &'a str, comm: &Comm, waiting: Waiting) -> Vec<usize> {
        self.meet_first(name, comm, comm.members.len(), waiting)
    }

    /// Adds a rank to those that wait in a call for the first `all` members of a communicator. If
    /// it is the last, the new communicators are made. Returns the ranks that continue.
    fn meet_first(
        &mut self,
        name: &'a str,
        comm: &Comm,
        all: usize,
        waiting: Waiting,
    ) -> Vec<usize> {
        let meeting = self.meetings.entry((comm.id, name)).or_default();
        meeting.push(waiting);
        if meeting.len() < all {
            return Vec::new();
        }
        let mut met = self.meetings.remove(&(comm.id, name)).unwrap_or_default();
        met.sort_by_key(|one| (one.color, one.key, one.own));
        let ranks = met.iter().map(|one| one.rank).collect();
        for group in met.chunk_by(|a, b| a.color == b.color) {
            let comm = Rc::new(Comm {
                id: self.made,
                members: group.iter().map(|one| one.rank).collect(),
            });
            self.made += 1;
            for (own, one) in group.iter().enumerate() {
                if one.new >= FIRST_MADE {
                    let place = Place::In(comm.clone(), own);
                    self.ranks[one.rank].insert(one.new, place);
                }
            }
        }
        ranks
    }
}

/// The rank of the world that a peer is, by its value in a call.
pub(crate) fn peer(value: &Value, comm: &Comm, own: usize) -> Option<usize> {
    let (Value::Relative(distance) | Value::Met(distance)) = value else {
        return None;
    };
    let number = usize::try_from(own as i64 + distance).ok()?;
    comm.members.get(number).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Gaps, Signature};

    #[test]
    fn members_of_split_communicators_are_found() {
        const LINES: [&str; 2] = [
            "MPI_Comm_split comm:comm color:int key:int newcomm:>comm",
            "MPI_Barrier comm:comm",
        ];
        let mut builder = Builder::new("test".into());
        for rank in 0..5i64 {
            let [split, barrier] =
                LINES.map(|line| builder.signature(Signature::parse(line).unwrap()));
            let numbers = |numbers: &[i64]| numbers.iter().map(|one| Value::Number(*one)).collect();
            let undefined = if rank == 4 { 0x100 } else { FIRST_MADE };
            let color = if rank == 4 { -9 } else { rank % 2 };
            let mut calls = vec![
                builder.call(split, numbers(&[WORLD, color, -rank, undefined])),
                builder.call(barrier, numbers(&[WORLD])),
            ];
            if rank < 4 {
                calls.push(builder.call(barrier, numbers(&[FIRST_MADE])));
            }
            let mut gaps = Gaps::default();
            gaps.push(0, calls.len() as u64);
            builder.rank(&calls, gaps, Gaps::default());
        }
        let trace = builder.finish();
        let mut found = Vec::new();
        let mut visit = |step: &Step| {
            match step.place {
                Place::In(comm, own) if comm.id > 0 => {
                    found.push((step.rank, comm.members.clone(), *own));
                }
                Place::In(..) => (),
                other => panic!("{other:?}"),
            }
            Ok(())
        };
        walk(&trace, &mut visit).unwrap();
        let sizes = comm_sizes(&trace).unwrap();
        assert_eq!(sizes[0], HashMap::from([(WORLD, 5), (FIRST_MADE, 2)]));
        assert_eq!(sizes[4], HashMap::from([(WORLD, 5)]));
        found.sort();
        let wanted = [
            (0, vec![2, 0], 1),
            (1, vec![3, 1], 1),
            (2, vec![2, 0], 0),
            (3, vec![3, 1], 0),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_communicator_that_not_all_make_is_an_error() {
        let mut builder = Builder::new("test".into());
        let line = "MPI_Comm_dup comm:comm newcomm:>comm";
        let dup = builder.signature(Signature::parse(line).unwrap());
        let call = builder.call(dup, vec![Value::Number(WORLD), Value::Number(FIRST_MADE)]);
        let mut gaps = Gaps::default();
        gaps.push(0, 1);
        builder.rank(&[call], gaps, Gaps::default());
        builder.rank(&[], Gaps::default(), Gaps::default());
        let why = walk(&builder.finish(), &mut |_| Ok(())).unwrap_err();
        assert!(why.contains("MPI_Comm_dup"), "{why}");
    }
}
