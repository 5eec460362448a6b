//! Files of traces, which may stand in place of a program.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use trace::{MAGIC, Trace};

/// Reads a trace.
pub(crate) fn read(file: &Path) -> Result<Trace, String> {
    let wrong = |why: String| format!("{}: {why}", file.display());
    let bytes = std::fs::read(file).map_err(|why| wrong(why.to_string()))?;
    Trace::read(&bytes).map_err(wrong)
}

/// The trace that was given in place of a program with its arguments. `None`: the file is no trace.
pub(crate) fn in_place_of_program(words: &[OsString]) -> Result<Option<Trace>, String> {
    let path = Path::new(words.first().ok_or("no program given")?);
    let mut start = [0; MAGIC.len()];
    let begun = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    if begun.is_err() || start != *MAGIC {
        return Ok(None);
    }
    match words.len() {
        1 => read(path).map(Some),
        _ => Err(format!("{}: a trace has no arguments", path.display())),
    }
}
