//! The promises of a transport, kept over the strict device, with all designs and both kinds of
//! placement.

use device::Placement;
use knobs::RdmaDesign;
use testdevice::strict::{self, Setup};

use super::endpoint::Endpoint;
use super::layout::RING;
use super::*;
use crate::{Head, Put, Transport, suite};

pub(super) const DESIGNS: [RdmaDesign; 4] = [
    RdmaDesign::Basic,
    RdmaDesign::Piggyback,
    RdmaDesign::Pipeline,
    RdmaDesign::ZeroCopy,
];

/// Nodes on which a request that finds no receive ends its connection.
fn nodes(ranks: usize, setup: &Setup) -> Vec<Box<dyn Node + Send>> {
    let setup = Setup {
        patient: false,
        ..setup.clone()
    };
    strict::nodes(ranks, &setup)
}

/// The transports of `ranks` ranks.
pub(super) fn all(ranks: usize, config: Config, setup: &Setup) -> Vec<Rdma> {
    let nodes = nodes(ranks, setup).into_iter().enumerate();
    nodes
        .map(|(rank, node)| Rdma::attach(node, rank, ranks, config).unwrap())
        .collect()
}

/// The kinds of device on which the tests run.
pub(super) fn setups() -> impl Iterator<Item = Setup> {
    let placements = [Placement::Ordered, Placement::Completion].into_iter();
    placements.flat_map(|placement| {
        // The last kind is like iWARP.
        [(false, false), (true, false), (true, true)].map(|(delays, plain)| Setup {
            placement,
            delays,
            inline: if delays && !plain { 0 } else { 64 },
            immediates: !plain,
            ties_both: plain,
            answered: !plain,
            ..Setup::default()
        })
    })
}

/// Every other shape, from the first or the second on. With a number that is the sum of the
/// places of a setup and of a policy, any two of setup, policy and shape still meet: half of the
/// product of all three tests each pair.
pub(super) fn every_other<T, const N: usize>(
    shapes: [T; N],
    from: usize,
) -> impl Iterator<Item = T> {
    shapes.into_iter().skip(from % 2).step_by(2)
}

#[test]
fn it_keeps_the_promises_of_a_channel() {
    let shapes = [
        (256 << 10, true, 64),
        (16 << 10, true, 2),
        (16 << 10, true, 1),
        (16 << 10, false, 64),
        (16 << 10, false, 0),
        (256 << 10, true, 0),
    ];
    for (which, setup) in setups().enumerate() {
        for (at, design) in DESIGNS.into_iter().enumerate() {
            for (ring_bytes, gather, rings) in every_other(shapes, which + at) {
                let config = Config {
                    design,
                    ring_bytes,
                    gather,
                    rings,
                    ..Config::default()
                };
                println!("{config:?} {setup:?}");
                suite::promises(|ranks| all(ranks, config, &setup));
            }
        }
    }
}

/// The transports of two ranks.
pub(super) fn two(config: Config, setup: &Setup) -> (Rdma, Rdma) {
    suite::pair(&|ranks| all(ranks, config, setup))
}

/// Polls both ends until the first has put a packet with this head.
pub(super) fn put(a: &mut Rdma, b: &mut Rdma, head: Head) {
    for _ in 0..10_000 {
        if a.put(b.rank(), head, 0, |_| ()).unwrap() != Put::Full {
            return;
        }
        suite::take(b, |_, _, _| ()).unwrap();
    }
    panic!("no connection");
}

