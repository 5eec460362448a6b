//! The promises of point-to-point communication, with every protocol and transport.

use std::sync::Arc;

use crate::common::{out, pattern, room, run, run_remote, run_shared, run_with};
use mpi::coll::Work;
use mpi::comm::{SELF, WORLD};
use mpi::{ANY_SOURCE, ANY_TAG, Class, Mode, Protocol, Rank};
use testdevice::strict::Setup;

/// Settings that select other protocols: eager, rendezvous by a single copy, rendezvous by pieces.
const WAYS: [&[(&str, &str)]; 12] = [
    &[],
    &[
        ("FISHPLATE_CORES", "near"),
        ("FISHPLATE_EAGER_LIMIT", "0"),
        ("FISHPLATE_SINGLE_COPY_LIMIT", "0"),
        ("FISHPLATE_TOGETHER_LIMIT", "0"),
    ],
    &[
        ("FISHPLATE_CORES", "near"),
        ("FISHPLATE_RING_BYTES", "256K"),
        ("FISHPLATE_RING_SLOTS", "4"),
    ],
    &[
        ("FISHPLATE_EAGER_LIMIT", "0"),
        ("FISHPLATE_SINGLE_COPY_LIMIT", "0"),
    ],
    &[
        ("FISHPLATE_EAGER_LIMIT", "100"),
        ("FISHPLATE_SINGLE_COPY", "off"),
    ],
    &[
        ("FISHPLATE_RING_SLOTS", "4"),
        ("FISHPLATE_RING_BYTES", "8K"),
        ("FISHPLATE_WAIT", "sleep"),
    ],
    &[("FISHPLATE_RDMA_DESIGN", "basic")],
    &[
        ("FISHPLATE_RDMA_DESIGN", "piggyback"),
        ("FISHPLATE_RDMA_RING_BYTES", "16K"),
    ],
    &[
        ("FISHPLATE_RDMA_DESIGN", "pipeline"),
        ("FISHPLATE_RDMA_CHUNK", "1K"),
        ("FISHPLATE_RDMA_RING_BYTES", "8K"),
    ],
    &[
        ("FISHPLATE_RENDEZVOUS", "write"),
        ("FISHPLATE_EAGER_LIMIT", "0"),
    ],
    &[
        ("FISHPLATE_RENDEZVOUS", "read"),
        ("FISHPLATE_RDMA_GATHER", "off"),
    ],
    &[("FISHPLATE_RDMA_RINGS", "0")],
];

const LENGTHS: [usize; 14] = [
    0, 1, 8, 31, 32, 33, 1000, 4096, 4097, 16_384, 16_385, 70_000, 131_073, 3_000_001,
];

/// `Rank::explain` lists the protocols for messages to a peer, from short to long messages.
#[test]
fn the_protocols_for_every_kind_of_peer_are_listed() {
    use Protocol::*;
    let settings = [("FISHPLATE_CORES", "near"), ("FISHPLATE_SINGLE_COPY", "on")];
    run_shared(2, &settings, |rank| {
        // A peer's memory can be copied from after the peer has joined and until it leaves.
        synchronise(rank);
        let peer = explained(rank, 1 - rank.rank());
        synchronise(rank);
        assert_eq!(peer[..2], [(0, Eager), (16_385, EagerPieces)]);
        // Both ranks copy only where each has a core.
        let (len, long) = peer[2];
        assert!(len == 131_073 && matches!(long, CooperativeCopy | ReadRendezvous));
        let itself = explained(rank, rank.rank());
        let expected = [(0, Eager), (65_537, Packets), (131_072, ReadRendezvous)];
        assert_eq!(itself, expected);
    });
    for (rendezvous, protocol) in [("read", ReadRendezvous), ("write", WriteRendezvous)] {
        let settings = [("FISHPLATE_RENDEZVOUS", rendezvous)];
        run_remote(2, &settings, &Setup::default(), move |rank| {
            let peer = explained(rank, 1 - rank.rank());
            assert_eq!(peer, [(0, Eager), (peer[1].0, protocol)]);
            assert!((4096..=131_073).contains(&peer[1].0), "{peer:?}");
        });
    }
}

/// Exchanges an empty message between two ranks.
fn synchronise(rank: &Rank) {
    let other = 1 - rank.rank() as i32;
    rank.send("MPI_Send", Mode::Standard, out(&[]), other, 0, WORLD)
        .unwrap();
    rank.receive("MPI_Recv", room(&mut []), other, 0, WORLD)
        .unwrap();
}

