//! Choices among protocols, as reports show them: the choices for all lengths, the costs of the
//! protocols not chosen, and the reasons why a sender cannot use them.
//!
//! Reports have a name that is no row of the table: a shared send, by which messages go that would
//! leave in pieces.

use channel::Capabilities;
use knobs::Rendezvous;

use super::protocol::{Case, Limits, Protocol, Sharing};
use super::protocol_table::{TABLE, applies, choose};

/// A sender's choices for messages of all lengths to one peer: the length from which on each
/// protocol is used, and its cost there in nanoseconds. The receiver's buffer is assumed to be
/// contiguous.
pub(crate) fn explain(peer: &Capabilities, limits: &Limits) -> Vec<(usize, Protocol, u64)> {
    let mut choices: Vec<(usize, Protocol, u64)> = Vec::new();
    for len in lengths(peer, limits) {
        let case = Case::of_sender(len, peer, limits);
        let protocol = choose(&case);
        if choices.last().is_none_or(|(_, last, _)| *last != protocol) {
            let row = TABLE.iter().find(|row| row.protocol == protocol);
            choices.push((len, protocol, row.map_or(0, |row| (row.cost)(&case))));
        }
    }
    choices
}

/// The lengths in bytes at which the name of a sender's choice for a peer changes.
pub(crate) fn starts(
    peer: &Capabilities,
    limits: &Limits,
    sharing: impl Fn(usize) -> Sharing,
) -> Vec<usize> {
    let mut starts = lengths(peer, limits);
    let name = |len: usize| {
        let protocol = choose(&Case::of_sender(len, peer, limits));
        name_of(protocol, sharing(len))
    };
    starts.dedup_by_key(|len| name(*len));
    starts
}

/// The lengths up to 1 GiB at which the protocol may change, and powers of two.
pub(crate) fn lengths(peer: &Capabilities, limits: &Limits) -> Vec<usize> {
    let marks = [
        limits.whole(peer),
        limits.eager_to(peer),
        limits.single_copy.saturating_sub(1),
        limits.cooperative.saturating_sub(1),
    ];
    let mut lengths: Vec<usize> = (0..31).map(|power| 1 << power).collect();
    lengths.extend(marks.iter().filter_map(|mark| mark.checked_add(1)));
    lengths.push(0);
    lengths.retain(|len| *len <= 1 << 30);
    lengths.sort_unstable();
    lengths
}

/// The chosen protocol with its time in nanoseconds, and the protocols not chosen with theirs.
pub(crate) type Choice = ((Protocol, u64), Vec<(Protocol, u64)>);

/// A sender's choice for a message of `len` bytes, and the protocols not chosen that the peer's
/// transport could carry, whatever the settings, in the order of their costs. Costs are in
/// nanoseconds.
pub(crate) fn compare(len: usize, peer: &Capabilities, limits: &Limits) -> Choice {
    let case = Case::of_sender(len, peer, limits);
    let chosen = choose(&case);
    let costs = TABLE.iter().map(|row| (row.protocol, (row.cost)(&case)));
    let (taken, others): (Vec<_>, Vec<_>) = costs.partition(|(protocol, _)| *protocol == chosen);
    let would_be_faster = |cost: u64| cost < taken[0].1;
    // A faster eager message is shown even if it exceeds a packet: the length of packets is a
    // setting.
    let is_shown = |&(protocol, cost): &(Protocol, u64)| {
        is_possible(protocol, &case) || protocol == Protocol::Eager && would_be_faster(cost)
    };
    let mut others: Vec<_> = others.into_iter().filter(is_shown).collect();
    others.sort_by_key(|(_, cost)| *cost);
    (taken[0], others)
}

/// Name of shared sends in reports.
pub(crate) const SHARED: &str = "shared send";
/// The name in reports of messages that are shared alternately, because their receiver does not
/// know yet whether reads or packets are faster.
const BY_TURNS: &str = "shared send or eager pieces";

/// Name of a sender's choice for messages of one length, of which the table has chosen `protocol`.
pub(crate) fn name_of(protocol: Protocol, sharing: Sharing) -> &'static str {
    match (protocol, sharing) {
        (Protocol::EagerPieces, Sharing::Forced) => SHARED,
        (Protocol::EagerPieces, Sharing::Preferred(Some(it))) if it.reads => SHARED,
        (Protocol::EagerPieces, Sharing::Preferred(None)) => BY_TURNS,
        _ => protocol.name(),
    }
}

