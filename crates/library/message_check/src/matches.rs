//! Messages and their receives: pairs in the order that MPI keeps, and what is wrong with a pair.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::finding::{Findings, Rule, Side};
use crate::signature::{Difference, Signature};

/// A message that a rank has sent.
#[derive(Clone)]
pub(crate) struct Send {
    pub(crate) side: Side,
    pub(crate) comm: u64,
    pub(crate) to: u32,
    pub(crate) tag: i32,
    pub(crate) signature: Signature,
    /// True if it is none: it has been cancelled, has failed, or was only prepared.
    pub(crate) is_gone: bool,
}

/// A receive, in the order of calls.
#[derive(Clone)]
pub(crate) struct Receive {
    pub(crate) side: Side,
    pub(crate) comm: u64,
    /// The sender that the call names; `None`: any.
    pub(crate) from: Option<u32>,
    /// The tag that the call names; `None`: any.
    pub(crate) tag: Option<i32>,
    /// The room for elements; `None`: a matched probe, whose message has not been received.
    pub(crate) signature: Option<Signature>,
    /// The sender and tag of its message, once it is known.
    pub(crate) met: Option<(u32, i32)>,
    /// True once it is complete.
    pub(crate) is_done: bool,
    /// True if it is none, as a send may be.
    pub(crate) is_gone: bool,
}

/// All sends and receives of a job.
#[derive(Default)]
pub(crate) struct Messages {
    pub(crate) sends: Vec<Send>,
    pub(crate) receives: Vec<Receive>,
    /// The order of all that happened.
    pub(crate) order: Vec<Entry>,
    /// The ranks of each collective call that all members have made.
    pub(crate) together: Vec<Vec<u32>>,
}

/// An entry of the order of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A send was called.
    Sent(usize),
    /// A receive was complete.
    Completed(usize),
    /// The last member of a communicator made a collective call.
    Together(usize),
}

/// A message with its receive, or without one.
pub(crate) enum Match {
    /// A send and its receive.
    Pair(usize, usize),
    /// A send without a receive, and the end of its receiver.
    Left(usize, Side),
}

/// The communicator, sender, receiver and tag of a message.
type Envelope = (u64, u32, u32, i32);

impl Receive {
    /// A receive of a message on the communicator, from the sender and with the tag that `key`
    /// names.
    pub(crate) fn new(
        side: Side,
        (comm, from, tag): (u64, Option<u32>, Option<i32>),
        signature: Option<Signature>,
    ) -> Receive {
        Receive {
            side,
            comm,
            from,
            tag,
            signature,
            met: None,
            is_done: false,
            is_gone: false,
        }
    }

    /// The envelope of its message, if it is known.
    fn envelope(&self) -> Option<Envelope> {
        let (from, tag) = match self.met {
            Some((from, tag)) => (from, tag),
            None => (self.from?, self.tag?),
        };
        Some((self.comm, from, self.side.rank, tag))
    }

    pub(crate) fn takes(&self, (comm, from, to, tag): &Envelope) -> bool {
        self.comm == *comm
            && self.side.rank == *to
            && self.from.is_none_or(|own| own == *from)
            && self.tag.is_none_or(|own| own == *tag)
    }

    pub(crate) fn is_wild(&self) -> bool {
        self.from.is_none() || self.tag.is_none()
    }

    pub(crate) fn facts(&self) -> String {
        let from = self
            .from
            .map_or("any source".into(), |from| format!("rank {from}"));
        let tag = self
            .tag
            .map_or("any tag".into(), |tag| format!("tag {tag}"));
        let room = self.signature.as_ref();
        let room = room.map_or(String::new(), |room| format!(", {room}"));
        format!("from {from}, {tag}{room}")
    }
}

impl Send {
    pub(crate) fn envelope(&self) -> Envelope {
        (self.comm, self.side.rank, self.to, self.tag)
    }

    pub(crate) fn facts(&self) -> String {
        let Send {
            to, tag, signature, ..
        } = self;
        format!("to rank {to}, tag {tag}, {signature}")
    }
}

impl Messages {
    pub(crate) fn send(&mut self, send: Send) -> usize {
        self.order.push(Entry::Sent(self.sends.len()));
        self.sends.push(send);
        self.sends.len() - 1
    }

    pub(crate) fn receive(&mut self, receive: Receive) -> usize {
        self.receives.push(receive);
        self.receives.len() - 1
    }

    /// Keeps that a receive is complete, and its message.
    pub(crate) fn end(&mut self, at: Option<usize>, met: Option<(u32, i32)>) {
        if let Some(at) = at {
            let receive = &mut self.receives[at];
            receive.met = receive.met.or(met);
            receive.is_done = true;
            self.order.push(Entry::Completed(at));
        }
    }

