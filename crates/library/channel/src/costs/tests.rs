use proptest::prelude::*;

use super::*;

/// A path over QDR between hosts of 2009, in round numbers.
const QDR: PathCosts = PathCosts {
    send_ns: 170,
    post_ns: 80,
    receive_ns: 170,
    poll_ns: 80,
    flight_ns: 800,
    copy_ps: 200,
    memory_ps: 139,
    inline: 128,
    line_ns: 55,
    fetch_ns: 630,
    store_ps: 520,
    unit: 2048,
    read_ns: 1850,
    packet_bandwidth: 3_390_000_000,
    bandwidth: 3_390_000_000,
    by_processor: 0,
    ..PathCosts::MEMORY
};

#[test]
fn words_are_the_costs() {
    assert_eq!(PathCosts::of_words(QDR.words()), QDR);
    // A better cost has a smaller integer.
    let better = PathCosts {
        bandwidth: QDR.bandwidth + 1,
        ..QDR
    };
    let least = QDR.words().into_iter().zip(better.words());
    assert!(least.into_iter().all(|(worse, better)| worse >= better));
}

#[test]
fn messages_leave_at_once_while_both_ranks_go_on_no_later_than_after_an_announcement() {
    let path = QDR.with_limit(16 << 10, true);
    assert!((6 << 10..9 << 10).contains(&path.eager), "{}", path.eager);
    for bytes in 0..=16 << 10 {
        let (at_once, announced) = (path.at_once(bytes), path.announced(bytes));
        let is_faster = at_once.both() <= announced.both();
        assert_eq!(is_faster, bytes <= path.eager, "{bytes}");
    }
    // Without transfers only the longest packet limits eager messages.
    assert_eq!(QDR.with_limit(16 << 10, false).eager, 16 << 10);
    assert_eq!(QDR.with_limit(4 << 10, true).eager, 4 << 10);
}

/// The greatest difference of two estimates by rounding, in nanoseconds.
const ROUNDED: u64 = 4;

proptest! {
    /// One length separates messages that are sent at once from announced ones, whatever the costs.
    #[test]
    fn the_protocol_with_the_least_estimate_changes_once(
        (send_ns, post_ns, flight_ns) in (50u64..800, 30u64..400, 300u64..9000),
        (copy_ps, memory_ps, store_ps) in (50u64..700, 10u64..500, 0u64..1200),
        (fetch_ns, line_ns, trip) in (0u64..900, 0u64..60, 1u64..4),
        (bandwidth, rails, packet) in (400u64..60_000, 1u64..5, 1u64 << 10..17 << 10),
    ) {
        let path = PathCosts {
            send_ns, post_ns, flight_ns, copy_ps, memory_ps, store_ps, fetch_ns, line_ns,
            read_ns: (1 + trip) * flight_ns,
            packet_bandwidth: bandwidth * 1_000_000,
            bandwidth: rails * bandwidth * 1_000_000,
            ..QDR
        };
        let path = path.with_limit(packet as usize, true);
        for bytes in 0..=packet {
            let (at_once, announced) = (path.at_once(bytes), path.announced(bytes));
            let is_faster = at_once.both() <= announced.both();
            // Each step is rounded to whole nanoseconds, so the estimates may cross more than once.
            let is_tie = at_once.both().abs_diff(announced.both()) <= ROUNDED;
            prop_assert!(is_tie || is_faster == (bytes <= path.eager), "{}", bytes);
        }
    }
}

#[test]
fn the_limit_does_not_depend_on_the_number_of_rails() {
    let rail = Attributes {
        name: "rail".into(),
        mtu: 2048,
        inline: 128,
        longest: 1 << 30,
        placement: device::Placement::Ordered,
        immediates: true,
        datagrams: true,
        answered: true,
        by_processor: false,
        polled: false,
        resets: true,
        link_layer: device::LinkLayer::InfiniBand,
        subnet: 0,
        bandwidth: QDR.bandwidth,
        latency_ns: 960,
        request: device::RequestCosts {
            post_ns: 80,
            poll_ns: 80,
            line_ns: 55,
            fetch_ns: 630,
            store_ps: 520,
            read_ns: 1850,
        },
        card: 0,
        domain: 0,
    };
    // A rail at the other processor socket.
    let far = Attributes {
        latency_ns: rail.latency_ns + 160,
        request: device::RequestCosts {
            fetch_ns: rail.request.fetch_ns + 160,
            read_ns: rail.request.read_ns + 480,
            ..rail.request
        },
        ..rail.clone()
    };
    let limit = |rails: &[Attributes]| {
        let host = HostCosts {
            copy_ps: QDR.copy_ps,
            memory_ps: QDR.memory_ps,
            ..HostCosts::USUAL
        };
        let path = PathCosts::over(rails, &host, 0);
        path.with_limit(16 << 10, true).eager
    };
    let one = limit(std::slice::from_ref(&rail));
    assert!(one < 16 << 10);
    assert_eq!(limit(&[rail.clone(), far.clone()]), one);
    assert_eq!(limit(&[far.clone(), rail.clone(), far.clone(), far]), one);
}

#[test]
fn where_answers_to_reads_are_late_announced_messages_are_written() {
    let slow = PathCosts {
        read_ns: QDR.read_ns + 10_000,
        ..QDR
    };
    assert_eq!(slow.announced(1 << 20), slow.written(1 << 20));
    assert_eq!(QDR.announced(1 << 20), QDR.read(1 << 20));
    // An announced message takes longer here, so more messages are sent at once.
    let limit = |path: PathCosts| path.with_limit(16 << 10, true).eager;
    assert!(limit(slow) > limit(QDR));
}

#[test]
fn only_long_transfers_use_all_rails() {
    let two = PathCosts {
        bandwidth: 2 * QDR.bandwidth,
        ..QDR
    };
    assert_eq!(two.transfer(15 << 10), QDR.transfer(15 << 10));
    assert!(two.transfer(1 << 20) < QDR.transfer(1 << 20) * 51 / 100);
}

/// A long message begins to move once it is announced and its receive is called, whichever comes
/// last.
#[test]
fn a_long_message_moves_once_both_ends_are_ready() {
    let costs = MessageCosts {
        is_short: false,
        sending: 1,
        flight: 20,
        receiving: 300,
        moving: 4000,
        report: 50000,
    };
    assert_eq!(costs.taken(1000, 0), 1020 + 4300);
    assert_eq!(costs.taken(1000, 7000), 7000 + 4300);
}
