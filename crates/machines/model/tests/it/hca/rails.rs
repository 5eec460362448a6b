//! Rails that differ between hosts or from each other, and ports that share a card.

use crate::common::*;
use device::*;
use fabric::catalogue::Catalogue;
use fabric::limits::{limits, one_way};
use fabric::{Bytes, Costs, System};
use model::{Faults, ModelNode};

const MIB: usize = 1 << 20;

/// Connects two ranks on hosts 0 and 1 over these pairs of rails; rank 0 writes long messages over
/// all of them at once. Returns the rate of each pair, in bytes per second.
fn streams(system: &System, pairs: &[(usize, usize)]) -> Vec<f64> {
    let pairs = pairs.to_vec();
    play(
        system,
        &[0, 1],
        Faults::default(),
        1,
        move |mut node, rank| {
            let mut ends = Vec::new();
            for &(near, far) in &pairs {
                let wish = Wish {
                    rail: if rank == 0 { near } else { far },
                    bytes: MIB,
                    ..Wish::default()
                };
                ends.push(connect(&mut node, 1 - rank as usize, &wish));
            }
            let rates = match rank {
                0 => write_all(&mut node, &ends),
                _ => Vec::new(),
            };
            synchronise(&mut node, 1 - rank as usize);
            rates
        },
    )
    .swap_remove(0)
}

fn write_all(node: &mut ModelNode, ends: &[End]) -> Vec<f64> {
    const COUNT: u64 = 16;
    let before = node.turn().now();
    for id in 0..COUNT {
        for end in ends {
            let to = end.remote(0);
            let write = Operation::Write {
                to,
                immediate: None,
            };
            end.post(node, id, write, &[end.slice(0, MIB)], false, true)
                .unwrap();
        }
    }
    let mut done = vec![(0, before); ends.len()];
    while done.iter().any(|(count, _)| *count < COUNT) {
        let mut any = false;
        for (end, (count, at)) in ends.iter().zip(&mut done) {
            let found = end.poll(node);
            assert!(found.iter().all(|one| one.status == Status::Success));
            *count += found.len() as u64;
            if !found.is_empty() {
                (*at, any) = (node.turn().now(), true);
            }
        }
        if !any {
            node.wait(u64::MAX).unwrap();
        }
    }
    let rate = |(count, at): (u64, u64)| (count * MIB as u64) as f64 / (at - before) as f64 * 1e12;
    done.into_iter().map(rate).collect()
}

/// The limit of long writes on a rail, in bytes per second.
fn limit(system: &System, rail: u32) -> f64 {
    let limits = limits(&Costs::of(system, rail), Bytes(MIB as u64));
    one_way(&limits).unwrap().one_way.as_mb_per_sec() * 1e6
}

fn near(rate: f64, wanted: f64) -> bool {
    (rate / wanted - 1.0).abs() < 0.03
}

#[test]
fn two_ports_of_a_card_carry_together_what_its_slot_carries() {
    for name in ["qdr-2port", "fdr-2port"] {
        let (system, alone) = (system(name), limit(&system(name), 0));
        let rates = streams(&system, &[(0, 0), (1, 1)]);
        let sum: f64 = rates.iter().sum();
        assert!(near(sum, alone), "{name}: {rates:?} of {alone}");
        assert!(near(rates[0], rates[1]), "{name}: {rates:?}");
        assert!(near(streams(&system, &[(1, 1)])[0], alone), "{name}");
    }
    // Two cards carry twice as much.
    let rates = streams(&system("2xqdr"), &[(0, 0), (1, 1)]);
    let sum: f64 = rates.iter().sum();
    assert!(near(sum, 2.0 * limit(&system("2xqdr"), 0)), "{rates:?}");
}

#[test]
fn unequal_rails_carry_what_each_can() {
    for (name, slow) in [("2x-unequal", 1), ("2x-unequal-slow-first", 0)] {
        let system = system(name);
        let rates = streams(&system, &[(0, 0), (1, 1)]);
        for (rail, rate) in rates.iter().enumerate() {
            let alone = limit(&system, rail as u32);
            assert!(near(*rate, alone), "{name}, rail {rail}: {rate} of {alone}");
        }
        let ratio = rates[1 - slow] / rates[slow];
        assert!((3.9..4.1).contains(&ratio), "{name}: {rates:?}");
        // A fast port that sends to a slow one reaches the rate of the slow one.
        let crossed = streams(&system, &[(1 - slow, slow)])[0];
        assert!(
            near(crossed, limit(&system, slow as u32)),
            "{name}: {crossed}"
        );
    }
}

#[test]
fn a_12x_link_carries_three_times_as_much() {
    let wide = limit(&system("12x-qdr"), 0);
    let rate = streams(&system("12x-qdr"), &[(0, 0)])[0];
    assert!(near(rate, wide), "{rate} of {wide}");
    // The 4X link is on a slot that does not limit it.
    let narrow = limit(&system("2x-unequal"), 0);
    assert!((2.9..3.1).contains(&(wide / narrow)), "{wide} {narrow}");
}

#[test]
fn eight_rails_carry_eight_times_as_much_as_one() {
    const ALL: &[(usize, usize)] = &[
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
        (5, 5),
        (6, 6),
        (7, 7),
    ];
    let system = system("8xqdr");
    let sum: f64 = streams(&system, ALL).iter().sum();
    let alone = limit(&system, 0);
    assert!(sum > 0.95 * 8.0 * alone, "{sum} of 8 x {alone}");
}

