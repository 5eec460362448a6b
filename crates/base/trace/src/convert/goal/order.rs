//! The sequence of a rank's operations: the order in which they begin on a machine with one
//! processor for each rank, on which messages take no time but need both ends.
//!
//! As all ranks are ordered together, what a rank waits for has already begun at the other end, in
//! one order of everything. So the calls cannot wait for one another, with any protocol.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use super::{Kind, Op};

/// One step in the sequence of a rank's operations.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    /// The rank executes this operation, which computes.
    Compute(u32),
    /// The message of this operation begins.
    Begin(u32),
    /// The messages of these operations end.
    Wait(Vec<u32>),
}

/// The sequences of operations of all ranks.
pub(super) struct Ordered {
    pub(super) acts: Vec<Vec<Act>>,
    /// The sources from which receives from any source got their messages, by the receiver and its
    /// operation.
    pub(super) met: HashMap<(usize, u32), usize>,
}

/// Something that happens: the time, the rank, the operation, and whether it ends.
type Moment = Reverse<(u64, usize, u32, bool)>;

pub(super) fn order(ranks: &[Vec<Op>]) -> Result<Ordered, String> {
    let mut machine = Machine {
        ranks,
        states: ranks.iter().map(|ops| State::of(ops)).collect(),
        moments: BinaryHeap::new(),
        matching: Matching::default(),
        met: HashMap::new(),
    };
    for (rank, ops) in ranks.iter().enumerate() {
        for op in 0..ops.len() as u32 {
            if machine.states[rank].waits[op as usize] == 0 {
                machine.moments.push(Reverse((0, rank, op, false)));
            }
        }
    }
    while let Some(Reverse((time, rank, op, ends))) = machine.moments.pop() {
        match ends {
            true => machine.end(time, rank, op),
            false => machine.begin(time, rank, op)?,
        }
    }
    for (rank, state) in machine.states.iter().enumerate() {
        let waits = |op: &usize| !state.ended[*op];
        if let Some(op) = (0..ranks[rank].len()).find(waits) {
            let line = ranks[rank][op].line;
            return Err(format!(
                "line {line}: this operation of rank {rank} never ends: no message of the other rank matches, or the operations wait for one another"
            ));
        }
    }
    let states = machine.states.into_iter();
    Ok(Ordered {
        acts: states.map(State::finish).collect(),
        met: machine.met,
    })
}

/// The progress of one rank in its sequence.
struct State {
    /// For each operation the number of its dependencies that have not ended or begun.
    waits: Vec<u32>,
    /// For each operation, the operations that wait for its end, and those that wait for its
    /// beginning.
    after_end: Vec<Vec<u32>>,
    after_begin: Vec<Vec<u32>>,
    ended: Vec<bool>,
    /// For each operation whether the sequence has waited for its message. Computing needs no wait.
    waited: Vec<bool>,
    /// The time at which the rank's processor is free.
    free: u64,
    acts: Vec<Act>,
}

impl State {
    fn of(ops: &[Op]) -> State {
        let mut state = State {
            waits: vec![0; ops.len()],
            after_end: vec![Vec::new(); ops.len()],
            after_begin: vec![Vec::new(); ops.len()],
            ended: vec![false; ops.len()],
            waited: ops.iter().map(|op| op.kind == Kind::Calc).collect(),
            free: 0,
            acts: Vec::new(),
        };
        for (at, op) in ops.iter().enumerate() {
            state.waits[at] = (op.requires.len() + op.follows.len()) as u32;
            for before in &op.requires {
                state.after_end[*before as usize].push(at as u32);
            }
            for before in &op.follows {
                state.after_begin[*before as usize].push(at as u32);
            }
        }
        state
    }

    /// The sequence, which ends with a wait for all messages that are still open.
    fn finish(mut self) -> Vec<Act> {
        let open = (0..self.waited.len()).filter(|op| !self.waited[*op]);
        let open: Vec<u32> = open.map(|op| op as u32).collect();
        if !open.is_empty() {
            self.acts.push(Act::Wait(open));
        }
        self.acts
    }
}

struct Machine<'a> {
    ranks: &'a [Vec<Op>],
    states: Vec<State>,
    moments: BinaryHeap<Moment>,
    matching: Matching,
    met: HashMap<(usize, u32), usize>,
}

