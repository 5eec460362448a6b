//! The fast way beside the exact way, on traces that are made here.

mod networks;

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use fabric::catalogue::Catalogue;
use model::config::MachineConfig;
use replay::Stage;
use trace::{Builder, Gaps, Pattern, Recipe, Signature, Trace, Value};

/// A process has one world of the exact way at a time, and one rank that the library finds.
static ALONE: Mutex<()> = Mutex::new(());

fn scene(machine: &str, ranks: usize, per_host: usize) -> MachineConfig {
    let system = Catalogue::builtin().system(machine).unwrap();
    MachineConfig::new(&system, ranks, per_host, 1).unwrap()
}

/// Time and number of messages by the exact way.
fn exact(trace: &Trace, scene: &MachineConfig) -> (u64, u64) {
    exact_with(trace, scene, &[])
}

/// Time and number of messages by the exact way, with these settings.
fn exact_with(trace: &Trace, scene: &MachineConfig, settings: &[(String, String)]) -> (u64, u64) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let ranks = trace.ranks.len();
    let world = memory_file::of_length("world", sim::memory::Memory::BYTES).unwrap();
    let counts = Arc::new(profile::create(ranks).unwrap());
    let stage = Stage {
        scene: scene.encode(),
        world: Arc::new(world),
        profile: Some(counts.clone()),
        settings: settings.to_vec(),
    };
    let outcome = replay::replay(Arc::new(trace.clone()), &stage).unwrap();
    let file = File::from(counts.try_clone().unwrap());
    let records = profile::read(&file, ranks).unwrap();
    let classes = records.iter().flat_map(|record| &record.sizes);
    (outcome.picos, classes.map(|class| class.count).sum())
}

fn made(pattern: Pattern, ranks: usize, bytes: u64, nanos: u64) -> Trace {
    let recipe = Recipe {
        pattern,
        ranks,
        steps: 120,
        bytes,
        nanos,
        sum_every: u64::from(nanos > 0),
        seed: 1,
    };
    recipe.make("test".into())
}

#[test]
fn times_are_near_to_those_of_the_exact_way_and_messages_are_as_many() {
    let (mut errors, mut beside) = (Vec::new(), Vec::new());
    for (machine, per_host) in [("edr", 1), ("edr", 4), ("2xqdr", 1)] {
        for (pattern, name, _) in Pattern::ALL {
            for (bytes, nanos) in [(8, 0), (1024, 5_000), (65536, 20_000)] {
                let (trace, scene) = (made(pattern, 8, bytes, nanos), scene(machine, 8, per_host));
                let (picos, messages) = exact(&trace, &scene);
                let fast = crate::replay(Arc::new(trace), &scene, &[]).unwrap();
                let case = format!("{name} of {bytes} B on {machine}, {per_host} a host");
                assert_eq!(fast.messages, messages, "{case}");
                let error = fast.picos as f64 / picos as f64 - 1.0;
                println!("{case}: {:+.1} %", error * 100.0);
                let all = match per_host {
                    1 => &mut errors,
                    _ => &mut beside,
                };
                all.push((error.abs(), case));
            }
        }
    }
    for (all, middle, worst) in [(errors, 0.02, 0.08), (beside, 0.05, 0.35)] {
        assert_near(all, middle, worst);
    }
}

/// Errors of times, whose median and whose greatest have these bounds. Ranks of one host also share
/// its memory, which the fast way leaves out.
fn assert_near(mut errors: Vec<(f64, String)>, middle: f64, worst: f64) {
    errors.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (at_middle, at_worst) = (&errors[errors.len() / 2], &errors[errors.len() - 1]);
    assert!(at_middle.0 <= middle, "median {at_middle:?}");
    assert!(at_worst.0 <= worst, "worst {at_worst:?}");
}

#[test]
fn the_same_trace_takes_the_same_time() {
    let trace = Arc::new(made(Pattern::Alltoall, 9, 20_000, 1000));
    let scene = scene("edr", 9, 3);
    let run = || crate::replay(trace.clone(), &scene, &[]).unwrap();
    assert_eq!(run(), run());
}

/// A trace of ranks that make these calls and end. A call is the line of a signature, and its
/// values.
fn of_calls(ranks: usize, calls: &[(&str, Vec<Value>)]) -> Arc<Trace> {
    let mut builder = Builder::new("test".into());
    for _ in 0..ranks {
        let end = [("MPI_Finalize", Vec::new())];
        let (mut numbers, mut gaps) = (Vec::new(), Gaps::default());
        for (line, values) in calls.iter().chain(&end) {
            let signature = builder.signature(Signature::parse(line).unwrap());
            numbers.push(builder.call(signature, values.clone()));
            gaps.push(0, 1);
        }
        builder.rank(&numbers, gaps, Gaps::default());
    }
    Arc::new(builder.finish())
}

const RECEIVE: &str = "MPI_Recv buf:out count:count datatype:datatype source:source tag:tag_any comm:comm status:>status";
const WINDOW: &str = "MPI_Win_create base:out size:extent disp_unit:n info:info comm:comm win:>win";

#[test]
fn nonblocking_collective_operations_move_what_blocking_ones_do() {
    let (comm, request) = (Value::Number(0x101), Value::Number(0x1000));
    let begin = (
        "MPI_Ibarrier comm:comm request:>request",
        vec![comm.clone(), request.clone()],
    );
    let end = ("MPI_Wait request:<>request", vec![request]);
    let blocking = of_calls(4, &[("MPI_Barrier comm:comm", vec![comm])]);
    let split = of_calls(4, &[begin, end]);
    let messages = |trace| {
        crate::replay(trace, &scene("edr", 4, 1), &[])
            .unwrap()
            .messages
    };
    let counts = [blocking, split].map(messages);
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0] >= 8, "{counts:?}");
}

#[test]
fn a_message_that_nobody_sends_is_an_error() {
    let from = Value::Relative(0);
    let number = Value::Number;
    let values = [4096, 1, 0x247].map(Value::Number).to_vec();
    let rest = vec![from, number(0), number(0x101), Value::Absent];
    let trace = of_calls(2, &[(RECEIVE, [values, rest].concat())]);
    let why = crate::replay(trace, &scene("edr", 2, 1), &[]).unwrap_err();
    assert!(why.contains("2 of 2 ranks wait for messages"), "{why}");
}

#[test]
fn what_the_fast_way_does_not_have_is_refused_by_name() {
    let values = [4096, 8, 1, 0, 0x101, 4096].map(Value::Number).to_vec();
    let trace = of_calls(2, &[(WINDOW, values)]);
    let why = crate::check(&trace).unwrap_err();
    assert!(
        why.contains("MPI_Win_create is not part of the fast way"),
        "{why}"
    );
}
