//! Tests with two sides that connect over TCP, on a device that carries out every request at once.

use std::thread::spawn;
use std::time::Duration;

use anyhow::Result;
use device::Placement;
use perf::benchmark::{Benchmark, TransportService};
use perf::measure::{Found, Sample};
use perf::plan::PerfPlan;
use perf::target::remote::run;
use testdevice::strict::{Setup, nodes};

use crate::meeting::{accept, connect, listener};

const LONG: Duration = Duration::from_secs(60);

/// The results of the server and of the client.
fn both(
    plan: &PerfPlan,
    setup: &Setup,
    patience: Duration,
) -> (Result<Vec<Sample>>, Result<Vec<Sample>>) {
    let mut nodes = nodes(2, setup).into_iter();
    let (mut here, mut there) = (nodes.next().unwrap(), nodes.next().unwrap());
    let (mut listener, to) = listener();
    let own = plan.clone();
    let server = spawn(move || {
        let link = accept(&mut listener, &own)?;
        run(there.rail(0), link, false, patience, &own, &mut |_| ())
    });
    let link = connect(to, plan, LONG);
    let client = run(here.rail(0), link, true, patience, plan, &mut |_| ());
    (server.join().unwrap(), client)
}

#[test]
fn every_benchmark_runs_between_two_ends() {
    for placement in [Placement::Ordered, Placement::Completion] {
        let setup = Setup {
            placement,
            ..Setup::default()
        };
        for benchmark in Benchmark::OF_DEVICES {
            // This device has no datagrams.
            let transports = benchmark
                .transports()
                .iter()
                .filter(|one| **one != TransportService::Ud);
            for &transport in transports {
                let size = (benchmark != Benchmark::AtomicLat).then_some(200);
                let plan = PerfPlan {
                    iterations: Some(20),
                    size,
                    ..PerfPlan::new(benchmark, transport)
                };
                let (server, client) = both(&plan, &setup, LONG);
                let (server, client) = (server.unwrap(), client.unwrap());
                assert_eq!((server.len(), client.len()), (1, 1));
                match &client[0].found {
                    Found::Latency(found) => {
                        let all = [found.min, found.median, found.p99, found.p999, found.max];
                        assert!(all.is_sorted() && found.min >= 0.0, "{plan:?} {found:?}");
                    }
                    Found::Stream(found) => assert_eq!(found.sent, 20, "{plan:?}"),
                }
            }
        }
    }
}

#[test]
fn all_sizes_follow_each_other() {
    for benchmark in [Benchmark::WriteLat, Benchmark::SendBw] {
        let plan = PerfPlan {
            iterations: Some(2),
            ..PerfPlan::new(benchmark, TransportService::Rc)
        };
        let (server, client) = both(&plan, &Setup::default(), LONG);
        assert_eq!((server.unwrap().len(), client.unwrap().len()), (23, 23));
    }
}

#[test]
fn streams_go_both_ways_over_several_queue_pairs() {
    for benchmark in [Benchmark::WriteBw, Benchmark::SendBw, Benchmark::ReadBw] {
        let plan = PerfPlan {
            qps: 3,
            bidirectional: true,
            size: Some(1000),
            iterations: Some(300),
            ..PerfPlan::new(benchmark, TransportService::Rc)
        };
        let (server, client) = both(&plan, &Setup::default(), LONG);
        assert_eq!(server.unwrap(), client.as_ref().unwrap().clone());
        let Found::Stream(found) = &client.unwrap()[0].found else {
            panic!("a stream");
        };
        assert_eq!(found.sent, 2 * 3 * 300);
    }
}

/// If only one device refuses an option, the other side reports it too.
#[test]
fn why_one_end_gave_up_is_told_at_the_other() {
    let plan = PerfPlan {
        inline: Some(100),
        ..PerfPlan::new(Benchmark::WriteLat, TransportService::Rc)
    };
    let mut narrow = nodes(
        1,
        &Setup {
            inline: 8,
            ..Setup::default()
        },
    )
    .remove(0);
    let mut wide = nodes(
        1,
        &Setup {
            inline: 200,
            ..Setup::default()
        },
    )
    .remove(0);
    let (mut listener, to) = listener();
    let own = plan.clone();
    let server = spawn(move || {
        let link = accept(&mut listener, &own)?;
        run(narrow.rail(0), link, false, LONG, &own, &mut |_| ())
    });
    let link = connect(to, &plan, LONG);
    let client = run(wide.rail(0), link, true, LONG, &plan, &mut |_| ());
    let server = format!("{:#}", server.join().unwrap().unwrap_err());
    let client = format!("{:#}", client.unwrap_err());
    assert!(server.contains("at most 8 bytes"), "{server}");
    assert!(
        client.contains("the other side failed: --inline 100"),
        "{client}"
    );
}

/// The other side sends its greeting, and then nothing more.
#[test]
fn silence_ends() {
    let plan = PerfPlan::new(Benchmark::WriteLat, TransportService::Rc);
    let (mut listener, to) = listener();
    let own = plan.clone();
    let server = spawn(move || accept(&mut listener, &own));
    let short = Duration::from_millis(300);
    let link = connect(to, &plan, short);
    let silent = server.join().unwrap().unwrap();
    let mut node = nodes(1, &Setup::default()).remove(0);
    let error = run(node.rail(0), link, true, short, &plan, &mut |_| ()).unwrap_err();
    assert!(
        format!("{error:#}").contains("sent nothing for 0.3 s"),
        "{error:#}"
    );
    drop(silent);
}
