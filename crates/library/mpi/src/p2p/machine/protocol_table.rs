//! The protocol table: each protocol with the condition under which it applies and an estimate of
//! its cost. For each peer and message the cheapest applicable row wins; ties go to the earlier
//! row.
//!
//! Costs are those of the path to the peer ([`PathCosts`]): the time until both ranks can go on.
//! The path's limit of eager messages follows from the same costs, and a setting may replace it.
//! All of it is pure: a choice depends on the message, the peer's capabilities and the settings
//! alone.
//!
//! Invariant: [`Protocol::Packets`] applies to every announced message, so there is
//! always a choice.

use channel::PathCosts;
use knobs::Rendezvous;

use super::protocol::{Case, CopyCostSource, Protocol};

/// Shortest message, in bytes, that is written to an announced buffer over several rails.
const SHORTEST_RTR: usize = 2 << 10;

/// A row of the protocol table: a protocol, its conditions and costs.
pub(crate) struct Row {
    /// The protocol to which the row belongs.
    pub protocol: Protocol,
    /// The condition under which the protocol can move the message.
    pub applies: fn(&Case) -> bool,
    /// The time until both ranks can continue, in nanoseconds.
    pub cost: fn(&Case) -> u64,
}

/// An announced message goes in packets only if that is faster by the share 1 / `SPARED`: another
/// protocol spares both processors the copies.
const SPARED: u64 = 8;

/// A rank that is reading messages of a peer writes to the peer's announced buffers only if that is
/// faster by the share 1 / `CROSSED`. If each rank reads what it receives, one rank drives each
/// direction, and each direction gets half of the adapter's bandwidth.
const CROSSED: u64 = 8;

/// The table: one row for each protocol.
pub(crate) static TABLE: [Row; 7] = [
    Row {
        protocol: Protocol::ReadyToReceive,
        applies: |case| {
            let several_rails = case.peer.rails > 1 && case.len >= SHORTEST_RTR;
            case.is_sender() && case.has_rtr && case.exposable && (several_rails || !case.whole())
        },
        cost: |case| {
            let time = case.time(PathCosts::written_unasked);
            time + if case.crossed { time / CROSSED } else { 0 }
        },
    },
    Row {
        protocol: Protocol::Eager,
        applies: |case| case.is_eager(),
        cost: |case| case.time(PathCosts::at_once),
    },
    Row {
        protocol: Protocol::EagerPieces,
        applies: |case| case.is_in_pieces(),
        cost: |case| case.time(PathCosts::in_pieces),
    },
    Row {
        protocol: Protocol::CooperativeCopy,
        applies: |case| {
            case.peer.cooperative
                && case.len >= case.limits.cooperative
                && read(case)
                && case.is_direct()
        },
        cost: |case| case.time(PathCosts::read_together),
    },
    Row {
        protocol: Protocol::ReadRendezvous,
        applies: read,
        cost: |case| case.time(PathCosts::read),
    },
    Row {
        protocol: Protocol::WriteRendezvous,
        applies: write,
        cost: |case| case.time(PathCosts::written),
    },
    Row {
        protocol: Protocol::Packets,
        applies: |case| case.is_announced(),
        cost: |case| {
            let time = case.time(PathCosts::in_packets);
            time + time / SPARED
        },
    },
];

fn read(case: &Case) -> bool {
    let Some(zero_copy) = case.peer.zero_copy.filter(|zero_copy| zero_copy.read) else {
        return false;
    };
    let wanted = match zero_copy.synchronous {
        true => case.len >= case.limits.single_copy,
        false => {
            case.is_direct() && (!case.is_sender() || case.limits.rendezvous != Rendezvous::Write)
        }
    };
    wanted && case.is_announced() && (case.is_sender() || case.readable)
}

fn write(case: &Case) -> bool {
    let can_write = case
        .peer
        .zero_copy
        .is_some_and(|zero_copy| zero_copy.notified_write);
    let wanted = case.limits.rendezvous != Rendezvous::Read && (case.is_sender() || !case.readable);
    can_write && wanted && case.is_announced() && case.is_direct()
}

/// True if learned costs choose the path of this message: processors copy it to a contiguous
/// buffer.
pub(crate) fn has_copy_costs(case: &Case) -> bool {
    let synchronous = case
        .peer
        .zero_copy
        .is_some_and(|zero_copy| zero_copy.synchronous);
    let limits = case.limits;
    limits.copy_costs != CopyCostSource::Estimated
        && limits.forced.is_none()
        && synchronous
        && case.exposable
        && case.one_run[1]
        && read(case)
}

/// True if the protocol can move the message.
pub(crate) fn applies(protocol: Protocol, case: &Case) -> bool {
    let row = TABLE.iter().find(|row| row.protocol == protocol);
    row.is_some_and(|row| (row.applies)(case))
}

/// The protocol that the settings force if it applies, or the cheapest one that does. A sender
/// learns from it whether its message leaves at once.
pub(crate) fn choose(case: &Case) -> Protocol {
    cheapest(&TABLE, case)
}

