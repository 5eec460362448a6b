//! Several pairs of processors: on a modelled machine, and as threads of two processes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;
use std::thread::scope;
use std::time::Duration;

use anyhow::{Context, Result};
use device::Node;
use fabric::catalogue::Catalogue;
use model::Faults;
use perf::benchmark::{Benchmark, TransportService};
use perf::measure::{Found, Sample};
use perf::pairs;
use perf::plan::PerfPlan;
use perf::stream::Stream;
use perf::target::modelled::{Machine, run};
use perf::target::remote::run_pair;
use results::Console;
use testdevice::strict::{Setup, nodes};

use crate::meeting::{accept, connect, listener};

const LONG: Duration = Duration::from_secs(60);

fn plan(benchmark: Benchmark, pairs: usize, size: usize) -> PerfPlan {
    PerfPlan {
        pairs,
        size: Some(size),
        iterations: Some(400),
        ..PerfPlan::new(benchmark, TransportService::Rc)
    }
}

fn on(system: &str, plan: &PerfPlan) -> Sample {
    let machine = Machine {
        system: Catalogue::builtin().system(system).unwrap(),
        faults: Faults::default(),
        seed: 1,
    };
    let console = Rc::new(RefCell::new(Console::new(1)));
    run(&machine, plan, console).unwrap().remove(0)
}

fn stream(sample: &Sample) -> Stream {
    match sample.found {
        Found::Stream(stream) => stream,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn pairs_add_up_until_the_chip_or_the_link_is_full() {
    let rate = |pairs| stream(&on("fdr", &plan(Benchmark::MsgRate, pairs, 8))).sent_rate;
    let one = rate(1);
    assert!((rate(4) / (4.0 * one) - 1.0).abs() < 0.02);
    // The message rate of a whole ConnectX-3 in its datasheet.
    assert!((rate(16) / 35e6 - 1.0).abs() < 0.03, "{}", rate(16));
    let bytes = |pairs| stream(&on("fdr", &plan(Benchmark::WriteBw, pairs, 65536))).sent_rate;
    assert!((bytes(3) / bytes(1) - 1.0).abs() < 0.02);
}

#[test]
fn messages_and_counts_are_those_of_all_pairs() {
    for benchmark in [Benchmark::SendBw, Benchmark::ReadBw, Benchmark::MsgRate] {
        let (one, three) = (plan(benchmark, 1, 1000), plan(benchmark, 3, 1000));
        let (one, three) = (on("qdr", &one), on("qdr", &three));
        assert_eq!(stream(&three).sent, 3 * stream(&one).sent);
        let (one, three) = (one.counts, three.counts);
        assert_eq!(three.requests.work_requests, 3 * one.requests.work_requests);
        let packets = |counts: perf::counts::Counts| counts.traffic.unwrap().packets;
        assert_eq!(packets(three), 3 * packets(one), "{benchmark:?}");
    }
}

#[test]
fn a_latency_is_of_one_pair() {
    let why = plan(Benchmark::WriteLat, 2, 8).check().unwrap_err();
    assert!(why.to_string().contains("--pairs"), "{why}");
}

type Nodes = Mutex<Vec<Box<dyn Node + Send>>>;
type Samples = Result<Vec<Sample>>;

/// The results of both sides; each pair of a side has its own device. If `broken`, the client has
/// one device too few.
fn both(plan: &PerfPlan, broken: bool) -> [Samples; 2] {
    let mut clients = nodes(2 * plan.pairs, &Setup::default());
    let servers: Nodes = Mutex::new(clients.split_off(plan.pairs));
    clients.truncate(plan.pairs - usize::from(broken));
    let clients: Nodes = Mutex::new(clients);
    let side = |links, nodes: &Nodes, is_client| {
        let pair = |link, seat, step: &mut dyn FnMut(usize)| {
            let taken = nodes.lock().unwrap().pop();
            let mut node = taken.context("there is no device for this pair")?;
            run_pair(node.rail(0), link, (is_client, seat), LONG, plan, step)
        };
        pairs::run(links, |_| (), pair)
    };
    let (mut listener, to) = listener();
    scope(|scope| {
        let server = scope.spawn(|| {
            let mut next = |_| accept(&mut listener, plan).unwrap();
            side((0..plan.pairs).map(&mut next).collect(), &servers, false)
        });
        let link_to = |_| connect(to, plan, LONG);
        let client = side((0..plan.pairs).map(link_to).collect(), &clients, true);
        [server.join().unwrap(), client]
    })
}

#[test]
fn pairs_of_two_processes_add_up() {
    let plan = PerfPlan {
        size: None,
        iterations: Some(20),
        ..plan(Benchmark::SendBw, 2, 8)
    };
    let [server, client] = both(&plan, false);
    let client = client.unwrap();
    assert_eq!((server.unwrap().len(), client.len()), (23, 23));
    for sample in &client {
        assert_eq!(stream(sample).sent, 2 * 20);
        assert!(stream(sample).sent_rate > 0.0);
        assert_eq!(sample.counts.requests.work_requests, 2 * 20);
    }
}

#[test]
fn the_failure_of_one_pair_ends_all() {
    let [server, client] = both(&plan(Benchmark::WriteBw, 3, 8), true);
    let why = client.unwrap_err().to_string();
    assert_eq!(why, "there is no device for this pair");
    assert!(server.is_err());
}
