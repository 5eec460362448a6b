//! Rails of two kinds side by side: rail 0 is a strict device, as RDMA devices are, rail 1 is TCP.
//! The promises of a transport hold over both, and over either while the other one fails.

use knobs::RailPolicy;
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpStream};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use device::{HostDevice, LinkLayer, Placement};
use host_node::{Board, HostNode};
use secret::Secret;
use tcp::{Port, TcpDevice};
use testdevice::strict::{self, Cables, Cut, RailSetup, Setup};

use super::failover_tests::{Pair, Random};
use super::rail_tests::POLICIES;
use super::*;
use crate::suite;

/// The acknowledgement timeout of the strict devices, in nanoseconds.
const TIMEOUT: u64 = 300_000;
/// A time in which every request that a fault has hit fails or arrives.
const SETTLING: Duration = Duration::from_nanos(3 * TIMEOUT);
/// The longest time until a rail that works again carries messages.
const PATIENCE: Duration = Duration::from_secs(20);

/// The properties of the strict rail: those of RoCE, with this placement.
fn setup(placement: Placement, seed: u64) -> Setup {
    let usual = Setup {
        placement,
        timeout_ns: TIMEOUT,
        delays: true,
        seed,
        ..Setup::default()
    };
    let roce = RailSetup {
        link_layer: LinkLayer::Ethernet,
        // The subnet of TCP's rail: only the technology tells them apart.
        subnet: Port::loopback(Ipv4Addr::LOCALHOST.into())
            .attributes()
            .subnet,
        ..usual.of_rail(0)
    };
    Setup {
        of_rails: vec![roce],
        ..usual
    }
}

/// Ranks with both rails. The TCP rail uses the address `ip`.
fn mixed(ranks: usize, config: Config, setup: &Setup, ip: IpAddr) -> (Vec<Rdma>, Cables) {
    let (devices, cables) = strict::hosted(ranks, setup);
    let board = Board::new(ranks);
    let secret = Secret::from_bytes([3; 32]);
    let attach = |(rank, mut devices): (usize, Vec<Box<dyn HostDevice>>)| {
        let tcp = TcpDevice::open(&Port::loopback(ip), &secret).unwrap();
        devices.push(Box::new(tcp));
        let node = HostNode::new(devices, rank, ranks, &secret, board.of(rank)).unwrap();
        Rdma::attach(Box::new(node), rank, ranks, config).unwrap()
    };
    (
        devices.into_iter().enumerate().map(attach).collect(),
        cables,
    )
}

fn config_of(policy: RailPolicy) -> Config {
    Config {
        ring_bytes: 16 << 10,
        rails: RailSettings {
            policy,
            stripe_above: 4 << 10,
            ..RailSettings::default()
        },
        ..Config::default()
    }
}

#[test]
fn they_keep_the_promises_of_a_channel() {
    let ip = IpAddr::from([127, 0, 7, 1]);
    for placement in [Placement::Ordered, Placement::Completion] {
        for policy in [RailPolicy::Adaptive, RailPolicy::RoundRobin] {
            for rings in [64, 0] {
                let config = Config {
                    rings,
                    ..config_of(policy)
                };
                println!("{placement:?} {config:?}");
                let setup = setup(placement, 1);
                suite::promises(|ranks| mixed(ranks, config, &setup, ip).0);
            }
        }
    }
}

#[test]
fn zero_copy_keeps_its_promises() {
    let ip = IpAddr::from([127, 0, 7, 2]);
    for policy in POLICIES {
        let setup = setup(Placement::Completion, 1);
        let (both, cables) = mixed(2, config_of(policy), &setup, ip);
        let mut both = both.into_iter();
        let (mut a, mut b) = (both.next().unwrap(), both.next().unwrap());
        super::tests::put(&mut a, &mut b, [1, 0, 0]);
        super::tests::put(&mut b, &mut a, [2, 0, 0]);
        for end in [&a, &b] {
            let links = end
                .connections
                .endpoints
                .get(1 - end.rank())
                .unwrap()
                .links();
            let rails: Vec<_> = links
                .iter()
                .map(|link| (link.rail(), link.peer_rail()))
                .collect();
            assert_eq!(
                rails,
                [(0, 0), (1, 1)],
                "rails pair with those of their kind"
            );
        }
        suite::zero_copy_promises(a, b);
        assert!(
            cables.carried(0, 0).0 + cables.carried(1, 0).0 > 0,
            "{policy:?}"
        );
    }
}