/// The protocols for a peer, and the length in bytes from which on each is used, in order of length.
/// Each has an estimated time.
fn explained(rank: &Rank, peer: usize) -> Vec<(usize, Protocol)> {
    let rows = rank.explain(peer);
    for (len, protocol, time) in &rows {
        println!(
            "peer {peer}, from {len} bytes: {}, {time} ns",
            protocol.name()
        );
    }
    assert!(rows.is_sorted_by(|one, next| one.0 < next.0));
    assert!(rows.iter().all(|row| row.2 > 0));
    rows.iter()
        .map(|&(len, protocol, _)| (len, protocol))
        .collect()
}

#[test]
fn messages_of_all_lengths_and_modes_arrive() {
    for settings in WAYS {
        run_with(2, settings, |rank| {
            for (number, len) in LENGTHS.into_iter().enumerate() {
                for mode in [Mode::Standard, Mode::Synchronous] {
                    let sent = pattern(len, number);
                    if rank.rank() == 0 {
                        rank.send("MPI_Send", mode, out(&sent), 1, number as i32, WORLD)
                            .unwrap();
                    } else {
                        let mut got = vec![0; len + 3];
                        let status = rank
                            .receive("MPI_Recv", room(&mut got), 0, number as i32, WORLD)
                            .unwrap();
                        assert_eq!(
                            (status.source, status.tag, status.bytes),
                            (0, number as i32, len as u64)
                        );
                        assert_eq!(status.error, Class::SUCCESS);
                        assert_eq!(got[..len], sent);
                        assert_eq!(got[len..], [0; 3]);
                    }
                }
            }
        });
    }
}

#[test]
fn both_send_thousands_before_either_receives() {
    for settings in WAYS {
        run_with(2, settings, |rank| {
            let peer = 1 - rank.rank() as i32;
            let bodies: Vec<Vec<u8>> = (0..3000)
                .map(|number| pattern(number % 300, number))
                .collect();
            let sends: Vec<_> = bodies
                .iter()
                .map(|body| {
                    rank.lock()
                        .send(Mode::Standard, &out(body), peer, 4, WORLD)
                        .unwrap()
                })
                .collect();
            for body in &bodies {
                let mut got = vec![0; body.len()];
                let status = rank
                    .receive("MPI_Recv", room(&mut got), peer, 4, WORLD)
                    .unwrap();
                assert_eq!((status.bytes as usize, &got), (body.len(), body));
            }
            for send in sends {
                rank.wait("MPI_Wait", send).unwrap();
            }
        });
    }
}

/// Ranks that share memory show each other a bounded number of messages: the others go by packets.
#[test]
fn more_messages_than_can_be_exposed_arrive_in_any_order() {
    for cores in ["near", "far"] {
        let settings = [
            ("FISHPLATE_CORES", cores),
            ("FISHPLATE_EAGER_LIMIT", "0"),
            ("FISHPLATE_SINGLE_COPY", "on"),
            ("FISHPLATE_SINGLE_COPY_LIMIT", "0"),
            ("FISHPLATE_TOGETHER_LIMIT", "0"),
        ];
        run_shared(2, &settings, |rank| {
            const MESSAGES: usize = 1500;
            let peer = 1 - rank.rank() as i32;
            synchronise(rank);
            let body = |number: usize| pattern(2000 + number, number);
            let bodies: Vec<Vec<u8>> = (0..MESSAGES).map(body).collect();
            // Twice, because the end of the first messages makes room for more.
            for _ in 0..2 {
                let send = |(number, body): (usize, &Vec<u8>)| {
                    let mut state = rank.lock();
                    let tag = number as i32;
                    let send = state.send(Mode::Standard, &out(body), peer, tag, WORLD);
                    send.unwrap()
                };
                let sends: Vec<_> = bodies.iter().enumerate().map(send).collect();
                for number in (0..MESSAGES).rev() {
                    let mut got = vec![0; bodies[number].len()];
                    let tag = number as i32;
                    let received = rank.receive("MPI_Recv", room(&mut got), peer, tag, WORLD);
                    assert_eq!(received.unwrap().bytes as usize, got.len());
                    assert!(got == bodies[number], "message {number} is damaged");
                }
                for send in sends {
                    rank.wait("MPI_Wait", send).unwrap();
                }
            }
        });
    }
}

#[test]
fn wildcards_take_messages_of_one_sender_in_order() {
    run(5, |rank| {
        const EACH: usize = 200;
        if rank.rank() > 0 {
            for number in 0..EACH {
                let body = (number as u64).to_ne_bytes();
                rank.send(
                    "MPI_Send",
                    Mode::Standard,
                    out(&body),
                    0,
                    number as i32 % 3,
                    WORLD,
                )
                .unwrap();
            }
            return;
        }
        let mut next = [0; 5];
        for _ in 0..4 * EACH {
            let mut body = [0; 8];
            let status = rank
                .receive("MPI_Recv", room(&mut body), ANY_SOURCE, ANY_TAG, WORLD)
                .unwrap();
            let expected = &mut next[status.source as usize];
            assert_eq!(
                (u64::from_ne_bytes(body) as usize, status.tag),
                (*expected, *expected as i32 % 3)
            );
            *expected += 1;
        }
        assert_eq!(next, [0, EACH, EACH, EACH, EACH]);
    });
}

