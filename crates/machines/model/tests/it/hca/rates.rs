//! Rates of requests by kind: of one queue pair, of the chip, and at the responder.

use crate::common::*;
use device::*;
use fabric::{Costs, PerSec, System};
use model::Faults;

/// A stream of requests of one rank.
#[derive(Clone, Copy)]
struct Stream {
    kind: Kind,
    len: usize,
    count: u64,
    inline: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Write,
    Send,
    Read,
    Atomic,
}

/// The requests per second of `pairs` ranks on one host, each with one queue pair, to another host.
fn rate(system: &System, pairs: u32, stream: Stream) -> f64 {
    let Stream {
        kind,
        len,
        count,
        inline,
    } = stream;
    let hosts: Vec<u32> = (0..2 * pairs).map(|rank| rank / pairs).collect();
    let times = play(
        system,
        &hosts,
        Faults::default(),
        1,
        move |mut node, rank| {
            let peer = (rank + pairs) % (2 * pairs);
            let wish = Wish {
                bytes: len.max(64),
                depth: 512,
                ..Wish::default()
            };
            let end = connect(&mut node, peer as usize, &wish);
            if rank >= pairs {
                if kind == Kind::Send {
                    for id in 0..count {
                        end.receive(&mut node, id, &[end.slice(0, len)]).unwrap();
                    }
                }
                node.oob_send(peer as usize, b"ready").unwrap();
                receive_oob(&mut node);
                return (0, 0);
            }
            receive_oob(&mut node);
            settle_down(&mut node);
            let before = node.turn().now();
            let operation = match kind {
                Kind::Write => Operation::Write {
                    to: end.remote(0),
                    immediate: None,
                },
                Kind::Send => Operation::Send { immediate: None },
                Kind::Read => Operation::Read {
                    from: end.remote(0),
                },
                Kind::Atomic => Operation::FetchAndAdd {
                    at: end.remote(0),
                    add: 1,
                },
            };
            for id in 0..count {
                end.post(&mut node, id, operation, &[end.slice(0, len)], inline, true)
                    .unwrap();
            }
            for id in 0..count {
                assert_eq!(end.completion(&mut node).id, id);
            }
            let after = node.turn().now();
            node.oob_send(peer as usize, b"done").unwrap();
            (before, after)
        },
    );
    let sending = &times[..pairs as usize];
    let first = sending.iter().map(|(before, _)| *before).min().unwrap();
    let last = sending.iter().map(|(_, after)| *after).max().unwrap();
    (u64::from(pairs) * count) as f64 / (last - first) as f64 * 1e12
}

fn within(rate: f64, limit: PerSec) {
    let limit = limit.0 as f64;
    assert!(
        rate < limit && rate > 0.9 * limit,
        "{rate:.3e} of {limit:.3e}"
    );
}

fn short(kind: Kind) -> Stream {
    let len = if kind == Kind::Atomic { 8 } else { 32 };
    let inline = matches!(kind, Kind::Write | Kind::Send);
    Stream {
        kind,
        len,
        count: 400,
        inline,
    }
}

#[test]
fn each_kind_of_request_has_its_rate_on_one_queue_pair() {
    let system = system("fdr");
    let hca = system.hca;
    within(rate(&system, 1, short(Kind::Write)), hca.message_rate);
    within(rate(&system, 1, short(Kind::Send)), hca.send_rate.unwrap());
    within(rate(&system, 1, short(Kind::Read)), hca.read_rate.unwrap());
    let rate = rate(&system, 1, short(Kind::Atomic));
    let limit = hca.atomic_rate.unwrap().0.min(hca.read_rate.unwrap().0);
    within(rate, PerSec(limit));
}

#[test]
fn many_queue_pairs_reach_the_rate_of_the_chip() {
    let system = system("fdr");
    let hca = system.hca;
    within(
        rate(&system, 16, short(Kind::Write)),
        hca.chip_rate.unwrap(),
    );
    within(
        rate(&system, 16, short(Kind::Read)),
        hca.answer_rate.unwrap(),
    );
    within(
        rate(&system, 8, short(Kind::Atomic)),
        hca.atomic_rate.unwrap(),
    );
    // A chip without a known rate is as fast as its queue pairs together.
    let system = crate::common::system("qdr");
    assert_eq!(system.hca.chip_rate, None);
    let one = rate(&system, 1, short(Kind::Write));
    let four = rate(&system, 4, short(Kind::Write));
    assert!(four > 3.5 * one, "{one:.3e} {four:.3e}");
}

#[test]
fn outstanding_reads_bound_the_bandwidth_of_reads() {
    let mut system = system("qdr");
    let read = Stream {
        kind: Kind::Read,
        len: 512,
        count: 200,
        inline: false,
    };
    let mut last = 0.0;
    for reads in [1, 2, 4] {
        system.hca.reads = reads;
        let rate = rate(&system, 1, read);
        assert!(
            rate > 1.9 * last,
            "{reads} reads: {rate:.3e} after {last:.3e}"
        );
        last = rate;
    }
}

#[test]
fn few_fetches_at_once_bound_a_stream_of_payloads() {
    let mut system = system("edr");
    let write = Stream {
        kind: Kind::Write,
        len: 256,
        count: 400,
        inline: false,
    };
    let latency = Costs::of(&system, 0).read_latency().picos() as f64;
    for prefetch in [1, 2] {
        system.hca.prefetch = Some(prefetch);
        let rate = rate(&system, 1, write);
        let limit = f64::from(prefetch) / latency * 1e12;
        assert!(
            rate < limit && rate > 0.75 * limit,
            "{prefetch}: {rate:.3e} of {limit:.3e}"
        );
    }
    system.hca.prefetch = None;
    let fast = rate(&system, 1, write);
    within(fast, system.hca.message_rate);
}