/// The sender's choice among the protocols of announced messages, for a message that it announces.
pub(crate) fn rendezvous(case: &Case) -> Protocol {
    let case = Case {
        announced: true,
        ..*case
    };
    let first = TABLE.iter().position(|row| !row.protocol.is_at_once());
    cheapest(&TABLE[first.unwrap_or(0)..], &case)
}

fn cheapest(rows: &[Row], case: &Case) -> Protocol {
    let applicable = rows.iter().filter(|row| (row.applies)(case));
    let forced = case.limits.forced;
    // The row of a forced protocol has the cost `None`, which is less than any other.
    let cheapest = applicable.min_by_key(|row| match forced == Some(row.protocol) {
        true => None,
        false => Some((row.cost)(case)),
    });
    cheapest.map_or(Protocol::Packets, |row| row.protocol)
}

/// All protocols, in the order of the table.
pub(crate) fn all() -> impl Iterator<Item = Protocol> {
    TABLE.iter().map(|row| row.protocol)
}

#[cfg(test)]
pub(crate) mod tests {
    use channel::{Capabilities, End, PathCosts, ZeroCopyCapabilities};
    use proptest::prelude::*;

    use super::super::protocol::Limits;
    use super::*;

    pub(crate) const LIMITS: Limits = Limits {
        eager: None,
        pieces: 0,
        blocking_pieces: 0,
        single_copy: 128 << 10,
        cooperative: 256 << 10,
        unexpected: 16 << 20,
        rendezvous: Rendezvous::Auto,
        announces: true,
        copy_costs: CopyCostSource::Learned,
        announces_all: false,
        forced: None,
    };

    pub(crate) const SHM: Capabilities = Capabilities {
        transport: "shared memory",
        longest_packet: 448 << 10,
        piece: 16 << 10,
        pipelined: true,
        zero_copy: Some(ZeroCopyCapabilities {
            read: true,
            notified_write: false,
            acknowledged: true,
            synchronous: true,
            scattered: true,
            unattended: true,
        }),
        cooperative: true,
        push: true,
        settled: true,
        rails: 1,
        cost: PathCosts::MEMORY,
    };

    /// The capabilities of RDMA on a QDR machine.
    pub(crate) const RDMA: Capabilities = Capabilities {
        transport: "RDMA",
        longest_packet: 16 << 10,
        piece: 16 << 10,
        pipelined: false,
        zero_copy: Some(ZeroCopyCapabilities {
            read: true,
            notified_write: true,
            acknowledged: true,
            synchronous: false,
            scattered: false,
            unattended: true,
        }),
        cooperative: false,
        push: false,
        settled: true,
        rails: 1,
        cost: PathCosts {
            send_ns: 170,
            post_ns: 80,
            receive_ns: 170,
            poll_ns: 80,
            flight_ns: 800,
            copies: 1,
            copy_ps: 200,
            memory_ps: 139,
            inline: 128,
            line_ns: 55,
            fetch_ns: 630,
            store_ps: 520,
            unit: 2048,
            read_ns: 1850,
            expose_ns: 0,
            packet_bandwidth: 3_390_000_000,
            bandwidth: 3_390_000_000,
            longest: 16 << 10,
            eager: 7 << 10,
            by_processor: 0,
        },
    };

    fn software() -> Capabilities {
        let mut peer = RDMA;
        peer.cost.read_ns += 10_000;
        peer.cost.eager = RDMA.piece as u64;
        peer
    }

    fn without_zero_copy(peer: Capabilities) -> Capabilities {
        Capabilities {
            zero_copy: None,
            cooperative: false,
            ..peer
        }
    }

    #[test]
    fn a_blocking_send_may_have_a_longer_limit_of_pieces() {
        let limits = Limits {
            eager: Some(17_000),
            pieces: 17_000,
            blocking_pieces: 256 << 10,
            ..LIMITS
        };
        let of = |blocking, len| {
            choose(&Case {
                blocking,
                ..Case::of_sender(len, &RDMA, &limits)
            })
        };
        use Protocol::*;
        for (len, nonblocking, blocking) in [
            (16 << 10, Eager, Eager),
            (17_000, EagerPieces, EagerPieces),
            (17_001, ReadRendezvous, EagerPieces),
            (256 << 10, ReadRendezvous, EagerPieces),
            ((256 << 10) + 1, ReadRendezvous, ReadRendezvous),
        ] {
            assert_eq!(
                (of(false, len), of(true, len)),
                (nonblocking, blocking),
                "{len}"
            );
        }
    }