#[test]
fn a_message_that_is_too_long_fills_the_buffer_and_says_so() {
    for settings in WAYS {
        run_with(2, settings, |rank| {
            for len in [40, 20_000, 200_000] {
                if rank.rank() == 0 {
                    rank.send(
                        "MPI_Send",
                        Mode::Standard,
                        out(&pattern(len, 1)),
                        1,
                        0,
                        WORLD,
                    )
                    .unwrap();
                    rank.send("MPI_Send", Mode::Standard, out(b"after"), 1, 0, WORLD)
                        .unwrap();
                } else {
                    let mut got = vec![0; len - 7];
                    let status = rank
                        .receive("MPI_Recv", room(&mut got), 0, 0, WORLD)
                        .unwrap();
                    assert_eq!(
                        (status.error, status.bytes as usize),
                        (Class::TRUNCATE, len - 7)
                    );
                    assert_eq!(got, pattern(len, 1)[..len - 7]);
                    let mut after = [0; 5];
                    let status = rank
                        .receive("MPI_Recv", room(&mut after), 0, 0, WORLD)
                        .unwrap();
                    assert_eq!((status.error, &after), (Class::SUCCESS, b"after"));
                }
            }
        });
    }
}

#[test]
fn a_rank_talks_to_itself() {
    run(2, |rank| {
        for len in LENGTHS {
            let sent = pattern(len, 5);
            let mut got = vec![0; len];
            let send = rank
                .lock()
                .send(Mode::Standard, &out(&sent), 0, 9, SELF)
                .unwrap();
            let status = rank
                .receive("MPI_Recv", room(&mut got), ANY_SOURCE, 9, SELF)
                .unwrap();
            rank.wait("MPI_Wait", send).unwrap();
            assert_eq!((status.source, &got), (0, &sent));
        }
    });
}

#[test]
fn a_flood_of_unexpected_messages_is_held_back_and_all_arrive() {
    let settings = [("FISHPLATE_UNEXPECTED_LIMIT", "64K")];
    run_with(2, &settings, |rank| {
        const MESSAGES: usize = 2000;
        if rank.rank() == 0 {
            let bodies: Vec<_> = (0..MESSAGES).map(|number| pattern(1000, number)).collect();
            let sends: Vec<_> = bodies
                .iter()
                .map(|body| {
                    rank.lock()
                        .send(Mode::Standard, &out(body), 1, 1, WORLD)
                        .unwrap()
                })
                .collect();
            rank.send("MPI_Send", Mode::Standard, out(b"go"), 1, 2, WORLD)
                .unwrap();
            for send in sends {
                rank.wait("MPI_Wait", send).unwrap();
            }
        } else {
            let mut go = [0; 2];
            rank.receive("MPI_Recv", room(&mut go), 0, 2, WORLD)
                .unwrap();
            let held = rank.unexpected_bytes();
            // The limit, the rest of a batch, the packets in flight when the sender got the notice,
            // and those that it sent before it read the notice: a ring each.
            let bound = (64 << 10) + (32 + 2 * 256) * 1000;
            assert!(held <= bound, "{held} bytes are held");
            for number in 0..MESSAGES {
                let mut got = vec![0; 1000];
                rank.receive("MPI_Recv", room(&mut got), 0, 1, WORLD)
                    .unwrap();
                assert_eq!(got, pattern(1000, number), "message {number}");
            }
        }
    });
}

/// In a small ring most pieces of a message wait at the sender, so its receive is posted before,
/// between or after them.
#[test]
fn a_message_in_pieces_meets_its_receive_at_any_time() {
    let settings = [
        ("FISHPLATE_RING_BYTES", "8K"),
        ("FISHPLATE_UNEXPECTED_LIMIT", "64K"),
    ];
    run_shared(2, &settings, |rank| {
        const ROUNDS: usize = 300;
        let body = |round: usize| pattern(1500 + round * 97 % 9000, round);
        if rank.rank() == 0 {
            for round in 0..ROUNDS {
                rank.send("MPI_Send", Mode::Standard, out(&body(round)), 1, 1, WORLD)
                    .unwrap();
                rank.send("MPI_Send", Mode::Standard, out(&[7; 40]), 1, 2, WORLD)
                    .unwrap();
            }
            return;
        }
        for round in 0..ROUNDS {
            for _ in 0..round % 7 {
                rank.progress().unwrap();
            }
            // Sometimes a later message is received first, and sometimes the buffer is too short.
            let mut behind = [0; 40];
            if round % 3 == 0 {
                rank.receive("MPI_Recv", room(&mut behind), 0, 2, WORLD)
                    .unwrap();
            }
            let sent = body(round);
            let short = if round % 5 == 0 { 1200 } else { sent.len() };
            let mut got = vec![0; short];
            let source = if round % 2 == 0 { 0 } else { ANY_SOURCE };
            let status = rank
                .receive("MPI_Recv", room(&mut got), source, 1, WORLD)
                .unwrap();
            assert_eq!(got, sent[..short], "round {round}");
            assert_eq!(status.dropped as usize, sent.len() - short);
            if round % 3 != 0 {
                rank.receive("MPI_Recv", room(&mut behind), 0, 2, WORLD)
                    .unwrap();
            }
            assert_eq!(behind, [7; 40]);
        }
    });
}

