//! Tests of the benchmarks of sockets, on modelled machines and between two sides on this host.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::spawn;
use std::time::Duration;

use anyhow::Result;
use fabric::System;
use fabric::catalogue::Catalogue;
use model::Faults;
use perf::benchmark::Benchmark;
use perf::measure::{Found, Latency, Sample};
use perf::plan::{IpMode, PerfPlan};
use perf::show::{TargetResults, json, table};
use perf::sockets::{Incoming, Sockets, modelled, read_stream, real};
use perf::stream::Stream;
use perf::target::modelled::Machine;
use results::Console;

use crate::meeting::{accept, connect, listener};

const LONG: Duration = Duration::from_secs(60);

fn qdr() -> System {
    Catalogue::builtin().system("qdr").unwrap()
}

fn plan(benchmark: Benchmark, ip: Option<IpMode>) -> PerfPlan {
    PerfPlan {
        ip,
        ..PerfPlan::new(benchmark, benchmark.transports()[0])
    }
}

fn measured(system: System, plan: &PerfPlan, faults: Faults) -> Result<Vec<Sample>> {
    let machine = Machine {
        system,
        faults,
        seed: 1,
    };
    modelled::run(&machine, plan, Rc::new(RefCell::new(Console::new(1))))
}

fn stream(system: System, plan: &PerfPlan, faults: Faults) -> (Stream, Sample) {
    let sample = measured(system, plan, faults).unwrap().remove(0);
    match sample.found {
        Found::Stream(found) => (found, sample),
        ref other => panic!("{other:?}"),
    }
}

