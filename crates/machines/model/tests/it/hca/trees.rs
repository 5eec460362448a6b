//! Networks: each link on a route can be contended.

use crate::common::*;
use device::*;
use fabric::catalogue::Catalogue;
use fabric::network::counts::Counts;
use fabric::{Bytes, Oversubscription, System, Topology};
use model::{Faults, Resource, Usage};

const LEN: usize = 256 << 10;
const COUNT: u64 = 8;

/// The machine `qdr` with 8-port switches, so that a leaf has four hosts.
fn small_switches(nodes: u32) -> System {
    let mut system = system("qdr");
    system.switch.ports = 8;
    system.with_nodes(nodes).unwrap()
}

/// Runs streams of writes between pairs of hosts at once; returns the rate of each pair, in bytes
/// per second.
fn streams(system: &System, pairs: &[(u32, u32)]) -> Vec<f64> {
    let ran = run_streams(system, pairs).into_iter();
    ran.map(|(rate, _)| rate).collect()
}

/// Like [`streams`], with the uses of resources at the end of each stream.
fn run_streams(system: &System, pairs: &[(u32, u32)]) -> Vec<(f64, Vec<Usage>)> {
    let count = pairs.len() as u32;
    let hosts = pairs.iter().map(|pair| pair.0);
    let hosts: Vec<u32> = hosts.chain(pairs.iter().map(|pair| pair.1)).collect();
    let rates = play(
        system,
        &hosts,
        Faults::default(),
        1,
        move |mut node, rank| {
            let peer = ((rank + count) % (2 * count)) as usize;
            let wish = Wish {
                bytes: LEN,
                ..Wish::default()
            };
            let end = connect(&mut node, peer, &wish);
            if rank >= count {
                receive_oob(&mut node);
                return (0.0, Vec::new());
            }
            let before = node.turn().now();
            let write = Operation::Write {
                to: end.remote(0),
                immediate: None,
            };
            for id in 0..COUNT {
                end.post(&mut node, id, write, &[end.slice(0, LEN)], false, true)
                    .unwrap();
            }
            for _ in 0..COUNT {
                assert_eq!(end.completion(&mut node).status, Status::Success);
            }
            let time = node.turn().now() - before;
            node.oob_send(peer, b"done").unwrap();
            let uses = node.turn().with(|machine, _| machine.usage());
            ((LEN as u64 * COUNT) as f64 / time as f64 * 1e12, uses)
        },
    );
    rates.into_iter().take(pairs.len()).collect()
}

/// The rate of each stream, divided by that of a single stream.
fn shares(system: &System, pairs: &[(u32, u32)]) -> Vec<f64> {
    let alone = streams(system, &[(0, system.nodes - 1)])[0];
    let rates = streams(system, pairs).into_iter();
    rates.map(|rate| rate / alone).collect()
}

#[test]
fn every_shift_reaches_the_rate_of_a_single_stream() {
    let system = small_switches(16);
    for shift in 1..16 {
        let pairs: Vec<(u32, u32)> = (0..16).map(|from| (from, (from + shift) % 16)).collect();
        let shares = shares(&system, &pairs);
        assert!(
            shares.iter().all(|&share| (0.95..1.01).contains(&share)),
            "shift {shift}: {shares:?}"
        );
    }
}

#[test]
fn flows_whose_destinations_have_one_place_in_their_leaves_share_a_link_up() {
    let system = small_switches(16);
    // The link carries 4 GB/s, and the slot of a host 3.39 GB/s.
    let same = shares(&system, &[(0, 4), (1, 8), (2, 12)]);
    assert!(
        same.iter().all(|&share| (0.33..0.45).contains(&share)),
        "{same:?}"
    );
    let other = shares(&system, &[(0, 4), (1, 9), (2, 14)]);
    assert!(other.iter().all(|&share| share > 0.97), "{other:?}");
    // Each link down belongs to one host.
    let into_one_leaf = shares(&system, &[(0, 12), (4, 13), (8, 14)]);
    assert!(
        into_one_leaf.iter().all(|&share| share > 0.97),
        "{into_one_leaf:?}"
    );
}

#[test]
fn the_use_of_a_link_between_switches_is_the_time_of_its_packets() {
    let system = small_switches(16);
    let ran = run_streams(&system, &[(0, 4), (1, 8)]);
    let between = |usage: &Usage| matches!(usage.resource, Resource::Between(0, _));
    // The stream that ends later sees the uses after all bytes have passed.
    let busy = ran.iter().map(|(_, uses)| {
        let links = uses.iter().filter(|usage| between(usage));
        links.map(|usage| usage.busy).max().unwrap()
    });
    let busiest = busy.max().unwrap();
    let rate = (system.switch.link.data() * system.switch.width).as_mb_per_sec();
    let both = (2 * LEN as u64 * COUNT) as f64 / rate * 1e6;
    let share = busiest as f64 / both;
    assert!((1.0..1.05).contains(&share), "{share}");
}