#[test]
fn wrong_arguments_are_named() {
    run(1, |rank| {
        let error = |dest, tag, comm| {
            rank.send("MPI_Send", Mode::Standard, out(b""), dest, tag, comm)
                .unwrap_err()
        };
        assert_eq!(error(1, 0, WORLD).class, Class::RANK);
        assert_eq!(error(-7, 0, WORLD).class, Class::RANK);
        assert_eq!(error(0, -1, WORLD).class, Class::TAG);
        assert_eq!(error(0, 0, 0x100).class, Class::COMM);
        assert_eq!(error(0, 0, 0x12345).class, Class::COMM);
    });
}

#[test]
fn a_receive_can_be_taken_back_and_so_can_a_synchronous_send() {
    run(2, |rank| {
        let peer = 1 - rank.rank() as i32;
        let mut body = [0; 4];
        let id = rank
            .lock()
            .receive(room(&mut body), peer, 77, WORLD)
            .unwrap();
        rank.lock().cancel(id).unwrap();
        assert!(rank.wait("MPI_Wait", id).unwrap().cancelled);
        if rank.rank() == 0 {
            let send = rank
                .lock()
                .send(Mode::Synchronous, &out(b"gone"), 1, 5, WORLD)
                .unwrap();
            rank.lock().cancel(send).unwrap();
            assert!(rank.wait("MPI_Wait", send).unwrap().cancelled);
            for tag in [6, 5] {
                rank.send("MPI_Send", Mode::Standard, out(b"here"), 1, tag, WORLD)
                    .unwrap();
            }
        } else {
            // The first message is certainly cancelled only when the other one has arrived.
            rank.receive("MPI_Recv", room(&mut body), 0, 6, WORLD)
                .unwrap();
            rank.receive("MPI_Recv", room(&mut body), 0, 5, WORLD)
                .unwrap();
            assert_eq!(&body, b"here");
        }
    });
}

#[test]
fn threads_of_one_rank_send_and_receive_at_once() {
    run_with(2, &[("FISHPLATE_RING_SLOTS", "8")], |rank| {
        rank.allow_threads();
        let peer = 1 - rank.rank() as i32;
        std::thread::scope(|scope| {
            for tag in 0..3 {
                let sender = rank.clone();
                scope.spawn(move || {
                    for number in 0..300 {
                        let body = pattern(number * 70, tag as usize);
                        sender
                            .send("MPI_Send", Mode::Standard, out(&body), peer, tag, WORLD)
                            .unwrap();
                    }
                });
                scope.spawn(move || {
                    for number in 0..300 {
                        let mut body = vec![0; number * 70];
                        rank.receive("MPI_Recv", room(&mut body), peer, tag, WORLD)
                            .unwrap();
                        assert_eq!(body, pattern(number * 70, tag as usize));
                    }
                });
            }
        });
    });
}

/// Ready-to-receive announcements go to peers that write by RDMA; peers in shared memory get none.
#[test]
fn what_is_told_ahead_is_for_rdma_only() {
    let long_messages = |rank: &Arc<Rank>| {
        for _ in 0..4 {
            let mut body = vec![0; 300_000];
            let work = Work::Barrier;
            if rank.rank() == 1 {
                let id = rank.lock().receive(room(&mut body), 0, 3, WORLD).unwrap();
                rank.collective("MPI_Barrier", &work, WORLD).unwrap();
                rank.wait("MPI_Wait", id).unwrap();
            } else {
                rank.collective("MPI_Barrier", &work, WORLD).unwrap();
                rank.send("MPI_Send", Mode::Standard, out(&body), 1, 3, WORLD)
                    .unwrap();
            }
        }
        rank.announces_receives()
    };
    run_shared(2, &[], move |rank| assert!(!long_messages(rank)));
    run_remote(2, &[], &Setup::default(), move |rank| {
        assert_eq!(long_messages(rank), rank.rank() == 1);
    });
}
