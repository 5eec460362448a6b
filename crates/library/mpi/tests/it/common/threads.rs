//! Ranks as threads of one process, over real shared memory and over devices of this process.
//!
//! A rank that panics fails its test, not the process. Its thread stops where it panicked and keeps
//! its memory, since peers may still write to it; its peers may wait for it until the process ends.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use channel::Peers;
use device::{Node, Placement};
use mpi::{Rank, Wiring, WorkTimes};
use pmi::{Hosts, Standalone};
use testdevice::strict::{self, Setup};

/// Time limit of one run of a program. The longest takes some seconds on a machine with two cores;
/// only ranks that wait for ever reach the limit.
const LIMIT: Duration = Duration::from_secs(300);

/// Program of every rank.
type Program = Arc<dyn Fn(&Arc<Rank>) + Send + Sync>;

/// Runs `program` on `size` ranks over shared memory only, over RDMA only, and over both. Settings
/// of RDMA run over RDMA only, on devices that do all that devices may.
pub(crate) fn run_with(
    size: usize,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync + 'static,
) {
    let about_rdma =
        |(name, _): &(&str, &str)| name.contains("RDMA") || name.contains("RENDEZVOUS");
    let program: Program = Arc::new(program);
    let remote = |setup: &Setup| run_on_devices(size, settings, setup, program.clone());
    remote(&Setup::default());
    if !settings.iter().any(about_rdma) {
        run_on_hosts(size, settings, program.clone());
        return run_on_segment(size, settings, program);
    }
    for placement in [Placement::Ordered, Placement::Completion] {
        remote(&Setup {
            placement,
            inline: 0,
            delays: true,
            ..Setup::default()
        });
    }
}

/// [`run_with`] the default settings.
pub(crate) fn run(size: usize, program: impl Fn(&Arc<Rank>) + Send + Sync + 'static) {
    run_with(size, &[], program);
}

/// Runs `program` over shared memory only.
pub(crate) fn run_shared(
    size: usize,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync + 'static,
) {
    run_on_segment(size, settings, Arc::new(program));
}

/// Runs `program` over RDMA only, by devices of this process that fail a message without a receive.
pub(crate) fn run_remote(
    size: usize,
    settings: &[(&str, &str)],
    setup: &Setup,
    program: impl Fn(&Arc<Rank>) + Send + Sync + 'static,
) {
    run_on_devices(size, settings, setup, Arc::new(program));
}

/// Runs `program` over RDMA only, by these nodes, one for each rank.
pub(crate) fn run_nodes(
    nodes: Vec<Box<dyn Node + Send>>,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync + 'static,
) {
    run_on_nodes(nodes, settings, Arc::new(program));
}

fn run_on_segment(size: usize, settings: &[(&str, &str)], program: Program) {
    let segment = pmi::empty_segment().unwrap();
    let reach = |_| (Some(segment.try_clone().unwrap()), None);
    run_over(&vec![0; size], &vec![size; size], settings, reach, program);
}

fn run_on_devices(size: usize, settings: &[(&str, &str)], setup: &Setup, program: Program) {
    let setup = Setup {
        patient: false,
        ..setup.clone()
    };
    run_on_nodes(strict::nodes(size, &setup), settings, program);
}

fn run_on_nodes(nodes: Vec<Box<dyn Node + Send>>, settings: &[(&str, &str)], program: Program) {
    let size = nodes.len();
    let mut nodes = nodes.into_iter();
    let reach = |_| (None, nodes.next());
    run_over(&vec![0; size], &vec![size; size], settings, reach, program);
}

/// Runs on two hosts with alternate ranks: shared memory in each, devices between them. Ranks sleep
/// where the settings allow it, so that both kinds of transport must wake them.
fn run_on_hosts(size: usize, settings: &[(&str, &str)], program: Program) {
    let setup = Setup {
        placement: Placement::Completion,
        patient: false,
        ..Setup::default()
    };
    let hosts: Vec<u32> = (0..size as u32).map(|rank| rank % 2).collect();
    let mut settings = settings.to_vec();
    if settings.iter().all(|(name, _)| *name != "FISHPLATE_WAIT") {
        settings.push(("FISHPLATE_WAIT", "sleep"));
    }
    let segments = [0, 1].map(|_| pmi::empty_segment().unwrap());
    let mut nodes = strict::nodes(size, &setup).into_iter();
    let reach = |rank: usize| {
        let segment = segments[rank % 2].try_clone().unwrap();
        (Some(segment), nodes.next())
    };
    run_over(&hosts, &vec![size; size], &settings, reach, program);
}

