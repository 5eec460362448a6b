//! Tests that on modelled machines the benchmarks measure what the physics predict.

use std::cell::RefCell;
use std::rc::Rc;

use fabric::catalogue::Catalogue;
use fabric::explain::{explain, total};
use fabric::limits::{both_ways, limits, one_way};
use fabric::{Bytes, Costs, Operation, System};
use model::{CALL, Faults};
use perf::benchmark::{Benchmark, TransportService};
use perf::measure::{Found, Latency, Sample};
use perf::plan::PerfPlan;
use perf::stream::Stream;
use perf::target::modelled::{Machine, run};
use results::Console;

fn catalogue() -> Vec<(String, System)> {
    let catalogue = Catalogue::builtin();
    let systems = catalogue.entries().filter(|entry| entry.kind == "system");
    systems
        .map(|entry| (entry.name.to_owned(), catalogue.system(entry.name).unwrap()))
        .collect()
}

fn qdr() -> System {
    Catalogue::builtin().system("qdr").unwrap()
}

fn measured(system: &System, plan: &PerfPlan) -> Vec<Sample> {
    with_faults(system, plan, Faults::default())
}

fn with_faults(system: &System, plan: &PerfPlan, faults: Faults) -> Vec<Sample> {
    let machine = Machine {
        system: *system,
        faults,
        seed: 1,
    };
    run(&machine, plan, Rc::new(RefCell::new(Console::new(1)))).unwrap()
}

fn latency(system: &System, plan: &PerfPlan) -> Latency {
    match measured(system, plan)[0].found {
        Found::Latency(latency) => latency,
        ref other => panic!("{other:?}"),
    }
}

fn stream(system: &System, plan: &PerfPlan) -> Stream {
    match measured(system, plan)[0].found {
        Found::Stream(stream) => stream,
        ref other => panic!("{other:?}"),
    }
}

fn of_size(benchmark: Benchmark, size: usize) -> PerfPlan {
    PerfPlan {
        size: Some(size),
        iterations: Some(40),
        ..PerfPlan::new(benchmark, TransportService::Rc)
    }
}

fn picos(micros: f64) -> u64 {
    (micros * 1e6).round() as u64
}

const SIZES: [usize; 6] = [2, 8, 64, 200, 5000, 100_000];

