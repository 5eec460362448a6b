//! The alternatives to a rank's choices: protocols, rail policies and algorithms, each with the
//! settings that force it, and the choices that the rank takes by itself. `Rank::explain_choices`
//! contains them, and `fishplate bench --every-choice` measures them.
//!
//! A new protocol needs a row in `forced_protocol`, which the compiler demands; the algorithms
//! are those of the tables.

use channel::Capabilities;
use channel::Transport as _;
use knobs::{KnobValue, ProtocolChoice, RailPolicy};

use crate::algorithms::contest::Subject;
use crate::algorithms::{Case, Collective, rows};
use crate::comm::WORLD;
use crate::explain::{array, quoted};
use crate::p2p::protocol::{self, CopyCostSource, Limits, Protocol, Sharing};
use crate::p2p::protocol_report::SHARED;
use crate::p2p::{protocol_report, protocol_table};
use crate::rank::Rank;

/// Names and values of environment variables.
type Variables = Vec<(&'static str, String)>;

/// The alternatives of one choice: of a protocol, a rail policy or the algorithm of a collective.
struct Group {
    /// The procedures whose time depends on the choice among these alternatives.
    procedures: &'static [&'static str],
    /// The kind of the alternatives: `protocol`, `rails` or `algorithm`.
    kind: &'static str,
    /// True if the choices of the rank depend on the messages that it has sent.
    is_learned: bool,
    /// The rank's own choices, each with the least length in bytes at which the rank makes it. For
    /// collectives the length is that of [`Case::bytes`].
    taken: Vec<(usize, String)>,
    /// The alternatives that settings can force, each with the settings.
    forced: Vec<(String, Variables)>,
}

impl Rank {
    /// All groups of alternatives, as a JSON array.
    pub(crate) fn alternatives(&self) -> String {
        let collectives = Collective::ALL.iter();
        let messages = self.message_groups().into_iter();
        let groups = messages.chain(collectives.map(|&of| self.algorithm_group(of)));
        array(groups.map(|group| group.object()))
    }

    /// Protocols and rail policies for messages to the next rank.
    fn message_groups(&self) -> Vec<Group> {
        let peer = (self.rank() + 1) % self.size();
        let state = &mut *self.lock();
        let capabilities = state.engine.router.capabilities(peer);
        let announced = state.engine.messages.tally.is_mostly_announced();
        let (messages, router) = (&state.engine.messages, &state.engine.router);
        let learned = |len| {
            let choice = messages.learned_choice(len, &capabilities);
            choice.map(|((protocol, _), _)| protocol)
        };
        let sharing = |len| messages.sharing(router, peer, len, &capabilities);
        let zero_copy = capabilities.zero_copy;
        let writes = zero_copy.is_some_and(|zero_copy| zero_copy.notified_write);
        let copies = zero_copy.is_some_and(|zero_copy| zero_copy.synchronous);
        let limits = &self.limits;
        let learns = limits.copy_costs == CopyCostSource::Learned;
        let protocols = Group {
            procedures: &["MPI_Send"],
            kind: "protocol",
            is_learned: limits.announces && writes || learns && copies,
            taken: taken_protocols(&capabilities, limits, announced, learned, sharing),
            forced: protocol_table::all()
                .map(|protocol| (protocol.name().to_string(), forced_protocol(protocol)))
                .chain(copies.then(|| (SHARED.to_string(), forced_sharing())))
                .collect(),
        };
        if capabilities.rails < 2 {
            return vec![protocols];
        }
        let policies = RailPolicy::ALL.iter().map(|policy| policy.show());
        let rails = Group {
            procedures: &["MPI_Send"],
            kind: "rails",
            is_learned: false,
            taken: vec![(0, self.knobs.rail_policy.show())],
            forced: policies
                .map(|name| (name.clone(), vec![("FISHPLATE_RAIL_POLICY", name)]))
                .collect(),
        };
        vec![protocols, rails]
    }

    /// Algorithms of blocking calls of a collective on MPI_COMM_WORLD.
    fn algorithm_group(&self, collective: Collective) -> Group {
        let usual = self.usual_case();
        let case = |bytes| Case {
            bytes,
            published: bytes,
            ..usual
        };
        let mut forced: Vec<(String, Variables)> = Vec::new();
        for row in rows(collective).iter().filter(|row| row.can(&usual)) {
            let name = row.algorithm.name();
            if forced.iter().all(|(known, _)| known != name) {
                let value = format!("{}={name}", collective.name());
                forced.push((name.into(), vec![("FISHPLATE_COLLECTIVES", value)]));
            }
        }
        let lengths = lengths(self.size()).into_iter();
        let taken = |bytes| {
            let algorithm = self.usual_algorithm(collective, &case(bytes));
            (bytes, algorithm.name().to_string())
        };
        let longest = Subject::of(collective, usize::MAX - 1);
        let learns = {
            let state = self.lock();
            let world = state.objects.comms.get(WORLD);
            world.is_ok_and(|world| world.contests.is_some())
        };
        Group {
            procedures: collective.procedures(),
            kind: "algorithm",
            is_learned: learns && longest.is_some(),
            taken: changes(lengths.map(taken)),
            forced,
        }
    }
}

