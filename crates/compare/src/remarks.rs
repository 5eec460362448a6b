//! Remarks about what the modelled machines leave out of the program's runs.

use profile::LeftOut;

use crate::report::Comparison;

/// A sentence about each thing that is left out, with its greatest amount in any row.
pub(crate) fn left_out(comparison: &Comparison) -> Vec<String> {
    let summaries = comparison.rows.iter().filter_map(|row| row.summary());
    let all = summaries.map(|summary| &summary.left_out);
    let greatest = all.fold(LeftOut::default(), |known, one| known.or_more(one));
    greatest.sentences(&no_storage(comparison))
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
