//! Each row of the table is of use: a search over sizes, ranks, hosts and networks finds a call for
//! which it is chosen by default.

use super::*;
use crate::shape::Spread;
use channel::PathCosts;

/// The costs of a path over a device: times of flight, read, post and poll in nanoseconds; of
/// copies, memory and stores in picoseconds per byte; the bandwidth in megabytes per second.
const fn device(times: [u64; 4], per_byte: [u64; 3], mb_per_s: u64) -> PathCosts {
    let [flight_ns, read_ns, post_ns, poll_ns] = times;
    let [copy_ps, memory_ps, store_ps] = per_byte;
    PathCosts {
        send_ns: 2 * copy_ps / 3,
        receive_ns: 2 * copy_ps / 3,
        post_ns,
        poll_ns,
        flight_ns,
        read_ns,
        copy_ps,
        memory_ps,
        store_ps,
        inline: 128,
        line_ns: 20,
        fetch_ns: 300,
        unit: 2048,
        expose_ns: 1000,
        packet_bandwidth: mb_per_s * 1_000_000,
        bandwidth: mb_per_s * 1_000_000,
        longest: 16 << 10,
        eager: 8 << 10,
        by_processor: 0,
        ..PathCosts::MEMORY
    }
}

/// SDR of 2005, QDR of 2009, NDR of 2023, and TCP over an Ethernet of 10 Gbit/s.
const PATHS: [PathCosts; 4] = [
    device([3000, 5600, 250, 180], [700, 480, 1100], 960),
    device([800, 1850, 80, 80], [200, 139, 520], 3390),
    device([500, 1400, 40, 40], [83, 10, 30], 48_000),
    device([9000, 20_000, 2500, 1000], [83, 10, 0], 1150),
];

/// Networks whose hosts share memory, and networks whose ranks always reach each other through a
/// device.
fn networks() -> Vec<Network> {
    let of = |across: PathCosts| {
        let loopback = PathCosts {
            flight_ns: across.flight_ns / 2,
            ..across
        };
        let within = |inside, memory| Network {
            across,
            inside,
            memory,
        };
        [within(PathCosts::MEMORY, true), within(loopback, false)]
    };
    PATHS.into_iter().flat_map(of).collect()
}

/// Distributions of some numbers of ranks over hosts.
fn spreads() -> Vec<Spread> {
    let mut all = Vec::new();
    for ranks in [2usize, 3, 4, 5, 8, 16, 24, 64, 512] {
        all.push(Spread::one_host(ranks));
        all.push(Spread::leaders(ranks, 1));
    }
    for (hosts, least, most) in [
        (2, 2, 2),
        (2, 4, 4),
        (4, 4, 4),
        (3, 4, 5),
        (8, 1, 2),
        (64, 8, 8),
    ] {
        for contiguous in [false, true] {
            all.push(Spread {
                hosts,
                least,
                most,
                contiguous,
                sharing: 1,
            });
        }
    }
    all
}

fn ranks(spread: &Spread) -> usize {
    match spread.least == spread.most {
        true => spread.hosts * spread.most,
        false => spread.hosts * spread.most - 1,
    }
}

/// The calls of all sizes, distributions, networks and kinds of arguments.
fn cases() -> impl Iterator<Item = Case> {
    let networks = networks();
    let placed = spreads().into_iter().flat_map(move |spread| {
        let networks = networks.clone().into_iter();
        networks.map(move |network| (spread, network))
    });
    let kinds = [(true, true), (true, false), (false, true), (false, false)];
    placed.flat_map(move |(spread, network)| {
        let sizes = (0..=11).map(|power| 1usize << (2 * power));
        sizes.flat_map(move |bytes| {
            kinds.into_iter().flat_map(move |(even, commutative)| {
                let case = Case {
                    bytes,
                    commutative,
                    even,
                    spread,
                    network,
                    ..Case::usual(bytes, ranks(&spread))
                };
                // In memory also: with a buffer, with direct copies, with vectors that are not
                // published.
                let shared = |direct, published| Case {
                    shared: true,
                    direct,
                    published,
                    ..case
                };
                let others = [
                    shared(false, bytes),
                    shared(true, bytes),
                    shared(true, usize::MAX),
                ];
                let others = others.into_iter().filter(move |_| case.is_in_memory());
                std::iter::once(case).chain(others)
            })
        })
    })
}

#[test]
fn every_row_is_chosen_by_default_somewhere() {
    let table = AlgorithmTable::new(&AlgorithmChoices::default(), TreeArity::AUTO).unwrap();
    let mut left: Vec<(Collective, Algorithm)> = Vec::new();
    for &of in Collective::ALL {
        left.extend(rows(of).iter().map(|row| (of, row.algorithm)));
    }
    left.dedup();
    for case in cases() {
        if left.is_empty() {
            break;
        }
        for &of in Collective::ALL {
            if left.iter().any(|(missing, _)| *missing == of) {
                let chosen = table.algorithm(of, case);
                left.retain(|missing| *missing != (of, chosen));
            }
        }
    }
    assert!(left.is_empty(), "never chosen by default: {left:?}");
}