#[test]
fn a_peer_that_is_gone_is_named_with_what_to_check() {
    let config = Config {
        patience: Patience::NONE,
        ..Config::default()
    };
    let (mut a, mut b) = two(config, &Setup::default());
    put(&mut a, &mut b, [1, 0, 0]);
    drop(b);
    let error = loop {
        match a.put(1, [2, 0, 0], 0, |_| ()) {
            Ok(_) => {
                if let Err(error) = suite::take(&mut a, |_, _, _| ()) {
                    break error;
                }
            }
            Err(error) => break error,
        }
    };
    let words = error.to_string();
    for part in ["rank 1", "instant0 rail 0", "transport retry", "cable"] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn a_rank_that_only_waits_hears_in_the_end_that_a_peer_is_gone() {
    // With and without memory of the peer to write to or read from.
    for (answered, rings) in [(true, 64), (false, 64), (false, 0)] {
        let setup = Setup {
            answered,
            ..Setup::default()
        };
        let config = Config {
            rings,
            patience: Patience::NONE,
            ..Config::default()
        };
        let (mut a, mut b) = two(config, &setup);
        put(&mut a, &mut b, [1, 0, 0]);
        let mut peer = Some(b);
        let began = std::time::Instant::now();
        let error = loop {
            let waited = a
                .wait(1_000_000)
                .and_then(|()| suite::take(&mut a, |_, _, _| ()));
            if let Err(error) = waited {
                break error;
            }
            // Long enough for a probe and its answer.
            if began.elapsed().as_millis() > 1_300 {
                peer = None;
            }
        };
        assert!(peer.is_none(), "it was there: {error}");
        assert!(error.to_string().contains("transport retry"), "{error}");
    }
}

#[test]
fn what_a_peer_writes_is_not_believed() {
    let fails = |spoil: &dyn Fn(&Rdma, &registered::Block)| {
        let (mut a, mut b) = two(Config::default(), &Setup::default());
        put(&mut a, &mut b, [1, 0, 0]);
        suite::take(&mut b, |_, _, _| ()).unwrap();
        spoil(&b, b.connections.endpoints.get(0).unwrap().receiver.block());
        let error = suite::take(&mut b, |_, _, _| panic!("handed on")).unwrap_err();
        error.to_string()
    };
    // The end of the second slot of the small class.
    let end = |b: &Rdma| RING + b.connections.local.layout.classes()[0].end(1);
    let from_nowhere = fails(&|b, block| block.store(end(b) - layout::WORD, 1 << 20));
    assert!(
        from_nowhere.contains("rank 0") && from_nowhere.contains("1048576"),
        "{from_nowhere}"
    );
    let too_long = fails(&|b, block| {
        let info = layout::SlotInfo {
            content: layout::SlotContent::Packet,
            len: 217,
            tail: 0,
            next: None,
        };
        block.store(end(b) - 2 * layout::WORD, info.encode());
        block.store(end(b) - layout::WORD, 2);
    });
    assert!(
        too_long.contains("rank 0") && too_long.contains("impossible info"),
        "{too_long}"
    );
    let in_advance = fails(&|b, block| {
        let info = layout::SlotInfo {
            content: layout::SlotContent::Packet,
            len: 0,
            tail: 5,
            next: None,
        };
        block.store(end(b) - 2 * layout::WORD, info.encode());
        block.store(end(b) - layout::WORD, 2);
    });
    assert!(
        in_advance.contains("consumed packets that were not sent"),
        "{in_advance}"
    );
}

#[test]
fn ranks_with_other_settings_are_told_apart() {
    let setup = Setup::default();
    let mut nodes = nodes(2, &setup).into_iter();
    let mut make = |rank, chunk| {
        let config = Config {
            chunk,
            ..Config::default()
        };
        Rdma::attach(nodes.next().unwrap(), rank, 2, config).unwrap()
    };
    let (mut a, mut b) = (make(0, 16 << 10), make(1, 8 << 10));
    assert_eq!(a.put(1, [0; 3], 0, |_| ()).unwrap(), Put::Full);
    let error = (0..100).find_map(|_| suite::take(&mut b, |_, _, _| ()).err());
    let words = error.unwrap().to_string();
    assert!(words.contains("16384") && words.contains("8192"), "{words}");
}

#[test]
fn short_packets_are_coalesced_while_the_queue_pair_is_busy() {
    let setup = Setup::default();
    for (gather, fewer) in [(true, true), (false, false)] {
        let config = Config {
            gather,
            ..Config::default()
        };
        let (mut a, mut b) = two(config, &setup);
        put(&mut a, &mut b, [0, 0, 0]);
        let mut sent = 1;
        while a
            .put(1, [sent, 0, 0], 8, |body| body.fill(sent as u8))
            .unwrap()
            != Put::Full
        {
            sent += 1;
        }
        let mut heard = 0;
        for _ in 0..10_000 {
            suite::take(&mut b, |_, head, body| {
                assert_eq!(head[0], heard);
                assert!(body.iter().all(|byte| *byte == heard as u8));
                heard += 1;
            })
            .unwrap();
            suite::take(&mut a, |_, _, _| ()).unwrap();
        }
        assert_eq!(heard, sent);
        let writes = a.connections.endpoints.of(1).sender.last();
        assert_eq!(
            writes < sent / 4,
            fewer,
            "{sent} packets in {writes} writes"
        );
    }
}

#[test]
fn it_keeps_the_promises_of_zero_copy() {
    for setup in setups() {
        let (mut a, mut b) = two(Config::default(), &setup);
        put(&mut a, &mut b, [1, 0, 0]);
        suite::zero_copy_promises(a, b);
    }
}

#[test]
fn memory_is_registered_once_for_all_that_need_it_now() {
    use crate::{Exposed, Family, ZeroCopy};
    for setup in setups() {
        let config = Config {
            keep_registrations: false,
            ..Config::default()
        };
        let (mut a, mut b) = two(config, &setup);
        put(&mut a, &mut b, [1, 0, 0]);
        let (theirs, mut ours) = (vec![7u8; 5000], vec![0u8; 5000]);
        let expose = |b: &mut Rdma| suite::exposed(b, 0, &suite::memory(&theirs), Exposed::ToRead);
        let (one, other) = (expose(&mut b), expose(&mut b));
        assert_eq!(one.key(), other.key());
        b.retract(one).unwrap();
        let to = suite::exposed(&mut a, 0, &suite::room(&mut ours), Exposed::ToWrite);
        let _ = a
            .read(1, &other.key(), &to, 0..5000, suite::token(0))
            .unwrap();
        while a.done(Family::Messages).is_none() {
            suite::take(&mut b, |_, _, _| ()).unwrap();
            suite::take(&mut a, |_, _, _| ()).unwrap();
        }
        assert_eq!(ours, theirs);
        let key = other.key();
        b.retract(other).unwrap();
        a.retract(to).unwrap();
        let later = expose(&mut b);
        assert_ne!(later.key(), key, "the access had not ended");
        b.retract(later).unwrap();
    }
}

#[test]
fn memory_is_read_and_written_and_both_ends_hear_of_it() {
    use crate::{Done, Exposed, Family, NotifiedWrite, RemoteKey, ZeroCopy};
    for setup in setups() {
        let (mut a, mut b) = two(Config::default(), &setup);
        put(&mut a, &mut b, [1, 0, 0]);
        let mut theirs: Vec<u8> = (0..300_000).map(|at| (at % 251) as u8).collect();
        let mut ours = vec![0; theirs.len()];
        let wait = |a: &mut Rdma, b: &mut Rdma| {
            for _ in 0..10_000 {
                suite::take(b, |_, _, _| ()).unwrap();
                suite::take(a, |_, _, _| ()).unwrap();
                if let Some(done) = a.done(Family::Messages) {
                    return done;
                }
            }
            panic!("it is never done");
        };
        let from = suite::exposed(&mut b, 0, &suite::memory(&theirs), Exposed::ToRead);
        let to = suite::exposed(&mut a, 0, &suite::room(&mut ours), Exposed::ToWrite);
        let _ = a
            .read(1, &from.key(), &to, 0..300_000, suite::token(7))
            .unwrap();
        let done = Done {
            peer: 1,
            token: suite::token(7),
        };
        assert_eq!(wait(&mut a, &mut b), done);
        assert_eq!(ours, theirs);
        b.retract(from).unwrap();
        a.retract(to).unwrap();

        ours.reverse();
        let from = suite::exposed(&mut a, 0, &suite::memory(&ours), Exposed::ToRead);
        let to = suite::exposed(&mut b, 0, &suite::room(&mut theirs), Exposed::ToWrite);
        let notice = b.expect(0, suite::token(4)).unwrap().unwrap();
        let _ = a
            .write_notified(1, &from, &to.key(), 300_000, notice, suite::token(1))
            .unwrap();
        assert_eq!(
            wait(&mut a, &mut b),
            Done {
                peer: 1,
                token: suite::token(1)
            }
        );
        assert_eq!(
            wait(&mut b, &mut a),
            Done {
                peer: 0,
                token: suite::token(4)
            }
        );
        assert_eq!(ours, theirs);
        b.retract(to).unwrap();

        // Memory that is no longer exposed is out of reach, and the attempt ends the connection.
        let gone = RemoteKey::new(theirs.as_ptr() as u64, 8, &[77]);
        let _ = a
            .write_notified(1, &from, &gone, 8, 0, suite::token(0))
            .unwrap();
        let error = (0..10_000).find_map(|_| suite::take(&mut a, |_, _, _| ()).err());
        let words = error.unwrap().to_string();
        assert!(words.contains("remote access error"), "{words}");
    }
}

#[test]
fn connections_end_once_all_is_delivered() {
    for setup in setups() {
        let mut all = all(3, Config::default(), &setup);
        for number in 0..200 {
            let (from, to) = (number % 3, (number + 1 + number / 100) % 3);
            let mut full = true;
            while full {
                full = all[from].put(to, [9; 3], 8, |body| body.fill(3)).unwrap() == Put::Full;
                for rank in &mut all {
                    suite::take(rank, |_, head, _| assert_eq!(head, [9; 3])).unwrap();
                }
            }
        }
        let mut open: Vec<Option<Rdma>> = all.into_iter().map(Some).collect();
        for _ in 0..10_000 {
            for rank in &mut open {
                if rank.as_mut().is_some_and(|rank| rank.close().unwrap()) {
                    *rank = None;
                }
            }
        }
        assert!(open.iter().all(|rank| rank.is_none()));
    }
}

#[test]
fn a_rank_with_rings_talks_to_one_without() {
    for setup in setups() {
        for rich in [0, 1] {
            suite::promises(|ranks| {
                let nodes = nodes(ranks, &setup).into_iter().enumerate();
                let attach = |(rank, node): (usize, Box<dyn Node + Send>)| {
                    let config = Config {
                        rings: if rank % 2 == rich { 64 } else { 0 },
                        ..Config::default()
                    };
                    Rdma::attach(node, rank, ranks, config).unwrap()
                };
                nodes.map(attach).collect()
            });
        }
    }
}

/// The bytes of registered memory for rings, and the number of peers with rings.
fn cost(rank: &Rdma) -> (usize, usize) {
    let peers = rank.connections.endpoints.known().iter();
    let endpoints: Vec<&Endpoint> = peers
        .filter_map(|&peer| rank.connections.endpoints.get(peer))
        .collect();
    let memory = endpoints.iter().flat_map(|endpoint| {
        let staging = endpoint.sender.staging_memory();
        endpoint.receiver.memory().into_iter().chain(staging)
    });
    let bytes = memory.map(|memory| memory.block.len()).sum();
    let rings = endpoints.iter().filter(|endpoint| endpoint.has_rings());
    (bytes, rings.count())
}

#[test]
fn memory_does_not_grow_with_the_number_of_peers() {
    let config = Config {
        rings: 4,
        ..Config::default()
    };
    for ranks in [20, 200] {
        let mut all = all(ranks, config, &Setup::default());
        let (hub, others) = all.split_at_mut(1);
        for other in others.iter_mut() {
            let mut heard = false;
            while !heard {
                let _ = other.put(0, [3; 3], 5, |body| body.fill(7)).unwrap();
                suite::take(&mut hub[0], |_, head, body| {
                    assert_eq!((head, body), ([3; 3], &[7; 5][..]));
                    heard = true;
                })
                .unwrap();
            }
        }
        let (bytes, rings) = cost(&hub[0]);
        assert_eq!(rings, 4);
        assert!(bytes <= 4 * (2 * config.ring_bytes + 2 * 4096), "{bytes}");
        // The late ranks have memory for rings with the hub, but the hub has none for them.
        assert_eq!(cost(&others[0]).1, 1);
        assert_eq!(cost(&others[ranks - 2]).1, 0);
    }
}