/// A choice of the table with the name that reports give it. A shared send takes the time of a
/// read, and the pieces are not taken.
pub(crate) fn named((mut taken, mut others): Choice, sharing: Sharing) -> (&'static str, Choice) {
    let name = name_of(taken.0, sharing);
    if name == SHARED {
        others.push(taken);
        others.sort_by_key(|(_, time)| *time);
        let mut reads = others
            .iter()
            .filter(|(other, _)| *other == Protocol::ReadRendezvous);
        taken.1 = reads.next().map_or(taken.1, |read| read.1);
    }
    (name, (taken, others))
}

/// The reason why a sender cannot use a protocol that [`compare`] predicts to be faster than the
/// chosen one.
pub(crate) fn ruled_out_by(
    protocol: Protocol,
    len: usize,
    peer: &Capabilities,
    limits: &Limits,
) -> &'static str {
    let case = Case::of_sender(len, peer, limits);
    let is_at_once = choose(&case).is_at_once();
    match protocol {
        _ if limits.forced.is_some_and(|forced| applies(forced, &case)) => "FISHPLATE_PROTOCOL",
        Protocol::ReadyToReceive => "its receiver, which announces its buffer beforehand",
        Protocol::Eager if limits.eager.is_none() && len > peer.piece => {
            "the length of packets, FISHPLATE_RDMA_CHUNK"
        }
        Protocol::Eager | Protocol::EagerPieces => "FISHPLATE_EAGER_LIMIT",
        Protocol::ReadRendezvous | Protocol::WriteRendezvous | Protocol::Packets if is_at_once => {
            "FISHPLATE_EAGER_LIMIT"
        }
        Protocol::CooperativeCopy => "FISHPLATE_TOGETHER_LIMIT",
        Protocol::ReadRendezvous if limits.rendezvous != Rendezvous::Write => {
            "FISHPLATE_SINGLE_COPY_LIMIT"
        }
        _ => "FISHPLATE_RENDEZVOUS",
    }
}

/// True if the peer's transport can carry a message of this length by this protocol.
fn is_possible(protocol: Protocol, case: &Case) -> bool {
    let zero_copy = case.peer.zero_copy;
    match protocol {
        Protocol::ReadyToReceive | Protocol::WriteRendezvous => {
            zero_copy.is_some_and(|zero_copy| zero_copy.notified_write)
        }
        Protocol::ReadRendezvous => zero_copy.is_some_and(|zero_copy| zero_copy.read),
        Protocol::Eager => case.len <= case.peer.piece,
        Protocol::EagerPieces => case.peer.pipelined && case.len > case.peer.piece,
        Protocol::CooperativeCopy => case.peer.cooperative,
        Protocol::Packets => true,
    }
}

#[cfg(test)]
mod tests {
    use channel::Preferred;

    use super::super::protocol::CopyCostSource;
    use super::super::protocol_table::tests::{LIMITS, SHM};
    use super::*;

    fn preferred(reads: bool) -> Sharing {
        Sharing::Preferred(Some(Preferred::new(reads, 1)))
    }

    #[test]
    fn a_shared_send_is_named_and_has_the_time_of_a_read() {
        use Protocol::*;
        let choice = || {
            (
                (EagerPieces, 9000),
                vec![(ReadRendezvous, 7000), (Packets, 12000)],
            )
        };
        let (name, (taken, others)) = named(choice(), preferred(true));
        assert_eq!((name, taken.1), (SHARED, 7000));
        let others: Vec<Protocol> = others.iter().map(|other| other.0).collect();
        assert_eq!(others, [ReadRendezvous, EagerPieces, Packets]);
        assert_eq!(named(choice(), Sharing::Forced).0, SHARED);
        assert_eq!(
            named(choice(), Sharing::Preferred(None)),
            (BY_TURNS, choice())
        );
        for other in [Sharing::Never, preferred(false)] {
            assert_eq!(named(choice(), other), ("eager pieces", choice()));
        }
        assert_eq!(name_of(Eager, Sharing::Forced), "eager");
    }

    #[test]
    fn a_class_of_lengths_begins_at_a_power_of_two() {
        let limits = Limits {
            copy_costs: CopyCostSource::Learned,
            ..LIMITS
        };
        let of = |sharing: fn(usize) -> Sharing| starts(&SHM, &limits, sharing);
        let [first, third] = [16, 128].map(|kib| (kib << 10) + 1);
        let [second, long] = [32, 256].map(|kib| kib << 10);
        assert_eq!(of(|_| Sharing::Never), [0, first, third, long]);
        let longer = |len| preferred(len >= 32 << 10);
        assert_eq!(of(longer), [0, first, second, third, long]);
    }
}