/// One message takes the time that `fishplate fabric explain` shows, on each machine of the catalogue.
#[test]
fn latencies_are_to_the_picosecond_what_the_table_explains() {
    let cases = [
        (Benchmark::WriteLat, Operation::Write),
        (Benchmark::SendLat, Operation::Send),
        (Benchmark::ReadLat, Operation::Read),
    ];
    for (name, system) in catalogue() {
        let costs = Costs::of(&system, 0);
        for (benchmark, operation) in cases {
            for size in SIZES {
                let found = latency(&system, &of_size(benchmark, size));
                let rows = explain(&costs, Bytes(size as u64), operation, system.most_hops());
                let mut expected = total(&rows).picos();
                // A read in the table ends with its last byte; in perftest it ends with its
                // completion, which is written later: a poll at the arrival of the byte finds no
                // completion and is repeated.
                if operation == Operation::Read {
                    expected += costs.completion().picos().max(CALL);
                }
                let found = [found.min, found.median, found.p99, found.max].map(picos);
                let what = format!("{name}, {benchmark:?} of {size} bytes");
                // If a read's poll is in progress when the byte arrives, the next one, which finds
                // the completion, begins earlier.
                let sooner = match operation {
                    Operation::Read => CALL,
                    _ => 0,
                };
                for time in found {
                    assert!(
                        (expected - sooner..=expected).contains(&time),
                        "{what}: {time}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn long_streams_reach_what_the_narrowest_resource_carries() {
    for (name, system) in catalogue() {
        let costs = Costs::of(&system, 0);
        for size in [65536, 4 << 20] {
            let limits = limits(&costs, Bytes(size as u64));
            let one = one_way(&limits).unwrap().one_way.as_mb_per_sec();
            let both = both_ways(&limits).unwrap().both_ways.as_mb_per_sec();
            let share = |benchmark, bidirectional, limit: f64| {
                // Until the first message of 64 KiB has arrived, up to four others would have
                // occupied the link: at 800 Gb/s, or behind a card with long delays.
                let iterations = Some(if size > 65536 { 10 } else { 240 });
                let plan = PerfPlan {
                    bidirectional,
                    iterations,
                    ..of_size(benchmark, size)
                };
                let rate = stream(&system, &plan).sent_rate * size as f64 / 1e6;
                assert!(
                    rate < 1.001 * limit,
                    "{name}, {benchmark:?} of {size} bytes: {rate} of {limit} MB/s"
                );
                rate / limit
            };
            let written = share(Benchmark::WriteBw, false, one);
            let sent = share(Benchmark::SendBw, false, one);
            assert!(
                written > 0.97 && sent > 0.96,
                "{name}, {size} bytes: {written} {sent}"
            );
            let both = share(Benchmark::WriteBw, true, both);
            assert!(both > 0.90, "{name}, {size} bytes both ways: {both}");
        }
    }
}

#[test]
fn every_benchmark_runs_on_every_transport_that_can() {
    let system = qdr();
    for benchmark in Benchmark::OF_DEVICES {
        for &transport in benchmark.transports() {
            let plan = PerfPlan {
                iterations: Some(8),
                ..PerfPlan::new(benchmark, transport)
            };
            let plans = match benchmark.is_latency() {
                true => vec![plan],
                false => vec![
                    PerfPlan {
                        bidirectional: true,
                        ..plan.clone()
                    },
                    PerfPlan {
                        qps: 3,
                        ..plan.clone()
                    },
                    plan,
                ],
            };
            for plan in plans {
                let samples = measured(&system, &plan);
                assert!(!samples.is_empty(), "{plan:?}");
                for sample in &samples {
                    match &sample.found {
                        Found::Latency(found) => assert!(found.min > 0.1, "{plan:?} {sample:?}"),
                        Found::Stream(found) => {
                            let directions = 1 + usize::from(plan.bidirectional);
                            let all = directions * plan.qps * sample.iterations;
                            assert_eq!(found.sent, all, "{plan:?} {sample:?}");
                            assert!(found.sent_rate > 0.0);
                            if let Some((received, _)) = found.received {
                                assert_eq!(received, all, "{plan:?} {sample:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn shared_receive_queues_serve_all_queue_pairs() {
    for (benchmark, transport, qps) in [
        (Benchmark::SendLat, TransportService::Rc, 1),
        (Benchmark::SendLat, TransportService::Uc, 1),
        (Benchmark::SendBw, TransportService::Rc, 4),
        (Benchmark::SendBw, TransportService::Uc, 3),
    ] {
        let plan = PerfPlan {
            srq: true,
            qps,
            iterations: Some(50),
            size: Some(64),
            ..PerfPlan::new(benchmark, transport)
        };
        match measured(&qdr(), &plan)[0].found {
            Found::Latency(found) => assert!(found.min > 0.1),
            Found::Stream(found) => assert_eq!(found.received.unwrap().0, 50 * qps, "{plan:?}"),
        }
    }
}

#[test]
fn what_is_lost_shows_at_the_receiver_alone() {
    let faults = Faults {
        loss: 100_000,
        ..Faults::default()
    };
    for transport in [TransportService::Uc, TransportService::Ud] {
        for bidirectional in [false, true] {
            let plan = PerfPlan {
                size: Some(1024),
                iterations: Some(500),
                bidirectional,
                ..PerfPlan::new(Benchmark::SendBw, transport)
            };
            let Found::Stream(found) = with_faults(&qdr(), &plan, faults)[0].found else {
                panic!("a stream");
            };
            let (received, rate) = found.received.unwrap();
            let share = received as f64 / found.sent as f64;
            assert!(
                (0.85..0.95).contains(&share),
                "{transport:?}: {received} of {}",
                found.sent
            );
            assert!(
                rate < found.sent_rate,
                "{transport:?}: {rate} of {}",
                found.sent_rate
            );
        }
    }
}

/// With too few receives for fast datagrams, the other datagrams are lost, and the benchmark does
/// not wait for them.
#[test]
fn datagrams_without_a_receive_are_lost() {
    let plan = PerfPlan {
        rx_depth: Some(8),
        iterations: Some(1000),
        size: Some(64),
        ..PerfPlan::new(Benchmark::SendBw, TransportService::Ud)
    };
    let Found::Stream(found) = measured(&qdr(), &plan)[0].found else {
        panic!("a stream")
    };
    let received = found.received.unwrap().0;
    assert!(received < 900 && received > 8, "{received}");
}

#[test]
fn a_lost_message_is_reported() {
    let machine = Machine {
        system: qdr(),
        faults: Faults {
            loss: 500_000,
            ..Faults::default()
        },
        seed: 1,
    };
    let plan = PerfPlan::new(Benchmark::SendLat, TransportService::Ud);
    let error = run(&machine, &plan, Rc::new(RefCell::new(Console::new(1)))).unwrap_err();
    assert!(
        error.to_string().contains("a message was lost"),
        "{error:#}"
    );
}

#[test]
fn a_failed_queue_pair_is_reported_with_its_reason() {
    let faults = Faults {
        breaks: 100_000,
        ..Faults::default()
    };
    let machine = Machine {
        system: qdr(),
        faults,
        seed: 1,
    };
    for benchmark in [Benchmark::WriteLat, Benchmark::WriteBw, Benchmark::ReadLat] {
        let error = run(
            &machine,
            &of_size(benchmark, 8),
            Rc::new(RefCell::new(Console::new(1))),
        )
        .unwrap_err();
        assert!(error.to_string().contains("queue pair"), "{error:#}");
    }
}

/// A packet of a smaller MTU carries less, so more headers are sent.
#[test]
fn a_smaller_mtu_costs_bandwidth() {
    let system = Catalogue::builtin().system("edr").unwrap();
    let at = |mtu| {
        stream(
            &system,
            &PerfPlan {
                mtu,
                ..of_size(Benchmark::WriteBw, 1 << 20)
            },
        )
        .sent_rate
    };
    assert!(
        at(Some(256)) < 0.95 * at(None),
        "{} {}",
        at(Some(256)),
        at(None)
    );
}

#[test]
fn inline_payloads_save_the_read_from_memory() {
    let at = |inline| {
        latency(
            &qdr(),
            &PerfPlan {
                inline,
                ..of_size(Benchmark::WriteLat, 8)
            },
        )
        .median
    };
    assert!(at(Some(0)) > at(None) + 0.1);
    assert_eq!(at(Some(64)), at(None));
}

#[test]
fn the_same_words_find_the_same() {
    let faults = Faults {
        loss: 20_000,
        ..Faults::default()
    };
    let plan = PerfPlan {
        iterations: Some(200),
        ..PerfPlan::new(Benchmark::SendBw, TransportService::Ud)
    };
    assert_eq!(
        with_faults(&qdr(), &plan, faults),
        with_faults(&qdr(), &plan, faults)
    );
}

#[test]
fn what_a_message_costs_is_counted() {
    use fabric::packet::{ACKNOWLEDGEMENT, PLAIN, READ_REQUEST, RETH};
    let mtu = qdr().hca.mtu.0;
    for benchmark in [
        Benchmark::WriteLat,
        Benchmark::SendLat,
        Benchmark::ReadLat,
        Benchmark::WriteBw,
    ] {
        for size in [8, 5000, 100_000] {
            let plan = of_size(benchmark, size);
            let counts = measured(&qdr(), &plan)[0].counts;
            let traffic = counts.traffic.unwrap();
            let there_and_back = matches!(benchmark, Benchmark::WriteLat | Benchmark::SendLat);
            let messages = if there_and_back { 80 } else { 40 };
            let packets = fabric::packet::packets(Bytes(size as u64), Bytes(mtu));
            let payload = size as u64 + packets * PLAIN;
            let (packets, acknowledgements, bytes) = match benchmark {
                // Read responses have an extended header in the first packet and in the last.
                Benchmark::ReadLat => {
                    let ends = packets.min(2) * fabric::packet::AETH;
                    (packets + 1, 0, payload + READ_REQUEST + ends)
                }
                Benchmark::SendLat => (packets + 1, 1, payload + ACKNOWLEDGEMENT),
                _ => (packets + 1, 1, payload + RETH + ACKNOWLEDGEMENT),
            };
            assert_eq!(traffic.packets, messages * packets, "{benchmark:?} {size}");
            assert_eq!(traffic.acknowledgements, messages * acknowledgements);
            assert_eq!(traffic.bytes, messages * bytes, "{benchmark:?} {size}");
            assert_eq!(counts.requests.work_requests, messages);
        }
    }
}