fn latency(system: System, plan: &PerfPlan) -> Latency {
    match measured(system, plan, Faults::default()).unwrap()[0].found {
        Found::Latency(found) => found,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn every_benchmark_runs_in_both_modes_and_repeats() {
    for benchmark in Benchmark::OF_SOCKETS {
        for ip in [IpMode::Datagram, IpMode::Connected] {
            for (size, bidirectional) in [(1, false), (2000, true), (60_000, false), (60_000, true)]
            {
                let plan = PerfPlan {
                    size: Some(size),
                    iterations: Some(30),
                    bidirectional: bidirectional && !benchmark.is_latency(),
                    ..plan(benchmark, Some(ip))
                };
                let samples = measured(qdr(), &plan, Faults::default()).unwrap();
                assert_eq!(samples.len(), 1);
                check(&plan, &samples[0]);
                let again = measured(qdr(), &plan, Faults::default()).unwrap();
                assert_eq!(samples, again, "{plan:?}");
            }
        }
    }
}

/// Checks that the figures of a modelled machine are possible.
fn check(plan: &PerfPlan, sample: &Sample) {
    match &sample.found {
        Found::Latency(found) => assert!(found.min > 5.0 && found.max >= found.min, "{sample:?}"),
        Found::Stream(found) => {
            let ways = 1 + usize::from(plan.bidirectional);
            assert_eq!(found.sent, ways * 30);
            let (received, rate) = found.received.unwrap();
            assert_eq!(received, found.sent, "{plan:?} {sample:?}");
            // The Gen2 slot carries 3.4 GB/s in each direction.
            let most = ways as f64 * 3.4e9;
            assert!(
                rate > 0.0 && rate * (sample.size as f64) < most,
                "{sample:?}"
            );
        }
    }
}

/// The mode with longer packets has the higher bandwidth; short messages take equally long.
#[test]
fn connected_mode_has_the_higher_bandwidth_and_the_same_latency() {
    let of = |benchmark, ip, size| PerfPlan {
        size: Some(size),
        iterations: Some(100),
        ..plan(benchmark, Some(ip))
    };
    let bw = |ip| {
        let plan = of(Benchmark::TcpBw, ip, 65_536);
        stream(qdr(), &plan, Faults::default()).0.sent_rate
    };
    assert!(bw(IpMode::Connected) > 2.0 * bw(IpMode::Datagram));
    let lat = |ip| latency(qdr(), &of(Benchmark::TcpLat, ip, 8)).median;
    let ratio = lat(IpMode::Connected) / lat(IpMode::Datagram);
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

/// The copies of processors and the host's memory bound connected mode, and the work for each packet
/// bounds datagram mode: the link has time left.
#[test]
fn the_host_and_not_the_link_bounds_ip() {
    for (ip, bounds) in [
        (IpMode::Connected, &["copies", "memory"][..]),
        (IpMode::Datagram, &["kernel"][..]),
    ] {
        let plan = PerfPlan {
            size: Some(1 << 20),
            iterations: Some(20),
            bidirectional: true,
            ..plan(Benchmark::TcpBw, Some(ip))
        };
        let (_, sample) = stream(qdr(), &plan, Faults::default());
        let first = &sample.uses[0];
        assert!(bounds.contains(&first.resource), "{:?}", sample.uses);
        let link = sample.uses.iter().find(|one| one.resource == "link");
        assert!(
            first.share > 0.9 && link.unwrap().share < 0.8,
            "{:?}",
            sample.uses
        );
    }
}

/// A receiver that is slower than its sender loses datagrams, and the sender does not notice.
#[test]
fn datagrams_that_outrun_the_receiver_are_lost() {
    let plan = PerfPlan {
        size: Some(64),
        iterations: Some(2000),
        ..plan(Benchmark::UdpBw, Some(IpMode::Datagram))
    };
    let slow = Faults {
        slow: Some((35, 500)),
        ..Faults::default()
    };
    let (found, _) = stream(qdr(), &plan, slow);
    let (received, rate) = found.received.unwrap();
    assert_eq!(found.sent, 2000);
    assert!((100..1900).contains(&received), "{received}");
    assert!(rate < 0.8 * found.sent_rate, "{rate} {}", found.sent_rate);
    let (calm, _) = stream(qdr(), &plan, Faults::default());
    assert!(calm.received.unwrap().0 > received + 200, "{calm:?}");
}

#[test]
fn what_a_network_loses_tcp_sends_again_and_udp_does_not() {
    let faults = Faults {
        loss: 20_000,
        ..Faults::default()
    };
    let of = |benchmark| PerfPlan {
        size: Some(4096),
        iterations: Some(500),
        ..plan(benchmark, Some(IpMode::Datagram))
    };
    let received = |benchmark| stream(qdr(), &of(benchmark), faults).0.received.unwrap().0;
    assert_eq!(received(Benchmark::TcpBw), 500);
    assert!((300..500).contains(&received(Benchmark::UdpBw)));
    let why = measured(qdr(), &of(Benchmark::UdpLat), faults).unwrap_err();
    assert!(why.to_string().contains("a message was lost"), "{why:#}");
}

#[test]
fn interrupts_that_wait_for_packets_cost_latency() {
    let plan = PerfPlan {
        size: Some(8),
        iterations: Some(20),
        ..plan(Benchmark::UdpLat, Some(IpMode::Datagram))
    };
    let mut late = qdr();
    late.kernel.coalesce = fabric::Nanos::from_picos(16_000_000);
    let more = latency(late, &plan).median - latency(qdr(), &plan).median;
    assert!((more - 16.0).abs() < 1e-6, "{more}");
}

/// The results of the server and of the client, which are two threads of this process.
fn both(plan: &PerfPlan) -> (Result<Vec<Sample>>, Result<Vec<Sample>>) {
    let (mut listener, to) = listener();
    let own = plan.clone();
    let server = spawn(move || {
        let link = accept(&mut listener, &own)?;
        real::run(link, false, LONG, &own, &mut || ())
    });
    let link = connect(to, plan, LONG);
    let client = real::run(link, true, LONG, plan, &mut || ());
    (server.join().unwrap(), client)
}

#[test]
fn every_benchmark_runs_between_two_ends_of_this_host() {
    for benchmark in Benchmark::OF_SOCKETS {
        for bidirectional in [false, true] {
            let plan = PerfPlan {
                iterations: Some(200),
                size: Some(3000),
                bidirectional: bidirectional && !benchmark.is_latency(),
                ..plan(benchmark, None)
            };
            let (server, client) = both(&plan);
            let (server, client) = (server.unwrap(), client.unwrap());
            assert_eq!((server.len(), client.len()), (1, 1));
            match &client[0].found {
                Found::Latency(found) => assert!(found.min > 0.0, "{found:?}"),
                Found::Stream(found) => {
                    assert_eq!(server[0].found, client[0].found);
                    let all = 200 * (1 + usize::from(plan.bidirectional));
                    let received = found.received.unwrap().0;
                    assert_eq!(found.sent, all);
                    // A loaded host may lose datagrams.
                    match benchmark {
                        Benchmark::TcpBw => assert_eq!(received, all),
                        _ => assert!((1..=all).contains(&received), "{received}"),
                    }
                }
            }
        }
    }
}

/// A socket whose bytes have all arrived when the reader begins.
struct Waiting {
    bytes: usize,
    now: u64,
}

impl Sockets for Waiting {
    fn clock(&mut self) -> u64 {
        self.now += 1000;
        self.now
    }

    fn send(&mut self, _: &[u8]) -> Result<()> {
        panic!("this side sends nothing")
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        let count = into.len().min(self.bytes);
        self.bytes -= count;
        Ok(count)
    }

    fn try_receive(&mut self, into: &mut [u8]) -> Result<Option<usize>> {
        self.receive(into).map(Some)
    }
}

/// A reader that runs late still finds a time between its reads.
#[test]
fn no_stream_of_many_messages_comes_in_one_read() {
    for (size, messages, reads) in [(2, 20_000, 16), (3000, 200, 16), (1 << 20, 64, 64)] {
        let stream = Incoming {
            size,
            messages,
            is_reliable: true,
        };
        let bytes = size * messages;
        let mut waiting = Waiting { bytes, now: 0 };
        let found = read_stream(&mut waiting, stream, || None).unwrap();
        assert_eq!(
            (found.messages, found.timed, found.picos),
            (messages, bytes - bytes / reads, (reads as u64 - 1) * 1000)
        );
    }
}

#[test]
fn all_sizes_follow_each_other() {
    let plan = PerfPlan {
        iterations: Some(4),
        ..plan(Benchmark::TcpLat, None)
    };
    let (server, client) = both(&plan);
    assert_eq!((server.unwrap().len(), client.unwrap().len()), (23, 23));
}

#[test]
fn what_sockets_cannot_do_is_refused() {
    let wrong = |plan: PerfPlan| {
        let why = plan.check().and_then(|()| plan.sizes(0).map(drop));
        why.unwrap_err().to_string()
    };
    let large = PerfPlan {
        size: Some(70_000),
        ..plan(Benchmark::UdpBw, None)
    };
    assert_eq!(
        wrong(large),
        "--size 70000: a datagram of UDP has at most 65507 bytes"
    );
    let both = PerfPlan {
        bidirectional: true,
        ..plan(Benchmark::TcpLat, None)
    };
    assert!(wrong(both).starts_with("--bidirectional is not for tcp-lat"));
    let other = PerfPlan {
        transport: perf::benchmark::TransportService::Rc,
        ..plan(Benchmark::TcpBw, None)
    };
    assert_eq!(
        wrong(other),
        "--transport rc: it has no sends, which tcp-bw needs; valid: tcp"
    );
}

#[test]
fn the_busiest_resource_is_shown() {
    let plan = PerfPlan {
        size: Some(65_536),
        iterations: Some(50),
        ..plan(Benchmark::TcpBw, Some(IpMode::Connected))
    };
    let samples = measured(qdr(), &plan, Faults::default()).unwrap();
    let all = [TargetResults {
        label: "qdr".into(),
        modelled: true,
        samples,
    }];
    let shown = table(&plan, &all);
    assert!(
        shown.starts_with("tcp-bw, tcp, connected mode, qdr, MB"),
        "{shown}"
    );
    assert!(
        shown.contains("qdr: the busiest resource at 64 KiB is copies, "),
        "{shown}"
    );
    let line: serde_json::Value = serde_json::from_str(json(&plan, &all, None).trim()).unwrap();
    assert_eq!(
        (&line["ip"], &line["fabric"]),
        (&"connected".into(), &"qdr".into())
    );
    assert!(line["usage"]["copies"].as_f64() > line["usage"]["link"].as_f64());
    assert!(
        line["counts"].is_null(),
        "sockets make no work requests of their own"
    );
}
