//! The machine that finds calls that do not fit each other, from the events of all ranks.
//!
//! Invariant: the machine trusts no event: whatever the events are, it neither panics nor hangs.

mod communicators;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datatype::Predefined;

use crate::event::{Data, End, Event, Kind, PARTS, Run};
use crate::finding::{Finding, Findings, Rule, Side};
use crate::matches::{Messages, Receive, Send};
use crate::races;
use crate::signature::Signature;
use communicators::Comm;

/// The notes that a user requests beside errors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Receives that two messages could match.
    pub races: bool,
    /// Objects that are not freed.
    pub leaks: bool,
}

/// Takes the events of all ranks, and finds errors.
#[derive(Default)]
pub struct Machine {
    wanted: Wanted,
    names: HashMap<String, Arc<str>>,
    comms: HashMap<u64, Comm>,
    ranks: BTreeMap<u32, Rank>,
    messages: Messages,
    found: Findings,
}

/// The types, requests and operations of a rank.
#[derive(Default)]
pub(crate) struct Rank {
    types: HashMap<u32, Type>,
    requests: BTreeMap<u32, Request>,
    /// The operations of the present call.
    in_call: Vec<Operation>,
    /// The communicator and the number of the collective call that is in progress.
    collective: Option<(u64, u64)>,
    blocks: [Vec<Option<Signature>>; 2],
    claimed: HashMap<u32, usize>,
    pub(crate) objects: BTreeMap<(Kind, u32), (Arc<str>, u64)>,
    pub(crate) end: Option<Side>,
}

#[derive(Default)]
struct Type {
    runs: Vec<Run>,
    is_cut: bool,
    /// The runs, once a call has used the datatype.
    shared: Option<Arc<[Run]>>,
}

/// An operation that a call has begun: its number among all sends, or all receives.
#[derive(Clone, Copy)]
enum Operation {
    Send(usize),
    Receive(usize),
}

struct Request {
    side: Side,
    operations: Vec<Operation>,
    is_persistent: bool,
    is_active: bool,
}

impl Machine {
    /// A machine that finds errors, and what is wanted beside them.
    pub fn new(wanted: Wanted) -> Machine {
        Machine {
            wanted,
            ..Machine::default()
        }
    }

    /// Takes the event of a rank in its call `call`, at a virtual time in picoseconds. The events
    /// of a rank come in their order.
    pub fn take(&mut self, time: u64, rank: u32, call: &str, event: Event) {
        let name = self.names.get(call).cloned().unwrap_or_else(|| {
            let name: Arc<str> = call.into();
            self.names.insert(call.into(), name.clone());
            name
        });
        let side = Side {
            rank,
            call: name,
            time,
            detail: String::new(),
        };
        match event {
            Event::Comm { .. } => self.comm(side, event),
            Event::Type {
                ty,
                is_first,
                is_cut,
                runs,
            } => {
                let types = &mut self.ranks.entry(rank).or_default().types;
                let ty = types.entry(ty).or_default();
                if is_first {
                    *ty = Type::default();
                }
                ty.is_cut |= is_cut;
                ty.runs.extend(runs.iter().filter(|run| run.count > 0));
            }
            Event::Blocks {
                are_given,
                first,
                blocks,
            } => self.blocks(rank, are_given, first, blocks),
            Event::Collective { .. } => self.collective(side, event),
            Event::Send { .. } | Event::Receive { .. } => self.message(side, event),
            Event::Claimed {
                comm,
                from,
                tag,
                message,
            } => {
                let (met, key) = (Some((from, tag)), (comm, Some(from), Some(tag)));
                let receive = Receive {
                    met,
                    ..Receive::new(side, key, None)
                };
                let at = self.messages.receive(receive);
                self.rank(rank).claimed.insert(message, at);
            }
            Event::ReceiveClaimed { message, data } => {
                let signature = self.signature(rank, data);
                let Some(at) = self.rank(rank).claimed.remove(&message) else {
                    return;
                };
                self.messages.receives[at].signature = Some(signature);
                self.messages.receives[at].side = side;
                self.rank(rank).in_call = vec![Operation::Receive(at)];
            }
            _ => self.state(side, event),
        }
    }

    fn rank(&mut self, rank: u32) -> &mut Rank {
        self.ranks.entry(rank).or_default()
    }

    /// Takes an event that changes the state of requests or objects.
    fn state(&mut self, side: Side, event: Event) {
        let rank = self.ranks.entry(side.rank).or_default();
        match event {
            Event::Request {
                request,
                is_persistent,
            } => {
                let made = Request {
                    side,
                    operations: std::mem::take(&mut rank.in_call),
                    is_persistent,
                    is_active: !is_persistent,
                };
                rank.collective = None;
                rank.requests.insert(request, made);
            }
            Event::Start { request } => self.start(side, request),
            Event::Done { request, met, end } => self.done(side.rank, request, met, end),
            Event::Failed { has_matched } => self.failed(side.rank, has_matched),
            Event::Made { kind, handle } => {
                rank.objects.insert((kind, handle), (side.call, side.time));
            }
            Event::Freed { kind, handle } => {
                rank.objects.remove(&(kind, handle));
            }
            Event::Finalize => rank.end = Some(side),
            _ => {}
        }
    }

    /// The signature of elements as the rank has noted their datatype.
    fn signature(&mut self, rank: u32, data: Data) -> Signature {
        if let Some(basic) = Predefined::from_handle(data.ty as usize) {
            return Signature::basic(basic, data.count);
        }
        match self.rank(rank).types.get_mut(&data.ty) {
            Some(ty) => {
                let shared = ty.shared.get_or_insert_with(|| ty.runs.as_slice().into());
                Signature::new(shared.clone(), data.count, ty.is_cut)
            }
            None => Signature::new([].into(), 0, false),
        }
    }

