//! Every request that may be sent finds a receive, even at a rank that does not poll. On the
//! devices of these tests a request that finds none ends its connection.

use super::tests::{DESIGNS, all, put, setups, two};
use super::*;
use crate::{Exposed, Family, More, NotifiedWrite, Put, Transport, ZeroCopy, suite};

/// A rank that has connected to all others does not poll. The others send all that they may, and
/// everything arrives in the end. A request that found no receive would end its connection.
#[test]
fn a_rank_that_computes_breaks_nobody() {
    for setup in setups() {
        for rings in [64, 2, 1, 0] {
            const RANKS: usize = 100;
            let config = Config {
                rings,
                ..Config::default()
            };
            let mut all = all(RANKS, config, &setup);
            let (hub, others) = all.split_at_mut(1);
            let mut sent = [0; RANKS];
            let mut heard = [0; RANKS];
            let listen = |hub: &mut Rdma, heard: &mut [u64; RANKS]| {
                suite::take(hub, |from, head, _| {
                    assert_eq!(head[0], heard[from]);
                    heard[from] += 1;
                })
                .unwrap();
            };
            // Some ranks send much, so that their windows grow. Others send one packet only.
            for round in 0..3 {
                for (at, other) in others.iter_mut().enumerate() {
                    let rank = at + 1;
                    let much = if rank % 3 == round { 40 } else { 1 };
                    let until = sent[rank] + much;
                    while sent[rank] < until {
                        match other
                            .put(0, [sent[rank], 0, 0], 3, |body| body.fill(1))
                            .unwrap()
                        {
                            Put::Full => {
                                suite::take(other, |_, _, _| ()).unwrap();
                                listen(&mut hub[0], &mut heard);
                            }
                            _ => sent[rank] += 1,
                        }
                    }
                }
                // Now the hub computes.
                for (at, other) in others.iter_mut().enumerate() {
                    let rank = at + 1;
                    let mut full = 0;
                    while full < 50 {
                        match other
                            .put(0, [sent[rank], 0, 0], 3, |body| body.fill(1))
                            .unwrap()
                        {
                            Put::Full => full += 1,
                            _ => sent[rank] += 1,
                        }
                        suite::take(other, |_, _, _| ()).unwrap();
                    }
                }
                for _ in 0..100_000 {
                    if heard == sent {
                        break;
                    }
                    listen(&mut hub[0], &mut heard);
                    for other in others.iter_mut() {
                        suite::take(other, |_, _, _| ()).unwrap();
                    }
                }
                assert_eq!(heard, sent, "rings {rings}, {setup:?}");
            }
        }
    }
}

#[test]
fn as_many_notices_are_expected_as_there_are_receives_for() {
    for setup in setups() {
        let (mut a, mut b) = two(Config::default(), &setup);
        put(&mut a, &mut b, [1, 0, 0]);
        suite::take(&mut b, |_, _, _| ()).unwrap();
        let ours = [7u8; 64];
        let mut theirs = [0u8; 64];
        let from = suite::exposed(&mut a, 0, &suite::memory(&ours), Exposed::ToRead);
        let to = suite::exposed(&mut b, 0, &suite::room(&mut theirs), Exposed::ToWrite);
        for round in 0..2u64 {
            let mut notices = Vec::new();
            while let Some(notice) = b
                .expect(0, suite::token(round << 32 | notices.len() as u64))
                .unwrap()
            {
                notices.push(notice);
            }
            assert_eq!(notices.len(), rail::NOTICES);
            // One notice is taken back, and another one given.
            b.forget(0, notices.pop().unwrap());
            let last = b
                .expect(0, suite::token(round << 32 | notices.len() as u64))
                .unwrap();
            notices.push(last.unwrap());
            for &notice in &notices {
                let _ = a
                    .write_notified(1, &from, &to.key(), 64, notice, suite::token(0))
                    .unwrap();
            }
            // Only the writer polls: nothing waits for the other rank.
            let mut written = 0;
            for _ in 0..100_000 {
                suite::take(&mut a, |_, _, _| ()).unwrap();
                while a.done(Family::Messages).is_some() {
                    written += 1;
                }
                if written == notices.len() {
                    break;
                }
            }
            assert_eq!(written, notices.len());
            let mut told = 0;
            for _ in 0..1000 {
                suite::take(&mut b, |_, _, _| ()).unwrap();
                while let Some(done) = b.done(Family::Messages) {
                    assert_eq!(done.token, suite::token(round << 32 | told));
                    told += 1;
                }
            }
            assert_eq!((told as usize, theirs), (notices.len(), ours));
        }
        a.retract(from).unwrap();
        b.retract(to).unwrap();
    }
}

/// Puts packets until there is no room, and does not poll.
fn fill_up(from: &mut Rdma, to: usize, sent: &mut u64) {
    let mut full = 0;
    while full < 50 {
        let number = *sent;
        match from
            .put(to, [number, 0, 0], 3, |body| body.fill(1))
            .unwrap()
        {
            Put::Full => full += 1,
            _ => *sent += 1,
        }
    }
}

#[test]
fn both_ways_may_be_full() {
    for setup in setups() {
        for (design, rings) in DESIGNS.into_iter().flat_map(|one| [(one, 64), (one, 0)]) {
            let config = Config {
                design,
                rings,
                ..Config::default()
            };
            let (mut a, mut b) = two(config, &setup);
            put(&mut a, &mut b, [0, 0, 0]);
            let (mut sent, mut heard) = ([1u64, 0], [0u64, 0]);
            let look = |rank: &mut Rdma, heard: &mut u64| {
                Transport::poll(rank, |_, head, _| {
                    assert_eq!(head[0], *heard);
                    *heard += 1;
                    // So that every packet may cause a tail of its own.
                    More::Enough
                })
                .unwrap();
            };
            for _ in 0..3 {
                fill_up(&mut a, 1, &mut sent[0]);
                for _ in 0..1000 {
                    look(&mut b, &mut heard[0]);
                }
                // The other rank does not poll while everything comes that may come.
                fill_up(&mut b, 0, &mut sent[1]);
                fill_up(&mut a, 1, &mut sent[0]);
                for _ in 0..100_000 {
                    look(&mut a, &mut heard[1]);
                    look(&mut b, &mut heard[0]);
                    if heard == sent {
                        break;
                    }
                }
                assert_eq!(heard, sent, "{config:?} {setup:?}");
            }
        }
    }
}