/// Breaks TCP connections at this address, each with an even chance, and one at least.
fn break_some(ip: IpAddr, random: &mut Random) {
    let all: Vec<TcpStream> = connections(ip);
    let certain = random.below(all.len() as u64) as usize;
    for (at, connection) in all.iter().enumerate() {
        if at == certain || random.happens(2) {
            end(connection);
        }
    }
}

/// Ends a connection at this end.
fn end(connection: &TcpStream) {
    // An error: its other end has ended it a moment ago.
    let _ = connection.shutdown(Shutdown::Both);
}

/// The ends of TCP connections at this address in this process.
fn connections(ip: IpAddr) -> Vec<TcpStream> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let copies = numbers.filter_map(|number: i32| {
        // SAFETY: the number is only copied; the kernel refuses one that has been closed meanwhile.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        Some(TcpStream::from(borrowed.try_clone_to_owned().ok()?))
    });
    let is_ours = |one: &TcpStream| {
        let local = one.local_addr().is_ok_and(|local| local.ip() == ip);
        // Listeners and sockets of datagrams have no peer.
        local && one.peer_addr().is_ok()
    };
    copies.filter(is_ours).collect()
}

/// Policies under which both rails carry messages. A rail that carries none fails unnoticed.
const USE_BOTH: [RailPolicy; 3] = [
    RailPolicy::Adaptive,
    RailPolicy::RoundRobin,
    RailPolicy::Stripe,
];

/// A fault in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The cable of the strict device is cut at this rank.
    Cut(usize),
    /// TCP connections are broken, and the ranks have not noticed it for this number of steps.
    Broken(u32),
}

/// The number of steps in which ranks notice a connection that they use. One that carries nothing
/// under a policy ends unnoticed.
const NOTICED: u32 = 20_000;

/// Breaks each rail `times` times under random traffic. It works again in between.
fn run(seed: u64, times: u32) {
    let ip = IpAddr::from([127, 0, 8, 1 + seed as u8]);
    let placement = match seed % 2 {
        0 => Placement::Completion,
        _ => Placement::Ordered,
    };
    let policy = USE_BOTH[seed as usize % USE_BOTH.len()];
    let what = format!("SEED={seed} {placement:?} {policy:?}");
    println!("{what}");
    let (ends, cables) = mixed(2, config_of(policy), &setup(placement, seed), ip);
    let ends: [Rdma; 2] = ends.try_into().ok().unwrap();
    let (mut pair, mut random) = (Pair::new(ends), Random(seed));
    let (mut fault, mut faults, mut changed) = (None, [0; 2], Instant::now());
    while faults != [times; 2] || fault.is_some() {
        let is_stuck = changed.elapsed() >= PATIENCE;
        if is_stuck {
            pair.describe();
        }
        assert!(!is_stuck, "stuck: {what}: {faults:?}, {fault:?}");
        match &mut fault {
            Some(Fault::Broken(_)) if !pair.is_whole() => {
                (fault, changed) = (None, Instant::now());
            }
            Some(Fault::Broken(steps)) => {
                *steps += 1;
                if *steps == NOTICED {
                    connections(ip).iter().for_each(end);
                }
            }
            _ => {}
        }
        let rank = random.below(2) as usize;
        match (random.below(12), fault) {
            (6, None) if changed.elapsed() > SETTLING && pair.is_settled() => {
                let rail = random.below(2) as usize;
                let rail = if faults[rail] < times { rail } else { 1 - rail };
                faults[rail] += 1;
                fault = Some(match rail {
                    0 => {
                        let how = [Cut::Silent, Cut::Down, Cut::Acknowledgements];
                        cables.cut(rank, 0, how[random.below(3) as usize]);
                        Fault::Cut(rank)
                    }
                    _ => {
                        break_some(ip, &mut random);
                        Fault::Broken(0)
                    }
                });
                changed = Instant::now();
            }
            (6, Some(Fault::Cut(at))) if random.happens(8) => {
                cables.mend(at, 0);
                (fault, changed) = (None, Instant::now());
            }
            (action, _) => pair.step(rank, action, &mut random),
        }
    }
    pair.finish(&what);
    let begin = Instant::now();
    while !pair.is_whole() {
        pair.poll_both();
        assert!(begin.elapsed() < PATIENCE, "a rail does not return: {what}");
    }
}

#[test]
fn nothing_is_lost_while_either_kind_fails_and_comes_back() {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(6),
    };
    seeds.for_each(|seed| run(seed, 3));
}