#[test]
fn oversubscribed_leaves_share_their_links_up() {
    let mut system = small_switches(16);
    system.oversubscription = Oversubscription(3);
    // A leaf has six hosts and two links up: hosts 0 to 5 send to the second leaf.
    let pairs: Vec<(u32, u32)> = (0..6).map(|from| (from, from + 6)).collect();
    let shares = shares(&system, &pairs);
    assert!(
        shares.iter().all(|&share| (0.33..0.45).contains(&share)),
        "{shares:?}"
    );
}

#[test]
fn three_levels_are_contended_at_each() {
    let system = small_switches(128);
    // Groups below the top have 16 hosts; the destinations are the first hosts of three groups.
    let same = shares(&system, &[(0, 16), (1, 32), (4, 48)]);
    assert!(same[0] < 0.7 && same[1] < 0.7, "{same:?}");
    let link = system.switch.link.data() * system.switch.width;
    let most = link.as_mb_per_sec() * 1e6;
    let sum: f64 = streams(&system, &[(0, 16), (1, 32)]).iter().sum();
    assert!(sum < most && sum > 0.9 * most, "{sum:.3e} of {most:.3e}");
    assert!(system.hca.mtu <= Bytes(4096));
}

#[test]
fn a_given_number_of_switches_stands_for_a_network_without_contention() {
    let mut system = small_switches(16);
    system.hops = Some(3);
    let same = shares(&system, &[(0, 4), (1, 8), (2, 12)]);
    assert!(same.iter().all(|&share| share > 0.97), "{same:?}");
}

#[test]
fn groups_of_a_dragonfly_share_their_global_link() {
    let mut system = small_switches(72);
    system.topology = Topology::Dragonfly;
    let system = system.with_nodes(72).unwrap();
    // A group has eight hosts, two on each switch; each pair of groups has one link.
    let same = shares(&system, &[(0, 8), (2, 10), (4, 12)]);
    assert!(
        same.iter().all(|&share| (0.33..0.45).contains(&share)),
        "{same:?}"
    );
    let other = shares(&system, &[(0, 8), (2, 16), (4, 24)]);
    assert!(other.iter().all(|&share| share > 0.97), "{other:?}");
    let inside = shares(&system, &[(0, 2), (2, 4), (4, 0)]);
    assert!(inside.iter().all(|&share| share > 0.97), "{inside:?}");
}

#[test]
fn a_tree_with_the_levels_of_the_smallest_one_takes_its_times() {
    let smallest = small_switches(16);
    let mut levels = smallest;
    levels.switch_hosts = Some(4);
    levels.dimensions = Counts::of(&[4]);
    let levels = levels.with_nodes(16).unwrap();
    for pairs in [&[(0, 4), (1, 8), (2, 12)][..], &[(0, 12), (4, 13), (8, 14)]] {
        assert_eq!(streams(&smallest, pairs), streams(&levels, pairs));
    }
    // With one link up, streams out of a leaf share it.
    let mut narrow = levels;
    narrow.cables = Counts::of(&[1]);
    let shares = shares(&narrow, &[(0, 4), (1, 9), (2, 14)]);
    assert!(
        shares.iter().all(|&share| (0.33..0.45).contains(&share)),
        "{shares:?}"
    );
}

#[test]
fn streams_share_the_links_of_a_graph_that_its_routes_share() {
    const CLUSTER: &str = include_str!("../../../../../../examples/networks/cluster.toml");
    const CABLES: &str = include_str!("../../../../../../examples/networks/cluster.txt");
    const ROUTES: &str = include_str!("../../../../../../examples/networks/cluster-routes.txt");
    let mut catalogue = Catalogue::builtin();
    let open = |name: &str| {
        let text = if name == "cluster.txt" {
            CABLES
        } else {
            ROUTES
        };
        Ok((name.to_owned(), text.to_owned()))
    };
    catalogue.add_with("mine.toml", CLUSTER, &open).unwrap();
    let [all, one] = ["cluster", "one-spine"].map(|name| catalogue.system(name).unwrap());
    let pairs = [(0, 4), (1, 5), (2, 10), (3, 11)];
    // Four streams have a link up each, and by one spine two links for all.
    let spread = shares(&all, &pairs);
    assert!(spread.iter().all(|&share| share > 0.95), "{spread:?}");
    let shared = shares(&one, &pairs);
    assert!(
        shared.iter().all(|&share| (0.45..0.6).contains(&share)),
        "{shared:?}"
    );
}
