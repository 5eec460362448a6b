//! `fishplate compare MACHINE... TRACE`: traces in place of a program.

use std::sync::Arc;

use ::compare::{Machine, check};
use trace::Trace;

use super::CompareArguments;
use crate::trace_file;

/// The traces that stand in place of a program, whose options the comparison must not have: those
/// with the wanted numbers of ranks, or all. None if another file stands there.
pub(super) fn of(arguments: &CompareArguments) -> Result<Vec<Arc<Trace>>, String> {
    let Some(files) = trace_file::all_in_place_of_program(&arguments.program)? else {
        return Ok(Vec::new());
    };
    let mut traces = Vec::new();
    for file in &files {
        traces.extend(trace_file::read_all(file)?);
    }
    let names = files.iter().map(|file| file.display().to_string());
    let file = names.collect::<Vec<_>>().join(" ");
    let options = [
        ("--record", arguments.record.is_some()),
        ("--recordings", arguments.recordings.is_some()),
        ("--in", arguments.folder.is_some()),
        ("--real-clocks", arguments.real_clocks),
    ];
    if let Some((option, _)) = options.iter().find(|(_, is_given)| *is_given) {
        return Err(format!(
            "{file}: {option} is for programs; traces are recorded already"
        ));
    }
    if let Some(other) = traces.iter().find(|one| one.program != traces[0].program) {
        return Err(format!(
            "{file}: its traces are of `{}` and of `{}`: those of one program can be compared",
            traces[0].program, other.program
        ));
    }
    let wanted_ranks = arguments.sweep.wanted();
    for wanted in &wanted_ranks {
        if traces.iter().all(|trace| trace.ranks.len() != *wanted) {
            let mut known: Vec<usize> = traces.iter().map(|trace| trace.ranks.len()).collect();
            known.sort_unstable();
            known.dedup();
            let known: Vec<String> = known.iter().map(usize::to_string).collect();
            let of = known.join(" and of ");
            return Err(match arguments.sweep.has_nodes() {
                true => format!(
                    "--nodes times --ppn: {wanted} ranks are wanted, and {file} is of {of} ranks"
                ),
                false => format!("-n {wanted}: {file} is of {of} ranks"),
            });
        }
    }
    let is_wanted = |ranks: usize| wanted_ranks.is_empty() || wanted_ranks.contains(&ranks);
    traces.retain(|trace| is_wanted(trace.ranks.len()));
    if arguments.fast {
        let lacking = |why| format!("{file}: {why}; without --fast it can be compared");
        let checked = traces.iter().try_for_each(fast::check);
        checked.map_err(lacking)?;
    }
    Ok(traces.into_iter().map(Arc::new).collect())
}

/// Checks that the machine of the recording can replay the traces, and that these have times with
/// which the replay can be compared.
pub(super) fn check_recorded_on(
    machine: &Machine,
    traces: &[Arc<Trace>],
    ppn: usize,
) -> Result<(), String> {
    let word = &machine.word;
    if !traces.iter().all(|trace| check::is_measured(trace)) || traces.is_empty() {
        return Err(format!(
            "--recorded-on {word}: it is for traces of `fishplate record`, whose ranks measure their times until MPI_Finalize; {}",
            match traces.is_empty() {
                true => "this is a program",
                false => "not all ranks of these have done so",
            }
        ));
    }
    traces.iter().try_for_each(|trace| {
        let per_host = check::placement(trace).unwrap_or(ppn);
        let checked = machine.check(trace.ranks.len(), per_host);
        checked.map_err(|why| format!("--recorded-on: {why}"))
    })
}