impl Group {
    fn object(&self) -> String {
        let procedures = array(self.procedures.iter().map(|name| quoted(name)));
        let taken = self.taken.iter();
        let taken = array(taken.map(|(from, choice)| format!("[{from},{}]", quoted(choice))));
        let forced = array(self.forced.iter().map(|(choice, variables)| {
            let choice = quoted(choice);
            let variables = variables.iter();
            let variables =
                variables.map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)));
            let variables = variables.collect::<Vec<_>>().join(",");
            format!(r#"{{"choice":{choice},"settings":{{{variables}}}}}"#)
        }));
        let (kind, is_learned) = (quoted(self.kind), self.is_learned);
        format!(
            r#"{{"procedures":{procedures},"kind":{kind},"is_learned":{is_learned},"taken":{taken},"forced":{forced}}}"#
        )
    }
}

/// The settings under which a protocol carries every message that it can carry.
fn forced_protocol(protocol: Protocol) -> Variables {
    // The eager limit divides messages that leave at once from announced ones.
    const AT_ONCE: (&str, &str) = ("FISHPLATE_EAGER_LIMIT", "64M");
    const ANNOUNCED: (&str, &str) = ("FISHPLATE_EAGER_LIMIT", "0");
    // A limit above any message's length.
    const NEVER: &str = "1024G";
    let (choice, limits): (ProtocolChoice, &[(&'static str, &str)]) = match protocol {
        Protocol::Eager => (ProtocolChoice::Eager, &[AT_ONCE, ("FISHPLATE_RTR", "off")]),
        Protocol::EagerPieces => (
            ProtocolChoice::EagerPieces,
            &[AT_ONCE, ("FISHPLATE_RTR", "off")],
        ),
        Protocol::ReadyToReceive => (
            ProtocolChoice::ReadyToReceive,
            // A message without an announced receive leaves as by default.
            &[("FISHPLATE_RENDEZVOUS", "auto"), ("FISHPLATE_RTR", "on")],
        ),
        Protocol::CooperativeCopy => (
            ProtocolChoice::CooperativeCopy,
            &[
                ANNOUNCED,
                ("FISHPLATE_SINGLE_COPY", "on"),
                ("FISHPLATE_SINGLE_COPY_LIMIT", "0"),
                ("FISHPLATE_TOGETHER_LIMIT", "0"),
            ],
        ),
        Protocol::ReadRendezvous => (
            ProtocolChoice::ReadRendezvous,
            &[
                ANNOUNCED,
                ("FISHPLATE_RENDEZVOUS", "read"),
                ("FISHPLATE_SINGLE_COPY", "on"),
                ("FISHPLATE_SINGLE_COPY_LIMIT", "0"),
                ("FISHPLATE_TOGETHER_LIMIT", NEVER),
            ],
        ),
        Protocol::WriteRendezvous => (
            ProtocolChoice::WriteRendezvous,
            &[ANNOUNCED, ("FISHPLATE_RENDEZVOUS", "write")],
        ),
        Protocol::Packets => (
            ProtocolChoice::Packets,
            &[
                ANNOUNCED,
                ("FISHPLATE_RTR", "off"),
                ("FISHPLATE_SINGLE_COPY", "off"),
            ],
        ),
    };
    let limits = limits.iter();
    let limits = limits.map(|(name, value)| (*name, value.to_string()));
    limits
        .chain([("FISHPLATE_PROTOCOL", choice.show())])
        .collect()
}

/// The settings under which every message that would leave in pieces is shared.
fn forced_sharing() -> Variables {
    let read = ProtocolChoice::ReadRendezvous.show();
    [
        ("FISHPLATE_EAGER_LIMIT", "64M"),
        ("FISHPLATE_COSTS", "learn"),
        ("FISHPLATE_SINGLE_COPY", "auto"),
        ("FISHPLATE_PROTOCOL", &*read),
    ]
    .map(|(name, value)| (name, value.to_string()))
    .to_vec()
}

/// The chosen protocols, each with the least length in bytes for which it is chosen. `announced`:
/// the peer announces its receives. `learned`: the protocol that receivers have learned for a
/// length. `sharing`: the use of shared sends for a length.
fn taken_protocols(
    peer: &Capabilities,
    limits: &Limits,
    announced: bool,
    learned: impl Fn(usize) -> Option<Protocol>,
    sharing: impl Fn(usize) -> Sharing,
) -> Vec<(usize, String)> {
    let taken = |len| {
        let case = protocol::Case {
            has_rtr: announced,
            ..protocol::Case::of_sender(len, peer, limits)
        };
        let protocol = learned(len).unwrap_or_else(|| protocol_table::choose(&case));
        let name = protocol_report::name_of(protocol, sharing(len));
        (len, name.to_string())
    };
    changes(
        protocol_report::lengths(peer, limits)
            .into_iter()
            .map(taken),
    )
}

/// The lengths in bytes at which the algorithm of a collective is examined: 0, powers of two, and
/// these times the number of members.
fn lengths(members: usize) -> Vec<usize> {
    let powers = (0..31).map(|power| 1usize << power);
    let mut all: Vec<usize> = powers.flat_map(|power| [power, power * members]).collect();
    all.push(0);
    all.sort_unstable();
    all.dedup();
    all
}

/// The first element of each run of equal choices.
fn changes(choices: impl Iterator<Item = (usize, String)>) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = choices.collect();
    all.dedup_by(|next, last| next.1 == last.1);
    all
}

#[cfg(test)]
mod tests {
    use knobs::Knobs;

    use super::*;
    use crate::p2p::protocol_table::tests::{RDMA, SHM};
    use crate::rank::bootstrap;

    /// The protocol for messages of `len` bytes to this peer under the settings that force
    /// `protocol`.
    fn forced(protocol: Protocol, peer: &Capabilities, len: usize) -> String {
        let variables = forced_protocol(protocol).into_iter();
        let variables = variables.map(|(name, value)| (name.to_string(), value));
        let limits = bootstrap::limits(&Knobs::parse(variables).unwrap());
        let taken = taken_protocols(
            peer,
            &limits,
            limits.announces && peer.rails > 0 && protocol == Protocol::ReadyToReceive,
            |_| None,
            |_| Sharing::Never,
        );
        let last = taken.iter().rfind(|(from, _)| *from <= len);
        last.unwrap().1.clone()
    }

    #[test]
    fn every_protocol_can_be_forced_on_a_peer_that_can_carry_it() {
        use Protocol::*;
        for protocol in protocol_table::all() {
            let (peer, lengths) = match protocol {
                Eager => (&SHM, [8, 16 << 10]),
                EagerPieces => (&SHM, [17 << 10, 1 << 20]),
                CooperativeCopy => (&SHM, [8, 1 << 20]),
                ReadRendezvous | WriteRendezvous | Packets => (&RDMA, [8, 1 << 20]),
                ReadyToReceive => (&RDMA, [17 << 10, 1 << 20]),
            };
            for len in lengths {
                assert_eq!(forced(protocol, peer, len), protocol.name(), "{len}");
            }
            let setting = ProtocolChoice::ALL.iter();
            let mut settings = setting.filter_map(|&one| Protocol::of_setting(one));
            assert!(settings.any(|one| one == protocol));
        }
        assert_eq!(forced(ReadRendezvous, &SHM, 8), "read rendezvous");
        assert_eq!(forced(Packets, &SHM, 8), "rendezvous by packets");
        // Nothing can be forced that the peer cannot carry.
        let other = forced(WriteRendezvous, &SHM, 1 << 20);
        assert!(["cooperative copy", "rendezvous by packets"].contains(&&*other));
    }

    #[test]
    fn shared_sends_can_be_forced() {
        let variables = forced_sharing().into_iter();
        let variables = variables.map(|(name, value)| (name.to_string(), value));
        let limits = bootstrap::limits(&Knobs::parse(variables).unwrap());
        assert_eq!(limits.forced, Some(Protocol::ReadRendezvous));
        assert_eq!(limits.copy_costs, CopyCostSource::Learned);
        let taken = taken_protocols(&SHM, &limits, false, |_| None, |_| Sharing::Forced);
        let begins = [(0, "eager"), ((16 << 10) + 1, SHARED)];
        let begins = begins.map(|(from, name)| (from, name.to_string()));
        assert_eq!(taken[..2], begins);
    }

    #[test]
    fn only_changes_are_listed() {
        let all = [(0, "a"), (1, "a"), (2, "b"), (4, "b"), (8, "a")];
        let all = all.map(|(from, choice)| (from, choice.to_string()));
        let found = changes(all.into_iter());
        let found: Vec<(usize, &str)> = found.iter().map(|(from, name)| (*from, &**name)).collect();
        assert_eq!(found, [(0, "a"), (2, "b"), (8, "a")]);
        assert_eq!(lengths(3)[..7], [0, 1, 2, 3, 4, 6, 8]);
    }
}