    #[test]
    fn lengths_decide_at_the_sender() {
        let of = |peer: &Capabilities, len| choose(&Case::of_sender(len, peer, &LIMITS));
        use Protocol::*;
        for (len, shm, rdma, soft) in [
            (0, Eager, Eager, Eager),
            (8, Eager, Eager, Eager),
            (4 << 10, Eager, Eager, Eager),
            (16 << 10, Eager, ReadRendezvous, Eager),
            ((16 << 10) + 1, EagerPieces, ReadRendezvous, WriteRendezvous),
            (128 << 10, EagerPieces, ReadRendezvous, WriteRendezvous),
            (
                (128 << 10) + 1,
                ReadRendezvous,
                ReadRendezvous,
                WriteRendezvous,
            ),
            (256 << 10, CooperativeCopy, ReadRendezvous, WriteRendezvous),
            (1 << 30, CooperativeCopy, ReadRendezvous, WriteRendezvous),
        ] {
            assert_eq!(of(&SHM, len), shm, "{len}");
            assert_eq!(of(&RDMA, len), rdma, "{len}");
            assert_eq!(of(&software(), len), soft, "{len}");
        }
        assert_eq!(of(&without_zero_copy(RDMA), 1 << 20), Packets);
    }

    #[test]
    fn what_the_receiver_holds_decides_there() {
        let case = |peer, readable, one_run| Case {
            end: End::Receiver,
            readable,
            one_run,
            ..Case::of_sender(1 << 20, peer, &LIMITS)
        };
        use Protocol::*;
        assert_eq!(choose(&case(&RDMA, true, [true; 2])), ReadRendezvous);
        assert_eq!(choose(&case(&RDMA, false, [true; 2])), WriteRendezvous);
        assert_eq!(choose(&case(&RDMA, false, [false, true])), Packets);
        assert_eq!(choose(&case(&RDMA, true, [true, false])), Packets);
        assert_eq!(choose(&case(&SHM, true, [true; 2])), CooperativeCopy);
        assert_eq!(choose(&case(&SHM, true, [true, false])), ReadRendezvous);
        assert_eq!(choose(&case(&SHM, true, [false, true])), ReadRendezvous);
        assert_eq!(choose(&case(&SHM, false, [true; 2])), Packets);
        assert_eq!(choose(&case(&SHM, false, [false, true])), Packets);
        let refused = Case {
            exposable: false,
            ..case(&RDMA, true, [true; 2])
        };
        assert_eq!(choose(&refused), Packets);
    }

    #[test]
    fn settings_override_costs() {
        for (rendezvous, sender) in [
            (Rendezvous::Read, Protocol::ReadRendezvous),
            (Rendezvous::Write, Protocol::WriteRendezvous),
        ] {
            let limits = Limits {
                rendezvous,
                ..LIMITS
            };
            for peer in [RDMA, software()] {
                assert_eq!(choose(&Case::of_sender(1 << 20, &peer, &limits)), sender);
            }
        }
        let rtr = Case {
            has_rtr: true,
            ..Case::of_sender(1 << 20, &RDMA, &LIMITS)
        };
        assert_eq!(choose(&rtr), Protocol::ReadyToReceive);
        let crossed = |len| Case {
            crossed: true,
            has_rtr: true,
            ..Case::of_sender(len, &RDMA, &LIMITS)
        };
        assert_eq!(choose(&crossed(1 << 20)), Protocol::ReadRendezvous);
        let short = choose(&crossed(8 << 10));
        assert_eq!(short, Protocol::ReadyToReceive, "the answer takes longer");
        let full = Case {
            headers_only: true,
            ..Case::of_sender(8, &SHM, &LIMITS)
        };
        assert_eq!(
            choose(&full),
            Protocol::Packets,
            "even a short message is announced"
        );
    }

    proptest! {
        /// Whatever the settings, each kind of message has a protocol that its peers can carry out,
        /// and the limits hold.
        #[test]
        fn every_message_has_a_protocol(
            (len, eager, single_copy, cooperative) in (0usize..1 << 24, proptest::option::of(0usize..1 << 22), 0usize..1 << 22, 0usize..1 << 22),
            (synchronous, headers_only, sender) in any::<(bool, bool, bool)>(),
            (readable, exposable, source, target) in any::<(bool, bool, bool, bool)>(),
            which in 0usize..4,
        ) {
            let peers = [SHM, RDMA, software(), without_zero_copy(SHM)];
            let limits = Limits { eager, single_copy, cooperative, ..LIMITS };
            let case = Case {
                end: if sender { End::Sender } else { End::Receiver },
                len, synchronous, blocking: false, headers_only, has_rtr: false, crossed: false, announced: false,
                one_run: [source, target], readable, exposable,
                peer: &peers[which], limits: &limits,
            };
            let chosen = choose(&case);
            let row = TABLE.iter().find(|row| row.protocol == chosen).unwrap();
            prop_assert!((row.applies)(&case));
            let at_once = matches!(chosen, Protocol::Eager | Protocol::EagerPieces);
            let most = limits.eager_to(case.peer);
            prop_assert!(!at_once || sender && len <= most && !headers_only);
            prop_assert!(sender || !at_once);
            // A message that is announced by choice goes as one that its peer has no room for.
            let full = Case { headers_only: true, ..case };
            prop_assert!(!rendezvous(&case).is_at_once());
            prop_assert!(!sender || rendezvous(&case) == choose(&full));
        }
    }
}