impl Machine<'_> {
    fn begin(&mut self, time: u64, rank: usize, op: u32) -> Result<(), String> {
        let one = &self.ranks[rank][op as usize];
        let state = &mut self.states[rank];
        if state.free > time {
            self.moments.push(Reverse((state.free, rank, op, false)));
            return Ok(());
        }
        let mut waits = Vec::new();
        for before in &one.requires {
            if !std::mem::replace(&mut state.waited[*before as usize], true) {
                waits.push(*before);
            }
        }
        if !waits.is_empty() {
            state.acts.push(Act::Wait(waits));
        }
        match one.kind {
            Kind::Calc => {
                state.acts.push(Act::Compute(op));
                let end = time.checked_add(one.size);
                let end = end.ok_or(format!("line {}: more time than there is", one.line))?;
                state.free = end;
                self.moments.push(Reverse((end, rank, op, true)));
            }
            Kind::Send | Kind::Recv => {
                state.acts.push(Act::Begin(op));
                if let Some((from, to)) = self.matching.add(rank, op, one) {
                    let of = |(rank, op): End| &self.ranks[rank][op as usize];
                    let (sent, received) = (of(from), of(to));
                    if sent.size > received.size {
                        return Err(format!(
                            "line {}: it receives {} bytes, and the message of line {} has {}",
                            received.line, received.size, sent.line, sent.size
                        ));
                    }
                    if received.peer.is_none() {
                        self.met.insert(to, from.0);
                    }
                    for (rank, op) in [from, to] {
                        self.moments.push(Reverse((time, rank, op, true)));
                    }
                }
            }
        }
        let after = std::mem::take(&mut self.states[rank].after_begin[op as usize]);
        self.release(time, rank, &after);
        Ok(())
    }

    fn end(&mut self, time: u64, rank: usize, op: u32) {
        self.states[rank].ended[op as usize] = true;
        let after = std::mem::take(&mut self.states[rank].after_end[op as usize]);
        self.release(time, rank, &after);
    }

    fn release(&mut self, time: u64, rank: usize, ops: &[u32]) {
        for &op in ops {
            let waits = &mut self.states[rank].waits[op as usize];
            *waits -= 1;
            if *waits == 0 {
                self.moments.push(Reverse((time, rank, op, false)));
            }
        }
    }
}

/// One end of a message: a rank and its operation.
type End = (usize, u32);

/// A receive that leaves its source or tag open, with its end of the message.
type Open = (Option<usize>, Option<i64>, End);

/// The ends of messages that have no other end yet, in the order in which they began.
#[derive(Default)]
struct Matching {
    count: u64,
    /// The sends that no receive has matched, by receiver.
    sends: HashMap<usize, BTreeMap<u64, (i64, End)>>,
    /// The numbers of sends, by receiver, sender and tag.
    exact_sends: HashMap<(usize, usize, i64), VecDeque<u64>>,
    /// Receives that name source and tag, by receiver, sender and tag.
    receives: HashMap<(usize, usize, i64), VecDeque<(u64, End)>>,
    /// Receives that leave source or tag open, by receiver.
    open: HashMap<usize, BTreeMap<u64, Open>>,
}

impl Matching {
    /// Adds an end of a message. If the other end was added before, returns both: the sender's and
    /// the receiver's.
    fn add(&mut self, rank: usize, op: u32, one: &Op) -> Option<(End, End)> {
        self.count += 1;
        let (number, own) = (self.count, (rank, op));
        if one.kind == Kind::Send {
            let (to, tag) = (one.peer?, one.tag.unwrap_or(0));
            let exact = self
                .receives
                .get(&(to, rank, tag))
                .and_then(|all| all.front());
            let fits = |(_, (source, wanted, _)): &(&u64, &Open)| {
                source.is_none_or(|source| source == rank) && wanted.is_none_or(|one| one == tag)
            };
            let open = self.open.get(&to).and_then(|all| all.iter().find(fits));
            let open = open.map(|(number, found)| (*number, found.2));
            return match (exact.copied(), open) {
                (Some((first, end)), open) if open.is_none_or(|open| open.0 > first) => {
                    self.receives.get_mut(&(to, rank, tag))?.pop_front();
                    Some((own, end))
                }
                (_, Some((first, end))) => {
                    self.open.get_mut(&to)?.remove(&first);
                    Some((own, end))
                }
                _ => {
                    self.sends.entry(to).or_default().insert(number, (tag, own));
                    let exact = self.exact_sends.entry((to, rank, tag)).or_default();
                    exact.push_back(number);
                    None
                }
            };
        }
        let found = match (one.peer, one.tag) {
            (Some(from), Some(tag)) => {
                let exact = self.exact_sends.get(&(rank, from, tag));
                exact.and_then(|all| all.front()).copied()
            }
            (from, wanted) => {
                let all = self.sends.get(&rank).into_iter().flatten();
                let fits = |tag: i64, end: &End| {
                    from.is_none_or(|from| from == end.0) && wanted.is_none_or(|one| one == tag)
                };
                { all }
                    .find(|(_, (tag, end))| fits(*tag, end))
                    .map(|(number, _)| *number)
            }
        };
        if let Some(found) = found {
            let (tag, end) = self.sends.get_mut(&rank)?.remove(&found)?;
            let exact = self.exact_sends.get_mut(&(rank, end.0, tag))?;
            exact.retain(|number| *number != found);
            return Some((end, own));
        }
        match (one.peer, one.tag) {
            (Some(from), Some(tag)) => {
                let exact = self.receives.entry((rank, from, tag)).or_default();
                exact.push_back((number, own));
            }
            (from, tag) => {
                let open = self.open.entry(rank).or_default();
                open.insert(number, (from, tag, own));
            }
        }
        None
    }
}
