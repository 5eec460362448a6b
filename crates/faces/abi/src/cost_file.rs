//! The file of costs that FISHPLATE_COSTS names.

use std::fs::File;
use std::io::{ErrorKind, Read as _};

use knobs::{CostSource, CostTable, Error, Knobs, processor_name};

/// Reads the file if the settings name one. Returns the warning that its costs are those of another
/// processor than this host's.
pub(crate) fn read(knobs: &mut Knobs) -> Result<Option<String>, Error> {
    knobs.read_costs(text)?;
    Ok(warning(knobs))
}

/// Prints the warning: the first rank of each host speaks for all of it.
pub(crate) fn warn(rank: &mpi::Rank, warning: Option<String>) {
    if let Some(warning) = warning.filter(|_| rank.hosts().index(rank.rank()) == 0) {
        crate::raise::say(&warning);
    }
}

/// The text of a file. A reason names no number of the system.
fn text(path: &str) -> Result<String, String> {
    let longest = CostTable::LONGEST;
    let mut text = String::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(longest + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 > longest => Err(format!(
            "the file is no file of costs, because it has more than {} KiB",
            longest >> 10
        )),
        Ok(_) => Ok(text),
        Err(why) => Err(match why.kind() {
            ErrorKind::NotFound => "there is no such file".into(),
            ErrorKind::PermissionDenied => "this user may not read the file".into(),
            ErrorKind::InvalidData => "the file is no text in UTF-8".into(),
            ErrorKind::IsADirectory => "it is a directory".into(),
            other => format!("the file cannot be read: {other}"),
        }),
    }
}

fn warning(knobs: &Knobs) -> Option<String> {
    if !matches!(knobs.costs, CostSource::File(_)) {
        return None;
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    knobs.costs_of_another(processor_name(&cpuinfo)?)
}
