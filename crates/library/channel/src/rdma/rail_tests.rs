//! Several rails: every policy keeps the promises of a transport, and no number of one rail is
//! taken for that of another.

use knobs::{QueuePairs, RailPolicy};
use testdevice::strict::{self, Setup};

use super::tests::{every_other, put, setups};
use super::*;
use crate::{Put, Transport, suite};

/// Every rule for the rails of a message.
pub(super) const POLICIES: [RailPolicy; 5] = [
    RailPolicy::Single,
    RailPolicy::Stripe,
    RailPolicy::RoundRobin,
    RailPolicy::Fixed,
    RailPolicy::Adaptive,
];

/// A configuration with this policy, whose long transfers are cut.
fn config_of(policy: RailPolicy) -> Config {
    Config {
        rails: RailSettings {
            policy,
            stripe_above: 8 << 10,
            ..RailSettings::default()
        },
        ..Config::default()
    }
}

/// Ranks with several rails each.
fn over(rails: usize, ranks: usize, config: Config, setup: &Setup) -> Vec<Rdma> {
    let setup = Setup {
        rails,
        patient: false,
        ..setup.clone()
    };
    let nodes = strict::nodes(ranks, &setup).into_iter().enumerate();
    let attach = |(rank, node): (usize, Box<dyn Node + Send>)| {
        let mut config = config;
        config.rails.local_rank = rank;
        Rdma::attach(node, rank, ranks, config).unwrap()
    };
    nodes.map(attach).collect()
}

#[test]
fn it_keeps_the_promises_of_a_channel_on_several_rails() {
    let shapes = [
        (2, 256 << 10, 64, QueuePairs::Separate),
        (2, 16 << 10, 2, QueuePairs::Shared),
        (3, 16 << 10, 64, QueuePairs::Separate),
        (3, 16 << 10, 0, QueuePairs::Separate),
    ];
    for (which, setup) in setups().enumerate() {
        for (at, policy) in POLICIES.into_iter().enumerate() {
            for (rails, ring_bytes, rings, queue_pairs) in every_other(shapes, which + at) {
                let mut config = Config {
                    ring_bytes,
                    rings,
                    ..config_of(policy)
                };
                config.rails.queue_pairs = queue_pairs;
                println!("{rails} rails {config:?} {setup:?}");
                suite::promises(|ranks| over(rails, ranks, config, &setup));
            }
        }
    }
}

#[test]
fn zero_copy_keeps_its_promises_on_several_rails() {
    for setup in setups() {
        for policy in POLICIES {
            for (rails, queue_pairs) in [(2, QueuePairs::Shared), (3, QueuePairs::Separate)] {
                let mut config = config_of(policy);
                config.rails.queue_pairs = queue_pairs;
                println!("{rails} rails {config:?} {setup:?}");
                let mut both = over(rails, 2, config, &setup).into_iter();
                let (mut a, mut b) = (both.next().unwrap(), both.next().unwrap());
                put(&mut a, &mut b, [1, 0, 0]);
                put(&mut b, &mut a, [2, 0, 0]);
                suite::zero_copy_promises(a, b);
            }
        }
    }
}

/// On the devices of these tests both rails give the same numbers to their queue pairs.
#[test]
fn queue_pairs_with_equal_numbers_on_two_rails_lead_to_their_own_peers() {
    let config = Config {
        rings: 0,
        ..config_of(RailPolicy::Fixed)
    };
    let mut all = over(2, 3, config, &Setup::default());
    let (first, others) = all.split_at_mut(1);
    let hub = &mut first[0];
    for (number, other) in others.iter_mut().enumerate() {
        let mut heard = false;
        while !heard {
            let put = other.put(0, [number as u64, 0, 0], 0, |_| ()).unwrap();
            suite::take(other, |_, _, _| ()).unwrap();
            suite::take(hub, |from, head, _| {
                assert_eq!((from, head[0]), (number + 1, number as u64));
                heard = true;
            })
            .unwrap();
            assert!(put == Put::Full || put == Put::Accepted || put == Put::AcceptedPollNow);
        }
    }
    for peer in [1, 2] {
        let endpoint = hub.connections.endpoints.get(peer).unwrap();
        assert_eq!(endpoint.links().len(), 2);
        let numbers = |link: &link::Link| (link.control.qp(), link.bulk.qp());
        let [one, other] = endpoint.links() else {
            panic!("a link on each rail");
        };
        assert_eq!(numbers(one), numbers(other), "equal numbers");
        for link in endpoint.links() {
            let rail = &hub.connections.local.rails[link.rail()];
            assert_eq!(
                rail.peer_of(link.control.qp(), wr_id::QpRole::Control),
                peer
            );
            assert_eq!(rail.peer_of(link.bulk.qp(), wr_id::QpRole::Bulk), peer);
        }
    }
}

#[test]
fn ranks_with_unequal_numbers_of_rails_use_those_that_pair() {
    for setup in setups() {
        let mut nodes = Vec::new();
        let setup = Setup {
            rails: 2,
            ..setup.clone()
        };
        nodes.extend(strict::nodes(2, &setup));
        let mut nodes = nodes.into_iter();
        let mut attach = |rank, most| {
            let mut config = config_of(RailPolicy::Adaptive);
            config.rails.most = most;
            Rdma::attach(nodes.next().unwrap(), rank, 2, config).unwrap()
        };
        let (mut a, mut b) = (attach(0, 2), attach(1, 1));
        put(&mut a, &mut b, [1, 0, 0]);
        put(&mut b, &mut a, [2, 0, 0]);
        for end in [&a, &b] {
            let peer = 1 - end.rank();
            assert_eq!(
                end.connections.endpoints.get(peer).unwrap().links().len(),
                1
            );
        }
        suite::zero_copy_promises(a, b);
    }
}

