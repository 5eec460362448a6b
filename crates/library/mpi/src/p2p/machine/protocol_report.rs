//! Choices among protocols, as reports show them: the choices for all lengths, the costs of the
//! protocols not taken, and what keeps a sender from them.

use channel::Capabilities;
use knobs::Rendezvous;

use super::protocol::{Case, Limits, Protocol};
use super::protocol_table::{TABLE, applies, choose};

/// A sender's choices for messages of all lengths to one peer: the length from which on each
/// protocol is used, and its cost there in nanoseconds. The receiver's buffer is taken to be one
/// run of bytes.
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

/// A choice with its time in nanoseconds, and the protocols not taken with theirs.
pub(crate) type Choice = ((Protocol, u64), Vec<(Protocol, u64)>);

/// A sender's choice for a message of `len` bytes, and the protocols not taken that the peer's
/// transport could carry, whatever the settings say, in the order of their costs. Costs are in
/// nanoseconds.
pub(crate) fn compare(len: usize, peer: &Capabilities, limits: &Limits) -> Choice {
    let case = Case::of_sender(len, peer, limits);
    let chosen = choose(&case);
    let costs = TABLE.iter().map(|row| (row.protocol, (row.cost)(&case)));
    let (taken, others): (Vec<_>, Vec<_>) = costs.partition(|(protocol, _)| *protocol == chosen);
    let would_be_faster = |cost: u64| cost < taken[0].1;
    // Longer packets would be a setting.
    let is_shown = |&(protocol, cost): &(Protocol, u64)| {
        is_possible(protocol, &case) || protocol == Protocol::Eager && would_be_faster(cost)
    };
    let mut others: Vec<_> = others.into_iter().filter(is_shown).collect();
    others.sort_by_key(|(_, cost)| *cost);
    (taken[0], others)
}

/// The reason why a sender cannot take a protocol that [`compare`] predicts to be faster than the
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

/// The peer's transport can carry a message of this length by this protocol.
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