    /// Keeps that these ranks have all made a collective call.
    pub(crate) fn together(&mut self, ranks: Vec<u32>) {
        self.order.push(Entry::Together(self.together.len()));
        self.together.push(ranks);
    }

    /// Pairs sends and receives. `end_of` returns the end of a rank, if it has ended in order.
    pub(crate) fn pair(&self, end_of: impl Fn(u32) -> Option<Side>) -> Vec<Match> {
        let mut waiting: HashMap<Envelope, VecDeque<usize>> = HashMap::new();
        for (at, send) in self
            .sends
            .iter()
            .enumerate()
            .filter(|(_, one)| !one.is_gone)
        {
            waiting.entry(send.envelope()).or_default().push_back(at);
        }
        let mut pairs = Vec::new();
        // Receivers on a communicator of which a receive may have taken any of several messages.
        let mut unsure: HashSet<(u64, u32)> = HashSet::new();
        for (at, receive) in self.receives.iter().enumerate() {
            let place = (receive.comm, receive.side.rank);
            if receive.is_gone || unsure.contains(&place) {
                continue;
            }
            let envelope = receive.envelope().or_else(|| {
                let mut fitting = waiting
                    .iter()
                    .filter(|(key, all)| !all.is_empty() && receive.takes(key));
                match (fitting.next(), fitting.next()) {
                    (Some((only, _)), None) => Some(*only),
                    _ => None,
                }
            });
            match envelope {
                Some(envelope) => {
                    let queue = waiting.get_mut(&envelope);
                    if let Some(send) = queue.and_then(VecDeque::pop_front) {
                        pairs.push(Match::Pair(send, at));
                    }
                }
                None if !receive.is_done && self.has_fitting(&waiting, receive) => {
                    unsure.insert(place);
                }
                None => {}
            }
        }
        let mut left: Vec<usize> = waiting
            .into_iter()
            .filter(|((comm, _, to, _), _)| !unsure.contains(&(*comm, *to)))
            .flat_map(|(_, all)| all)
            .collect();
        left.sort_unstable();
        let left = left.into_iter().filter_map(|at| {
            let end = end_of(self.sends[at].to)?;
            Some(Match::Left(at, end))
        });
        pairs.extend(left);
        pairs
    }

    fn has_fitting(&self, waiting: &HashMap<Envelope, VecDeque<usize>>, receive: &Receive) -> bool {
        waiting
            .iter()
            .any(|(key, all)| !all.is_empty() && receive.takes(key))
    }
}

impl Match {
    /// The send and the receive, if there is one.
    pub(crate) fn pair(&self) -> Option<(usize, usize)> {
        match self {
            Match::Pair(send, receive) => Some((*send, *receive)),
            Match::Left(..) => None,
        }
    }

    /// The communicator of the message.
    pub(crate) fn comm(&self, messages: &Messages) -> u64 {
        let (Match::Pair(send, _) | Match::Left(send, _)) = self;
        messages.sends[*send].comm
    }

    /// Adds what is wrong with the message, on the communicator with this name.
    pub(crate) fn report(&self, messages: &Messages, comm: &str, found: &mut Findings) {
        let (send, receive) = match self {
            Match::Pair(send, receive) => (&messages.sends[*send], &messages.receives[*receive]),
            Match::Left(send, end) => {
                let send = &messages.sends[*send];
                let sides = vec![with(&send.side, send.facts()), end.clone()];
                let what = format!("a message on {comm} is never received");
                return found.add(Rule::Unreceived, what, sides);
            }
        };
        let Some(room) = &receive.signature else {
            return;
        };
        let (rule, what) = match send.signature.compare(room) {
            Difference::None | Difference::Shorter => return,
            Difference::Longer => {
                let (sent, has) = (send.signature.bytes(), room.bytes());
                let what =
                    format!("a message of {sent} B on {comm} is received into a buffer of {has} B");
                (Rule::Truncated, what)
            }
            Difference::Types { at, types } => {
                let [sent, received] = types.map(datatype::Predefined::name);
                let what = format!(
                    "element {at} of a message on {comm} is sent as {sent} and received as {received}"
                );
                (Rule::Types, what)
            }
        };
        let sides = vec![
            with(&send.side, send.facts()),
            with(&receive.side, receive.facts()),
        ];
        found.add(rule, what, sides);
    }
}

fn with(side: &Side, detail: String) -> Side {
    Side {
        detail,
        ..side.clone()
    }
}
