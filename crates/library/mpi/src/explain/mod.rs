//! The choices for messages to each kind of peer: protocol, rails, and the predicted times of the
//! choices not taken; the algorithms of collectives on MPI_COMM_WORLD; and who makes progress for
//! the windows that the rank has made. The text is JSON, for the launcher, which shows it to the
//! user.

mod alternatives;

use std::fmt::Write;

use channel::{Capabilities, RailChoice, Transport};

use crate::algorithms::contest::{Subject, Way};
use crate::algorithms::{self, Algorithm, Case, Collective};
use crate::comm::WORLD;
use crate::p2p::protocol::Protocol;
use crate::p2p::protocol_report::{SHARED, compare, named, ruled_out_by, starts};
use crate::rank::Rank;
use crate::window::AccessKind;

/// Message sizes to explain, in addition to those at which the protocol changes.
const SIZES: [usize; 12] = [
    8,
    64,
    512,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    512 << 10,
    1 << 20,
    4 << 20,
];

/// The protocols and rails that this rank chooses for one peer.
#[derive(PartialEq)]
struct PeerChoices {
    transport: &'static str,
    rails: usize,
    /// The names of the devices, by rail.
    devices: Vec<String>,
    sizes: Vec<SizeChoice>,
}

/// The protocols and rails that are chosen for messages of one size.
#[derive(PartialEq)]
struct SizeChoice {
    size: usize,
    /// The name of the chosen protocol, and its predicted time in nanoseconds.
    taken: (&'static str, u64),
    others: Vec<NotTaken>,
    rails: Option<RailChoice>,
}

/// A protocol that was not chosen for messages of one size, with its predicted time.
#[derive(PartialEq)]
struct NotTaken {
    protocol: Protocol,
    predicted_ns: u64,
    /// The reason why the rank cannot use this protocol. Given if its predicted time is below that
    /// of the chosen protocol.
    ruled_out_by: Option<&'static str>,
}

impl Rank {
    /// This rank's choices for messages to its peers, as one JSON object. Peers with equal choices
    /// are one kind. The ranks of one host are assumed to be alike, so only the first is examined.
    pub fn explain_choices(&self) -> String {
        let mut kinds: Vec<(Vec<usize>, PeerChoices)> = Vec::new();
        let hosts = self.hosts();
        for host in 0..hosts.count() as u32 {
            let peers: Vec<usize> = hosts.on(host).filter(|peer| *peer != self.rank()).collect();
            let Some(&first) = peers.first() else {
                continue;
            };
            let choices = self.choices(first);
            match kinds.iter_mut().find(|(_, known)| *known == choices) {
                Some((members, _)) => members.extend(peers),
                None => kinds.push((peers, choices)),
            }
        }
        let kinds = kinds.into_iter().map(|(mut members, choices)| {
            members.sort_unstable();
            peer_object(&members, &choices)
        });
        let (rank, peers) = (self.rank(), array(kinds));
        if self.size() == 1 {
            return format!(r#"{{"rank":{rank},"peers":{peers}}}"#);
        }
        let all = Collective::ALL.iter();
        let collectives = array(all.map(|&collective| self.explain_collective(collective)));
        let (costs, alternatives) = (self.known_costs(), self.alternatives());
        let windows = self.explain_windows();
        format!(
            r#"{{"rank":{rank},"peers":{peers},"collectives":{collectives},"costs":{costs},"alternatives":{alternatives}{windows}}}"#
        )
    }

    /// The member `windows` of the JSON object: for each flavour the number of windows made, and
    /// who makes progress at the target for each kind of operations. Empty if the rank has made no
    /// window.
    fn explain_windows(&self) -> String {
        let state = self.lock();
        let made = state.objects.windows.made();
        if made.is_empty() {
            return String::new();
        }
        let rows = made.iter().map(|(flavor, progressors, count)| {
            let pairs = AccessKind::ALL.into_iter().zip(progressors);
            let pairs = pairs.map(|(kind, who)| {
                let (kind, who) = (quoted(kind.name()), quoted(who.name()));
                format!(r#"{{"operations":{kind},"by":{who}}}"#)
            });
            let (flavor, progress) = (quoted(flavor.name()), array(pairs));
            format!(r#"{{"flavor":{flavor},"count":{count},"progress":{progress}}}"#)
        });
        format!(r#","windows":{}"#, array(rows))
    }

    /// The costs of paths within the host that its ranks know, as a JSON array.
    fn known_costs(&self) -> String {
        let state = self.lock();
        array(state.engine.messages.known_costs().map(|of| {
            let label = of.label;
            let [choice, path] = [label.of, label.path].map(quoted);
            let situation = quoted(&label.situation.replace('.', ", "));
            let source = quoted(if of.is_kept { "earlier jobs" } else { "this job" });
            let (from, ps) = (label.least, of.ps_per_byte);
            format!(
                r#"{{"of":{choice},"path":{path},"from":{from},"situation":{situation},"ps_per_byte":{ps},"source":{source}}}"#
            )
        }))
    }

    /// The algorithms of blocking calls of a collective on MPI_COMM_WORLD as a JSON object, by
    /// length in bytes as in [`Case::bytes`]. Blocks have one size, and the operation is
    /// commutative.
    fn explain_collective(&self, collective: Collective) -> String {
        let usual = self.usual_case();
        let sizes: &[usize] = match collective {
            Collective::Barrier => &[0],
            _ => &SIZES,
        };
        let rows = sizes.iter().map(|&bytes| {
            let case = Case { bytes, ..usual };
            let taken = self.usual_algorithm(collective, &case);
            let times = match case.is_in_memory() {
                true => self.measured_times(collective, &case),
                false => algorithms::predictions(collective, &case),
            };
            algorithm_object(taken, &times, &case)
        });
        let (name, rows) = (quoted(collective.name()), array(rows));
        format!(r#"{{"collective":{name},"sizes":{rows}}}"#)
    }

    /// The [`Case`] of a blocking call on MPI_COMM_WORLD with blocks of one size and a commutative
    /// operation. Its bytes are 0.
    pub(crate) fn usual_case(&self) -> Case {
        let (core, lane) = {
            let state = self.lock();
            let world = state
                .objects
                .comms
                .get(WORLD)
                .expect("MPI_COMM_WORLD is never freed");
            (world.core.clone(), world.lane.clone())
        };
        let hosts = self.hosts();
        // Before the first collective operation the members have not agreed on the network's facts.
        let agreed = core.network.agreed.get().copied();
        let network = agreed.unwrap_or_else(|| self.own_network());
        let usual = Case {
            spread: core.shape(|world| hosts.of(world)).spread(),
            network,
            arity: self.algorithms.arity(),
            direct: lane.is_some_and(|lane| lane.is_direct),
            ..Case::usual(0, self.size())
        };
        Case {
            shared: usual.is_in_memory(),
            ..usual
        }
    }

    /// The algorithm of a blocking call on MPI_COMM_WORLD: the one that its contest has chosen, or
    /// that of the table.
    pub(crate) fn usual_algorithm(&self, collective: Collective, case: &Case) -> Algorithm {
        match self.learned_way(collective, published(collective, case)) {
            Some(way) => self.algorithm_by(way, collective, case),
            None => self.of_table(collective, case, (case.shared, case.direct)),
        }
    }

    /// The algorithm that a blocking call uses on this data path.
    fn algorithm_by(&self, way: Way, collective: Collective, case: &Case) -> Algorithm {
        match way {
            Way::Buffer => Algorithm::Shared,
            Way::Direct => Algorithm::Direct,
            Way::Messages => self.of_table(collective, case, (false, false)),
        }
    }

    /// The algorithm of the table, with or without a collective buffer and direct copies.
    fn of_table(
        &self,
        collective: Collective,
        case: &Case,
        (shared, direct): (bool, bool),
    ) -> Algorithm {
        let case = Case {
            shared,
            direct,
            published: published(collective, case),
            ..*case
        };
        self.algorithms.algorithm(collective, case)
    }

    /// The measured times of a blocking call on MPI_COMM_WORLD, in nanoseconds, of those algorithms
    /// whose costs the ranks of this host know.
    fn measured_times(&self, collective: Collective, case: &Case) -> Vec<(Algorithm, u64)> {
        let published = published(collective, case);
        let Some(subject) = Subject::of(collective, published) else {
            return Vec::new();
        };
        let times = {
            let state = self.lock();
            let messages = &state.engine.messages;
            messages.call_times(subject, case.ranks, published)
        };
        let known = Way::ALL.into_iter().zip(times);
        known
            .filter_map(|(way, time)| Some((self.algorithm_by(way, collective, case), time?)))
            .collect()
    }

    /// The [`Way`] that has won the contest of the members of MPI_COMM_WORLD. `None`: none has yet.
    fn learned_way(&self, collective: Collective, published: usize) -> Option<Way> {
        let subject = Subject::of(collective, published)?;
        let state = self.lock();
        let world = state.objects.comms.get(WORLD).ok()?;
        world.contests.as_ref()?.chosen(subject)
    }

    fn choices(&self, peer: usize) -> PeerChoices {
        let limits = &self.limits;
        let mut state = self.lock();
        let capabilities: Capabilities = state.engine.router.capabilities(peer);
        let (messages, router) = (&state.engine.messages, &state.engine.router);
        let sharing = |size| messages.sharing(router, peer, size, &capabilities);
        let mut sizes = starts(&capabilities, limits, sharing);
        sizes.extend(SIZES);
        sizes.retain(|size| (1..=SIZES[SIZES.len() - 1]).contains(size));
        sizes.sort_unstable();
        sizes.dedup();
        let sizes = sizes.into_iter().map(|size| {
            let learned = state.engine.messages.learned_choice(size, &capabilities);
            let is_learned = learned.is_some();
            let choice = learned.unwrap_or_else(|| compare(size, &capabilities, limits));
            let (messages, router) = (&state.engine.messages, &state.engine.router);
            let sharing = messages.sharing(router, peer, size, &capabilities);
            let (name, (taken, others)) = named(choice, sharing);
            let is_learned = is_learned || name == SHARED;
            let others = others.into_iter().map(|(protocol, predicted_ns)| {
                let is_faster = predicted_ns < taken.1 && !is_learned;
                let why = || ruled_out_by(protocol, size, &capabilities, limits);
                NotTaken {
                    protocol,
                    predicted_ns,
                    ruled_out_by: is_faster.then(why),
                }
            });
            let others = others.collect();
            let rails = state.engine.router.report().rails(peer, size);
            SizeChoice {
                size,
                taken: (name, taken.1),
                others,
                rails,
            }
        });
        let sizes = sizes.collect();
        PeerChoices {
            sizes,
            devices: state.engine.router.report().rail_names(peer),
            transport: capabilities.transport,
            rails: capabilities.rails,
        }
    }
}

/// The bytes of the longest vector that a member would publish in a call with blocks of one size.
fn published(collective: Collective, case: &Case) -> usize {
    match collective {
        Collective::Allgather => case.bytes / case.ranks.max(1),
        Collective::Scatter | Collective::Alltoall => {
            case.bytes.saturating_mul(case.ranks.saturating_sub(1))
        }
        _ => case.bytes,
    }
}

/// A JSON object: the algorithm chosen for one size, and the others, with predicted times. The
/// chosen one has none if the members share memory and have not measured it.
fn algorithm_object(taken: Algorithm, all: &[(Algorithm, u64)], case: &Case) -> String {
    let called = |algorithm: Algorithm| match algorithm {
        Algorithm::KAry => format!("{} (k = {})", algorithm.name(), case.tree_arity()),
        _ => algorithm.name().to_string(),
    };
    let (own, others): (Vec<_>, Vec<_>) = all.iter().partition(|(other, _)| *other == taken);
    let predicted = own
        .first()
        .map_or("null".into(), |(_, time)| time.to_string());
    let others = others.into_iter();
    let others = times(others.map(|(other, time)| (called(other), time)));
    let (name, size) = (quoted(&called(taken)), case.bytes);
    format!(
        r#"{{"size":{size},"algorithm":{name},"predicted_ns":{predicted},"not_taken":{others}}}"#
    )
}

fn peer_object(members: &[usize], choices: &PeerChoices) -> String {
    let members = array(members.iter().map(usize::to_string));
    let (transport, rails) = (quoted(choices.transport), choices.rails);
    let devices = array(choices.devices.iter().map(|name| quoted(name)));
    let sizes = array(choices.sizes.iter().map(size_object));
    format!(
        r#"{{"ranks":{members},"transport":{transport},"rails":{rails},"devices":{devices},"sizes":{sizes}}}"#
    )
}

fn size_object(choice: &SizeChoice) -> String {
    let (protocol, cost) = choice.taken;
    let others = choice.others.iter().map(|other| {
        let (choice, time) = (quoted(other.protocol.name()), other.predicted_ns);
        let why = other
            .ruled_out_by
            .map(|why| format!(r#","ruled_out_by":{}"#, quoted(why)));
        format!(
            r#"{{"choice":{choice},"predicted_ns":{time}{}}}"#,
            why.unwrap_or_default()
        )
    });
    format!(
        r#"{{"size":{},"protocol":{},"predicted_ns":{cost},"not_taken":{},"rails":{}}}"#,
        choice.size,
        quoted(protocol),
        array(others),
        choice.rails.as_ref().map_or("null".into(), rail_object),
    )
}

fn rail_object(choice: &RailChoice) -> String {
    let share = |&(rail, bytes): &(usize, u64)| format!(r#"{{"rail":{rail},"bytes":{bytes}}}"#);
    format!(
        r#"{{"choice":{},"shares":{},"predicted_ns":{},"not_taken":{},"limit":{}}}"#,
        quoted(&choice.choice),
        array(choice.shares.iter().map(share)),
        choice.predicted_ns,
        times(choice.alternatives.iter().cloned()),
        choice.limit.as_deref().map_or("null".into(), quoted),
    )
}

/// A JSON array of the choices, each with its predicted time in nanoseconds.
fn times(choices: impl Iterator<Item = (String, u64)>) -> String {
    array(choices.map(|(choice, time)| {
        let choice = quoted(&choice);
        format!(r#"{{"choice":{choice},"predicted_ns":{time}}}"#)
    }))
}

/// A JSON array of items that are encoded already.
pub(crate) fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// The text as a quoted JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
