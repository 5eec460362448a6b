//! Remarks about the parts of the program's runs that the modelled machines leave out, and about
//! unknown results.

use profile::LeftOut;

use crate::report::Comparison;
use crate::row::Row;

/// The sentence about what the recordings cannot tell; `None`: there are several, with computing.
pub(crate) fn of_recordings(comparison: &Comparison) -> Option<&'static str> {
    let computes = comparison.recorded.iter().any(|of| of.computing > 0.0);
    let is_single = comparison.recorded.iter().any(|of| of.recordings == 1);
    match (computes, is_single) {
        (false, _) => Some(
            "The recordings have no computing, so all of the time is communication, and speeds of processors change nothing.",
        ),
        (true, true) if comparison.rows.iter().any(|row| row.is_of_iterations) => Some(
            "The spread is that of the iterations of one recording: what disturbs a whole run is not in it.",
        ),
        (true, true) => {
            Some("One recording shows no spread: a disturbed one cannot be told from the program.")
        }
        (true, false) => None,
    }
}

/// The sentence about what was estimated; `None`: nothing was.
pub(crate) fn estimated(comparison: &Comparison) -> Option<String> {
    let found = comparison.advice.sensitivity.as_ref();
    let times = match found.map_or((0, 0), |found| found.estimated) {
        (0, _) => String::new(),
        (all, 0) => format!(", and {all} pairs of times with changed values"),
        (all, _) => format!(
            ", and {all} pairs of times with changed values, of which those near the answer were replayed exactly"
        ),
    };
    let what = "Estimated the fast way (--fast): the shares of the time";
    comparison.is_estimated.then(|| format!("{what}{times}."))
}

/// A sentence about each part that is left out, with its greatest amount in any row.
pub(crate) fn left_out(comparison: &Comparison) -> Vec<String> {
    let summaries = comparison.rows.iter().filter_map(|row| row.summary());
    let all = summaries.map(|summary| &summary.left_out);
    let greatest = all.fold(LeftOut::default(), |known, one| known.or_more(one));
    greatest.sentences(&no_storage(comparison))
}

/// The sentence about the machine on which most choices of the program differ from the recording.
/// `None`: none differs.
pub(crate) fn other_choices(comparison: &Comparison) -> Option<String> {
    let choices = |row: &Row| Some((row.summary()?.other_choices?, row.machine, row.ranks));
    let (number, machine, ranks) = comparison.rows.iter().filter_map(choices).max()?;
    let name = &comparison.machines[machine].name;
    Some(format!(
        "On {name} with {ranks} ranks {number} tests and waits would have found other requests complete than in the recording, and wait for the recorded ones: a program that goes on computing meanwhile takes less time."
    ))
}

/// The sentences about rows whose bound is unknown.
pub(crate) fn unknown_bounds(comparison: &Comparison) -> Vec<String> {
    let unknown = comparison.rows.iter().filter_map(|row| {
        let why = row.no_bounds.as_ref()?;
        let name = &comparison.machines[row.machine].name;
        Some(format!(
            "The bound on {name} with {} ranks is unknown: {why}.",
            row.ranks
        ))
    });
    unknown.collect()
}

/// The clause that says which machines have no storage.
fn no_storage(comparison: &Comparison) -> String {
    let machines = comparison.machines.iter();
    let lacking = machines.filter(|machine| !machine.hardware.has_storage);
    let lacking: Vec<&str> = lacking.map(|machine| machine.name.as_str()).collect();
    match lacking.as_slice() {
        all if all.len() == comparison.machines.len() => "no machine has a storage".into(),
        [one] => format!("{one} has no storage"),
        many => format!("{} have no storage", many.join(" and ")),
    }
}
