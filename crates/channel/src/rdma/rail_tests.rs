//! Several rails: endpoints are spread over them, and no number of one rail is taken for that of
//! another.

use testdevice::strict::{self, Setup};

use super::tests::{put, setups};
use super::*;
use crate::{Put, Transport, suite};

const RAILS: usize = 2;

/// Ranks whose endpoints are spread over two rails.
fn spread(ranks: usize, config: Config, setup: &Setup) -> Vec<Rdma> {
    let setup = Setup {
        rails: RAILS,
        patient: false,
        ..setup.clone()
    };
    let nodes = strict::nodes(ranks, &setup).into_iter().enumerate();
    let policy = RailAssignment::Spread;
    nodes
        .map(|(rank, node)| Rdma::attach_with(node, rank, ranks, config, policy).unwrap())
        .collect()
}

#[test]
fn it_keeps_the_promises_of_a_channel_on_two_rails() {
    for setup in setups() {
        for (design, rings) in [
            (Design::Basic, 64),
            (Design::ZeroCopy, 64),
            (Design::ZeroCopy, 2),
            (Design::ZeroCopy, 0),
        ] {
            let config = Config {
                design,
                rings,
                ..Config::default()
            };
            println!("{config:?} {setup:?}");
            suite::promises(|ranks| spread(ranks, config, &setup));
        }
    }
}

/// On the devices of these tests both rails give the same numbers to their queue pairs.
#[test]
fn queue_pairs_with_equal_numbers_on_two_rails_lead_to_their_own_peers() {
    let config = Config {
        rings: 0,
        ..Config::default()
    };
    let mut all = spread(3, config, &Setup::default());
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
    let numbers = |peer: usize| {
        let endpoint = hub.endpoints.get(peer).unwrap();
        let link = endpoint.link();
        let control = (link.control.qp(), qp_link::QpRole::Control);
        let bulk = (link.bulk.qp(), qp_link::QpRole::Bulk);
        (link.rail(), [control, bulk])
    };
    let (one, other) = (numbers(1), numbers(2));
    assert_eq!((one.0, other.0), (1, 0), "each on a rail of its own");
    assert_eq!(one.1, other.1, "with equal numbers");
    for (qp, role) in one.1 {
        assert_eq!(hub.rails[1].peer_of(qp, role), 1);
        assert_eq!(hub.rails[0].peer_of(qp, role), 2);
    }
}

#[test]
fn ranks_that_choose_other_rails_are_told_apart() {
    let setup = Setup {
        rails: RAILS,
        ..Setup::default()
    };
    let mut nodes = strict::nodes(2, &setup).into_iter();
    let mut attach = |rank, policy| {
        let node = nodes.next().unwrap();
        Rdma::attach_with(node, rank, 2, Config::default(), policy).unwrap()
    };
    let mut a = attach(0, RailAssignment::First);
    let mut b = attach(1, RailAssignment::Spread);
    assert_eq!(a.put(1, [0; 3], 0, |_| ()).unwrap(), Put::Full);
    let error = (0..100).find_map(|_| suite::take(&mut b, |_, _, _| ()).err());
    let words = error.unwrap().to_string();
    assert!(
        words.contains("rails [0]") && words.contains("rails [1]"),
        "{words}"
    );
}

#[test]
fn exposed_memory_and_notices_belong_to_the_rail_of_their_peer() {
    use crate::Exposed;
    let config = Config::default();
    let mut all = spread(2, config, &Setup::default());
    let mut b = all.pop().unwrap();
    let mut a = all.pop().unwrap();
    put(&mut a, &mut b, [1, 0, 0]);
    let (ours, mut theirs) = ([7u8; 4096], [0u8; 4096]);
    let from = (ours.as_ptr() as u64, ours.len(), Exposed::ToRead);
    let to = (theirs.as_mut_ptr() as u64, theirs.len(), Exposed::ToWrite);
    let (from_keys, to_keys) = (a.expose_range(from).unwrap(), b.expose_range(to).unwrap());
    assert_eq!(from_keys.rails(), RailSet::below(RAILS));
    let notice = b.expect_notice(0, [5; 3]).unwrap().unwrap();
    let rail = a.endpoints.get(1).unwrap().link().rail();
    assert_eq!(rail, 1);
    let transfer = bulk::BulkTransfer {
        peer: 1,
        rail,
        direction: bulk::Direction::Write {
            notice: Some(notice),
        },
        local: bulk::LocalMemory {
            address: from.0,
            lkey: from_keys.on(rail).lkey,
        },
        remote: device::Remote {
            address: to.0,
            rkey: to_keys.on(rail).rkey,
        },
        len: ours.len(),
        token: [6; 3],
    };
    let queue = &mut a.endpoints.of(1).transfers;
    a.bulk.start(queue, transfer);
    a.post_transfers(1).unwrap();
    let mut done = Vec::new();
    for _ in 0..1000 {
        suite::take(&mut a, |_, _, _| ()).unwrap();
        suite::take(&mut b, |_, _, _| ()).unwrap();
        let both = [&mut a, &mut b].map(|end| end.bulk.next_done());
        done.extend(both.into_iter().flatten().map(|done| done.token[0]));
    }
    done.sort_unstable();
    assert_eq!(done, [5, 6]);
    assert_eq!(ours, theirs);
    a.retract_range(from).unwrap();
    b.retract_range(to).unwrap();
}
