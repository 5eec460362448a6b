//! `--faults FILE`: the faults of a modelled machine.

use model::Faults;
use model::fault_file::parse;

/// Reads a file. The error names the file, the line and the cause.
pub(crate) fn read(file: &str) -> Result<Faults, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
    parse(&text).map_err(|why| format!("{file}: {why}"))
}
