//! Files of traces, which may stand in place of a program.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use trace::{COMPUTE_TRACE, MAGIC, Trace};

/// Reads a trace. Of several recordings in the file the first is used, and a line says so.
pub(crate) fn read(file: &Path) -> Result<Trace, String> {
    let mut traces = read_all(file)?;
    if traces.len() > 1 {
        eprintln!(
            "fishplate: {}: the first of its {} recordings is used",
            file.display(),
            traces.len()
        );
    }
    Ok(traces.swap_remove(0))
}

/// Reads the traces of a file: at least one.
pub(crate) fn read_all(file: &Path) -> Result<Vec<Trace>, String> {
    let wrong = |why: String| format!("{}: {why}", file.display());
    let bytes = std::fs::read(file).map_err(|why| wrong(why.to_string()))?;
    Trace::read_all(&bytes).map_err(wrong)
}

/// The files with traces that were given in place of a program with its arguments. `None`: the
/// first file has none.
pub(crate) fn all_in_place_of_program(words: &[OsString]) -> Result<Option<Vec<&Path>>, String> {
    let (first, others) = words.split_first().ok_or("no program given")?;
    let Some(first) = in_place_of_program(std::slice::from_ref(first))? else {
        return Ok(None);
    };
    let mut files = vec![first];
    for other in others {
        let file = in_place_of_program(std::slice::from_ref(other))?;
        files.push(file.ok_or_else(|| {
            let (first, other) = (first.display(), Path::new(other).display());
            format!("{first}: a trace has no arguments, and {other} is no trace")
        })?);
    }
    Ok(Some(files))
}

/// The file with traces that was given in place of a program with its arguments. `None`: the file
/// has none.
pub(crate) fn in_place_of_program(words: &[OsString]) -> Result<Option<&Path>, String> {
    let path = Path::new(words.first().ok_or("no program given")?);
    let mut start = Vec::new();
    let most = COMPUTE_TRACE.len().max(MAGIC.len()) as u64;
    let begun = File::open(path).and_then(|file| file.take(most).read_to_end(&mut start));
    if begun.is_err() || !(start.starts_with(MAGIC) || start.starts_with(COMPUTE_TRACE)) {
        return Ok(None);
    }
    match words.len() {
        1 => Ok(Some(path)),
        _ => Err(format!("{}: a trace has no arguments", path.display())),
    }
}