#[test]
fn hosts_have_their_own_rails() {
    let mut catalogue = Catalogue::builtin();
    let text = "[system.mine]\nfrom = \"2x-unequal\"\nhosts = [{ host = 1, rails = [1] }]\n";
    catalogue.add("mine.toml", text).unwrap();
    let system = catalogue.system("mine").unwrap();
    let seen = play(&system, &[0, 1, 2], Faults::default(), 1, |mut node, _| {
        let rails = 0..node.rails();
        rails
            .map(|rail| node.rail(rail).attributes().bandwidth)
            .collect::<Vec<_>>()
    });
    let [fast, slow] = [0, 1].map(|rail| limit(&system, rail) as u64);
    assert!(fast > 3 * slow);
    let about = |found: &[u64], wanted: &[u64]| {
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| a.abs_diff(*b) < 9)
    };
    assert!(about(&seen[0], &[fast, slow]), "{seen:?}");
    assert!(about(&seen[1], &[slow]), "{seen:?}");
    assert!(about(&seen[2], &[fast, slow]), "{seen:?}");
    // Rail 0 of host 1 is the system's rail 1, and the first rail of host 0 reaches it.
    let rate = streams(&system, &[(0, 0)])[0];
    assert!(near(rate, limit(&system, 1)), "{rate}");
}

#[test]
fn attributes_say_what_the_catalogue_says() {
    let of = |name: &str| {
        play(&system(name), &[0], Faults::default(), 1, |mut node, _| {
            let rails = 0..node.rails();
            rails
                .map(|rail| node.rail(rail).attributes().clone())
                .collect::<Vec<_>>()
        })
        .swap_remove(0)
    };
    let places = |name: &str| {
        let all = of(name);
        all.iter()
            .map(|one| (one.card, one.domain))
            .collect::<Vec<_>>()
    };
    assert_eq!(places("2xqdr"), [(0, 0), (1, 1)]);
    assert_eq!(places("qdr-2port"), [(0, 0), (0, 0)]);
    let qdr = of("2xqdr");
    assert_eq!(qdr[0].bandwidth / 1_000_000, 3390);
    // The post of eight bytes, their path, and a poll take 963.715 ns; the other rail adds two
    // crossings of sockets.
    assert_eq!([qdr[0].latency_ns, qdr[1].latency_ns], [964, 1124]);
    let unequal = of("2x-unequal");
    assert!(unequal[0].bandwidth > 3 * unequal[1].bandwidth);
    assert!(unequal[0].latency_ns < unequal[1].latency_ns);
}

/// Registers memory on rail 0 and uses its key on rail 1, at both ends; returns the status of a
/// write.
fn with_the_key_of_the_other_rail(name: &str) -> Status {
    play(
        &system(name),
        &[0, 1],
        Faults::default(),
        1,
        |mut node, rank| {
            let peer = 1 - rank as usize;
            let first = connect(&mut node, peer, &Wish::default());
            let wish = Wish {
                rail: 1,
                ..Wish::default()
            };
            let second = connect(&mut node, peer, &wish);
            let mut status = Status::Success;
            if rank == 0 {
                let to = first.remote(0);
                let write = Operation::Write {
                    to,
                    immediate: None,
                };
                second
                    .post(&mut node, 1, write, &[first.slice(0, 64)], false, true)
                    .unwrap();
                status = second.completion(&mut node).status;
            }
            synchronise(&mut node, peer);
            status
        },
    )
    .swap_remove(0)
}

#[test]
fn ports_of_a_card_share_registrations_and_two_cards_do_not() {
    let status = with_the_key_of_the_other_rail("qdr-2port");
    assert_eq!(status, Status::Success);
    let status = with_the_key_of_the_other_rail("2xqdr");
    assert_eq!(status, Status::LocalProtection);
    // A region can be deregistered once, by any port of its protection domain.
    play(
        &system("qdr-2port"),
        &[0],
        Faults::default(),
        1,
        |mut node, _| {
            let mut memory = vec![0u8; 4096];
            // SAFETY: the memory stays until the end of the test, and nobody writes to it.
            let region = unsafe {
                let device = node.rail(0);
                device.register(memory.as_mut_ptr(), memory.len(), Access::ALL)
            };
            let region = region.unwrap();
            node.rail(1).deregister(region).unwrap();
            assert!(node.rail(0).deregister(region).is_err());
        },
    );
}

#[test]
fn ports_of_two_subnets_do_not_reach_each_other() {
    let mut catalogue = Catalogue::builtin();
    let text = "[system.mine]\nfrom = \"qdr\"\nrails = [{ subnet = 7 }, { subnet = 8 }]\n";
    catalogue.add("mine.toml", text).unwrap();
    let system = catalogue.system("mine").unwrap();
    let statuses = play(&system, &[0, 1], Faults::default(), 1, |mut node, rank| {
        let subnets = [0, 1].map(|rail| node.rail(rail).attributes().subnet);
        assert_eq!(subnets, [7, 8]);
        let mut statuses = Vec::new();
        for (near, far) in [(0, 0), (1, 1), (0, 1)] {
            let wish = Wish {
                rail: if rank == 0 { near } else { far },
                ..Wish::default()
            };
            let end = connect(&mut node, 1 - rank as usize, &wish);
            if rank == 0 {
                end.write_signaled(&mut node, 0, 8, true, true);
                statuses.push(end.completion(&mut node).status);
            }
            synchronise(&mut node, 1 - rank as usize);
        }
        statuses
    });
    let good = Status::Success;
    assert_eq!(statuses[0], [good, good, Status::RetryExceeded]);
}
