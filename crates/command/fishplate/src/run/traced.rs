//! `fishplate run --fabric MACHINE TRACE`: a trace in place of a program.

use std::process::ExitCode;
use std::sync::Arc;

use model::config::MachineConfig;
use profile::{JobFacts, RankRecord, State};
use replay::{Stage, replay};
use trace::Trace;

use super::{RunArguments, end, environment};
use crate::modelled::ModelledJob;
use crate::refuse;
use crate::summary::{WantedSummary, duration};
use crate::trace_file;

/// The trace that was given in place of a program. `None`: the file is no trace.
pub(super) fn trace_of(arguments: &RunArguments) -> Result<Option<Arc<Trace>>, String> {
    let words = &arguments.program.program;
    let Some(file) = trace_file::in_place_of_program(words)? else {
        return Ok(None);
    };
    let trace = trace_file::read(file)?;
    let wrong = |why: &str| format!("{}: {why}", file.display());
    if !arguments.modelled.is_wanted() {
        return Err(wrong(
            "a trace is replayed on a modelled machine: --fabric MACHINE",
        ));
    }
    if arguments.record.is_some() || arguments.modelled.times_computing() {
        return Err(wrong(
            "a trace has its computing already: no --compute, no --record",
        ));
    }
    Ok(Some(Arc::new(trace)))
}

/// Replays a trace, and shows the summary.
pub(super) fn main(arguments: &RunArguments, trace: Arc<Trace>) -> ExitCode {
    let (modelled, mut summary, stage) = match prepare(arguments, &trace) {
        Ok(prepared) => prepared,
        Err(why) => return refuse(&why),
    };
    if arguments.fast {
        return fast_way(&trace, &stage, summary);
    }
    let is_frozen = trace.has_wildcards() && !arguments.free_sources;
    let played = match is_frozen {
        true => Arc::new(trace.frozen()),
        false => Arc::clone(&trace),
    };
    let code = match replay(played, &stage) {
        Ok(outcome) => {
            if is_frozen {
                say_wildcards(trace, stage, outcome.picos);
            }
            summary.other_choices(outcome.other_choices);
            0
        }
        Err(why) => {
            eprintln!("fishplate: {}", terminal_text::lines(&why));
            1
        }
    };
    ExitCode::from(end(modelled, None, summary, code))
}

/// Replays a trace the fast way, and shows the summary.
fn fast_way(trace: &Arc<Trace>, stage: &Stage, summary: WantedSummary) -> ExitCode {
    let scene = MachineConfig::decode(&stage.scene).map_err(|why| why.to_string());
    let outcome = scene.and_then(|scene| fast::replay(trace.clone(), &scene, &stage.settings));
    let shown = outcome.and_then(|outcome| {
        let records = records(trace, &outcome);
        let seconds = |times: Vec<u64>| times.into_iter().map(|time| time as f64 * 1e-12);
        let steps = match trace.has_steps() {
            true => outcome.steps.into_iter(),
            false => Vec::new().into_iter(),
        };
        let steps = steps.map(|times| seconds(times).collect()).collect();
        summary.of_fast(&records, steps).show(false)
    });
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fishplate: {}", terminal_text::lines(&why));
            ExitCode::FAILURE
        }
    }
}

/// The records of the ranks of a fast replay. The first has the messages of all.
fn records(trace: &Trace, outcome: &fast::Outcome) -> Vec<RankRecord> {
    let record = |(rank, end): (usize, &u64)| {
        let computed: u64 = trace.calls_of(rank).map(|(_, nanos)| nanos * 1000).sum();
        RankRecord {
            state: State::Finished,
            time: *end,
            in_mpi: end.saturating_sub(computed),
            ..RankRecord::default()
        }
    };
    let mut records: Vec<RankRecord> = outcome.ends.iter().enumerate().map(record).collect();
    if let Some(first) = records.first_mut() {
        first.sizes.clone_from(&outcome.sizes);
    }
    records
}

/// Replays a trace once more, in which receives from any source take the message that comes first,
/// and prints the difference from the replay with the recorded sources, which took `picos`
/// picoseconds.
fn say_wildcards(trace: Arc<Trace>, stage: Stage, picos: u64) {
    let world = memory_file::of_length("fishplate-world", sim::memory::Memory::BYTES);
    let free = world.map_err(|why| why.to_string()).and_then(|world| {
        let stage = Stage {
            world: Arc::new(world),
            profile: None,
            ..stage
        };
        replay(trace, &stage)
    });
    let known = "receives from any source took the messages of the recorded sources";
    match free {
        Ok(free) => eprintln!(
            "fishplate: {known}; with those that come first the run takes {}, {:+.2} %",
            duration(free.picos as f64 * 1e-12),
            (free.picos as f64 / picos.max(1) as f64 - 1.0) * 100.0
        ),
        Err(why) => eprintln!(
            "fishplate: {known}; with those that come first the run fails: {}",
            terminal_text::lines(&why)
        ),
    }
}

fn prepare(
    arguments: &RunArguments,
    trace: &Trace,
) -> Result<(ModelledJob, WantedSummary, Stage), String> {
    let ranks = trace.ranks.len();
    if let Some(wanted) = arguments.program.ranks.filter(|wanted| *wanted != ranks) {
        return Err(format!("-n {wanted}: the trace is of {ranks} ranks"));
    }
    let per_host = arguments.hosts.ppn.unwrap_or(1);
    let variables = [
        environment::variables("--genv", &arguments.genv)?,
        environment::variables("-x", &arguments.program.variables)?,
    ];
    let own = std::env::vars_os().chain(variables.concat());
    let mut settings: Vec<(String, String)> = knobs::decode(own).collect();
    environment::check(std::slice::from_ref(&settings))?;
    let mut modelled = arguments.modelled.prepare(ranks, per_host)?;
    modelled.has_steps = trace.has_steps();
    let defaults = modelled.defaults(&settings);
    settings.extend(knobs::decode(defaults.into_iter()));
    let facts = JobFacts {
        program: trace.program.clone(),
        ranks_per_host: per_host.min(ranks),
        fabric: arguments.modelled.fabric().map(str::to_string),
        ..JobFacts::default()
    };
    let summary = (arguments.summary).prepare(ranks, facts, modelled.has_port_faults())?;
    let machine = modelled.launched.as_ref();
    let machine = machine.ok_or("a trace is replayed on a modelled machine")?;
    let stage = Stage {
        scene: machine.scene.clone(),
        world: machine.world.clone(),
        profile: summary.counts(),
        settings,
    };
    Ok((modelled, summary, stage))
}
