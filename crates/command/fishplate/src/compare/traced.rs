//! `fishplate compare MACHINE... TRACE`: a trace in place of a program.

use std::path::Path;
use std::sync::Arc;

use trace::Trace;

use super::CompareArguments;
use crate::trace_file;

/// The trace that stands in place of a program, whose options the comparison must not have. `None`:
/// another file does.
pub(super) fn of(arguments: &CompareArguments) -> Result<Option<Arc<Trace>>, String> {
    let Some(trace) = trace_file::in_place_of_program(&arguments.program)? else {
        return Ok(None);
    };
    let file = Path::new(&arguments.program[0]).display();
    let options = [
        ("--record", arguments.record.is_some()),
        ("--replay", arguments.replay.is_some()),
        ("--recordings", arguments.recordings.is_some()),
        ("--in", arguments.folder.is_some()),
        ("--real-clocks", arguments.real_clocks),
    ];
    if let Some((option, _)) = options.iter().find(|(_, is_given)| *is_given) {
        return Err(format!(
            "{file}: {option} is for programs; a trace is one recording"
        ));
    }
    if arguments.fast {
        let lacking = |why| format!("{file}: {why}; without --fast it can be compared");
        fast::check(&trace).map_err(lacking)?;
    }
    let ranks = trace.ranks.len();
    if let Some(other) = arguments.ranks.iter().find(|wanted| **wanted != ranks) {
        return Err(format!("-n {other}: the trace is of {ranks} ranks"));
    }
    Ok(Some(Arc::new(trace)))
}