/// Runs `program` on ranks that know only some of the ranks at their start: as many as `known` says
/// for each. Those on one host share memory; a rank without a node gets one from its program.
pub(crate) fn run_growing(
    nodes: Vec<Option<Box<dyn Node + Send>>>,
    hosts: &[u32],
    known: &[usize],
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync + 'static,
) {
    let segments: Vec<OwnedFd> = hosts
        .iter()
        .map(|_| pmi::empty_segment().unwrap())
        .collect();
    let mut nodes = nodes.into_iter();
    let reach = |rank: usize| {
        let host = hosts[rank];
        let is_shared = hosts.iter().filter(|other| **other == host).count() > 1;
        let segment = is_shared.then(|| segments[host as usize].try_clone().unwrap());
        (segment, nodes.next().unwrap())
    };
    run_over(hosts, known, settings, reach, Arc::new(program));
}

/// Runs `program` on a rank for each of `hosts`, which knows as many ranks at its start as `known`
/// says.
fn run_over(
    hosts: &[u32],
    known: &[usize],
    settings: &[(&str, &str)],
    mut reach: impl FnMut(usize) -> (Option<OwnedFd>, Option<Box<dyn Node + Send>>),
    program: Program,
) {
    let size = hosts.len();
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let (reports, ended) = channel();
    for rank in 0..size {
        let (segment, node) = reach(rank);
        let known = known[rank];
        let (hosts, settings) = (Hosts::new(hosts[..known].to_vec()), settings.clone());
        let (program, reports) = (program.clone(), reports.clone());
        let body = move || {
            let knobs = knobs::Knobs::parse(settings.into_iter()).unwrap();
            let wiring = Wiring {
                peers: Peers {
                    node: node.map(|node| node as Box<dyn Node>),
                    ..Peers::new(rank, known).sharing(hosts.beside(rank), segment)
                },
                bootstrap: Arc::new(Standalone::new(rank, hosts)),
                work: WorkTimes::default(),
                choices: None,
            };
            let state = Arc::new(Rank::new(Some(wiring), knobs).unwrap());
            let ended = catch_unwind(AssertUnwindSafe(|| {
                program(&state);
                state.finish("MPI_Finalize").unwrap();
            }));
            if ended.is_err() {
                let _ = reports.send((rank, Ended::Panicked));
                // Peers may still use this rank's memory.
                loop {
                    std::thread::park();
                }
            }
            drop((state, program));
            let _ = reports.send((rank, Ended::Well));
        };
        let thread = std::thread::Builder::new().name(format!("rank {rank}"));
        thread.spawn(body).unwrap();
    }
    let until = Instant::now() + LIMIT;
    let mut running: Vec<usize> = (0..size).collect();
    while !running.is_empty() {
        match ended.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((rank, Ended::Well)) => running.retain(|other| *other != rank),
            Ok((rank, Ended::Panicked)) => panic!("rank {rank} panicked: its message is above"),
            Err(_) => panic!("ranks {running:?} of {size} have not ended within {LIMIT:?}"),
        }
    }
}

/// Outcome of a rank's program.
enum Ended {
    Well,
    Panicked,
}

/// The peer of the rank that panics waits for ever, asleep.
#[test]
#[should_panic(expected = "rank 1 panicked")]
fn a_rank_that_panics_fails_its_test() {
    run_shared(2, &[("FISHPLATE_WAIT", "sleep")], |rank| {
        assert!(rank.rank() == 0, "on purpose");
        let mut byte = [0];
        let buffer = super::room(&mut byte);
        rank.receive("MPI_Recv", buffer, 1, 0, mpi::comm::WORLD)
            .unwrap();
    });
}