/// A rank keeps two transfers over three rails in flight; the notices of both come once.
#[test]
fn a_notice_comes_when_all_rails_have_carried_their_part() {
    use crate::{Exposed, Family, NotifiedWrite, ZeroCopy};
    for setup in setups() {
        for policy in POLICIES {
            let mut both = over(3, 2, config_of(policy), &setup).into_iter();
            let (mut a, mut b) = (both.next().unwrap(), both.next().unwrap());
            put(&mut a, &mut b, [1, 0, 0]);
            put(&mut b, &mut a, [2, 0, 0]);
            let ours: Vec<u8> = (0..100_001).map(|at| (at % 250) as u8).collect();
            let mut theirs = vec![0u8; ours.len()];
            let from = suite::exposed(&mut a, 1, &suite::memory(&ours), Exposed::ToRead);
            let to = suite::exposed(&mut b, 0, &suite::room(&mut theirs), Exposed::ToWrite);
            for len in [0, 1, 8192, 8193, ours.len()] {
                let notice = b.expect(0, suite::token(len as u64)).unwrap().unwrap();
                let _ = a
                    .write_notified(1, &from, &to.key(), len, notice, suite::token(5))
                    .unwrap();
                let (mut sent, mut heard) = (0, 0);
                for _ in 0..100_000 {
                    suite::take(&mut a, |_, _, _| ()).unwrap();
                    suite::take(&mut b, |_, _, _| ()).unwrap();
                    sent += a.done(Family::Messages).iter().count();
                    heard += b.done(Family::Messages).iter().count();
                    if (sent, heard) == (1, 1) {
                        break;
                    }
                }
                assert_eq!((sent, heard), (1, 1), "{len} bytes, {policy:?}");
                // SAFETY: the transfer has ended.
                let arrived = unsafe { std::slice::from_raw_parts(theirs.as_ptr(), len) };
                assert_eq!(arrived, &ours[..len]);
            }
            a.retract(from).unwrap();
            b.retract(to).unwrap();
        }
    }
}

/// A device starts the requests of a queue pair in order, limits the number of unanswered reads,
/// and reports completions in order. So a write has another queue pair than reads, and its links
/// have room for it however many reads wait.
#[test]
fn no_write_waits_behind_a_read() {
    use crate::{Exposed, Family, NotifiedWrite, ZeroCopy};
    use flow::Flow;
    for policy in POLICIES {
        let mut both = over(2, 2, config_of(policy), &Setup::default()).into_iter();
        let (mut a, mut b) = (both.next().unwrap(), both.next().unwrap());
        put(&mut a, &mut b, [1, 0, 0]);
        put(&mut b, &mut a, [2, 0, 0]);
        let (mut ours, theirs) = (vec![0u8; 4 << 20], vec![7u8; 4 << 20]);
        let to = suite::exposed(&mut a, 1, &suite::room(&mut ours), Exposed::ToWrite);
        let from = suite::exposed(&mut b, 0, &suite::memory(&theirs), Exposed::ToRead);
        let (sent, mut heard) = (vec![9u8; 64 << 10], vec![0u8; 64 << 10]);
        let source = suite::exposed(&mut a, 1, &suite::memory(&sent), Exposed::ToRead);
        let target = suite::exposed(&mut b, 0, &suite::room(&mut heard), Exposed::ToWrite);
        let _ = a.read(1, &from.key(), &to, 0..theirs.len(), suite::token(1));
        let notice = b.expect(0, suite::token(2)).unwrap().unwrap();
        let _ = a
            .write_notified(
                1,
                &source,
                &target.key(),
                sent.len(),
                notice,
                suite::token(3),
            )
            .unwrap();
        let endpoint = a.connections.endpoints.get(1).unwrap();
        let waits = |flow| endpoint.transfers.first(flow).is_some();
        assert!(waits(Flow::In) && !waits(Flow::Out), "{policy:?}");
        let held = |link: &link::Link| (link.bulk.held(), link.reads.as_ref().unwrap().held());
        let held: Vec<_> = endpoint.links().iter().map(held).collect();
        assert!(held.iter().any(|(writes, _)| *writes > 0), "{held:?}");
        assert!(held.iter().any(|(_, reads)| *reads > 0), "{held:?}");
        let mut done = Vec::new();
        while done.len() < 3 {
            for end in [&mut a, &mut b] {
                suite::take(end, |_, _, _| ()).unwrap();
                done.extend(end.done(Family::Messages).map(|done| done.token.id));
            }
        }
        done.sort_unstable();
        assert_eq!(done, [1, 2, 3]);
        for (end, exposure) in [(&mut a, to), (&mut b, from)] {
            end.retract(exposure).unwrap();
        }
        for (end, exposure) in [(&mut a, source), (&mut b, target)] {
            end.retract(exposure).unwrap();
        }
        assert_eq!((&ours, &heard), (&theirs, &sent));
    }
}