    fn blocks(&mut self, rank: u32, are_given: bool, first: u32, blocks: [Option<Data>; PARTS]) {
        let signatures = blocks.map(|data| data.map(|data| self.signature(rank, data)));
        let all = &mut self.rank(rank).blocks[usize::from(!are_given)];
        if all.len() == first as usize {
            all.extend(signatures);
        }
    }

    fn message(&mut self, side: Side, event: Event) {
        let rank = side.rank;
        match event {
            Event::Send {
                comm,
                to,
                tag,
                data,
                is_init,
            } => {
                let signature = self.signature(rank, data);
                let send = Send {
                    side,
                    comm,
                    to,
                    tag,
                    signature,
                    is_gone: is_init,
                };
                let at = self.messages.send(send);
                let state = self.rank(rank);
                state.in_call = vec![Operation::Send(at)];
                state.collective = None;
            }
            Event::Receive {
                comm,
                from,
                tag,
                data,
                is_init,
                is_second,
            } => {
                let signature = self.signature(rank, data);
                let receive = Receive {
                    is_gone: is_init,
                    ..Receive::new(side, (comm, from, tag), Some(signature))
                };
                let at = self.messages.receive(receive);
                let state = self.rank(rank);
                if !is_second {
                    state.in_call.clear();
                    state.collective = None;
                }
                state.in_call.push(Operation::Receive(at));
            }
            _ => {}
        }
    }

    /// Starts a persistent request: its operations begin anew.
    fn start(&mut self, side: Side, request: u32) {
        let rank = self.ranks.entry(side.rank).or_default();
        let Some(made) = rank.requests.get_mut(&request) else {
            return;
        };
        made.is_active = true;
        for operation in &mut made.operations {
            match operation {
                Operation::Send(at) => {
                    let send = Send {
                        side: side.clone(),
                        is_gone: false,
                        ..self.messages.sends[*at].clone()
                    };
                    *at = self.messages.send(send);
                }
                Operation::Receive(at) => {
                    let receive = Receive {
                        side: side.clone(),
                        is_gone: false,
                        met: None,
                        is_done: false,
                        ..self.messages.receives[*at].clone()
                    };
                    *at = self.messages.receive(receive);
                }
            }
        }
    }

    /// Ends a request, or with number 0 the receive of the present call.
    fn done(&mut self, rank: u32, request: u32, met: Option<(u32, i32)>, end: End) {
        let state = self.ranks.entry(rank).or_default();
        if request == 0 {
            for operation in state.in_call.drain(..) {
                self.messages.end(operation.receive(), met);
            }
            return;
        }
        let keeps = |made: &Request| made.is_persistent && end != End::Freed;
        let is_kept = state.requests.get(&request).is_some_and(keeps);
        let Some(made) = state.requests.get_mut(&request) else {
            return;
        };
        for operation in &made.operations {
            match (end, *operation) {
                (End::Cancelled, Operation::Send(at)) => self.messages.sends[at].is_gone = true,
                (End::Cancelled, Operation::Receive(at)) => {
                    self.messages.receives[at].is_gone = true;
                }
                (End::Complete, operation) => self.messages.end(operation.receive(), met),
                (End::Freed, _) => {}
            }
        }
        match is_kept {
            true => made.is_active = false,
            false => _ = state.requests.remove(&request),
        }
    }

    /// Removes what a failed call has noted. `has_matched`: it has taken a message.
    fn failed(&mut self, rank: u32, has_matched: bool) {
        let state = self.ranks.entry(rank).or_default();
        for operation in state.in_call.drain(..).filter(|_| !has_matched) {
            match operation {
                Operation::Send(at) => self.messages.sends[at].is_gone = true,
                Operation::Receive(at) => self.messages.receives[at].is_gone = true,
            }
        }
        if let Some((comm, number)) = state.collective.take()
            && let Some(comm) = self.comms.get_mut(&comm)
        {
            comm.take_back(rank, number);
        }
    }

    /// Ends the search, after the last event. Returns all findings, errors before notes.
    pub fn finish(mut self) -> Vec<Finding> {
        self.finish_collectives();
        self.finish_messages();
        self.finish_requests();
        if self.wanted.leaks {
            crate::leaks::find(&self.ranks, &mut self.found);
        }
        self.found.sorted()
    }

    fn finish_messages(&mut self) {
        let names = |comm: u64| self.comms.get(&comm).map(Comm::name);
        let pairs = self.messages.pair(|rank| {
            let end = self.ranks.get(&rank)?.end.as_ref();
            end.cloned()
        });
        for found in &pairs {
            let name = names(found.comm(&self.messages)).unwrap_or_default();
            found.report(&self.messages, &name, &mut self.found);
        }
        if self.wanted.races {
            races::find(&self.messages, &pairs, &mut self.found);
        }
    }

    fn finish_requests(&mut self) {
        for state in self.ranks.values() {
            let Some(end) = &state.end else {
                continue;
            };
            for made in state.requests.values().filter(|made| made.is_active) {
                let mut side = made.side.clone();
                let first = made.operations.first();
                side.detail = first.map_or(String::new(), |first| match *first {
                    Operation::Send(at) => self.messages.sends[at].facts(),
                    Operation::Receive(at) => self.messages.receives[at].facts(),
                });
                let what = "a request is active at the end".into();
                self.found
                    .add(Rule::Unfinished, what, vec![side, end.clone()]);
            }
        }
    }
}

impl Operation {
    fn receive(self) -> Option<usize> {
        match self {
            Operation::Receive(at) => Some(at),
            Operation::Send(_) => None,
        }
    }
}
