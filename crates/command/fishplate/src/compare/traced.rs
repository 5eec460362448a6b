//! `fishplate compare MACHINE... TRACE`: traces in place of a program.

use std::sync::Arc;

use trace::Trace;

use super::CompareArguments;
use crate::trace_file;

/// The traces that stand in place of a program, whose options the comparison must not have: those
/// with the wanted numbers of ranks, or all. None if another file stands there.
pub(super) fn of(arguments: &CompareArguments) -> Result<Vec<Arc<Trace>>, String> {
    let Some(file) = trace_file::in_place_of_program(&arguments.program)? else {
        return Ok(Vec::new());
    };
    let mut traces = trace_file::read_all(file)?;
    let file = file.display();
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
    for wanted in &arguments.ranks {
        if traces.iter().all(|trace| trace.ranks.len() != *wanted) {
            let mut known: Vec<usize> = traces.iter().map(|trace| trace.ranks.len()).collect();
            known.sort_unstable();
            known.dedup();
            let known: Vec<String> = known.iter().map(usize::to_string).collect();
            return Err(format!(
                "-n {wanted}: {file} is of {} ranks",
                known.join(" and of ")
            ));
        }
    }
    let is_wanted = |ranks: usize| arguments.ranks.is_empty() || arguments.ranks.contains(&ranks);
    traces.retain(|trace| is_wanted(trace.ranks.len()));
    if arguments.fast {
        let lacking = |why| format!("{file}: {why}; without --fast it can be compared");
        let checked = traces.iter().try_for_each(fast::check);
        checked.map_err(lacking)?;
    }
    Ok(traces.into_iter().map(Arc::new).collect())
}
