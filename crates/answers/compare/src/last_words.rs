//! The reason that a failed job gives.

use std::process::Output;

/// The reason why a job failed: the lines of `fishplate`, then the last lines of the program.
pub(crate) fn last_words(ended: &Output) -> String {
    let said = String::from_utf8_lossy(&ended.stderr);
    match reason(&said) {
        words if words.is_empty() => format!("its {}", ended.status),
        words => words,
    }
}

/// The reason that standard error gives; empty if there is none.
fn reason(said: &str) -> String {
    const OURS: &str = "fishplate: ";
    // Its settings are no reason.
    const LIBRARY: &str = "fishplate: predicting the MPI library ";
    const MOST: usize = 4;
    let lines = said.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(LIBRARY));
    let (ours, others): (Vec<&str>, Vec<&str>) = { lines }.partition(|line| line.starts_with(OURS));
    let ours = ours.iter().map(|line| &line[OURS.len()..]);
    // Several ranks may report the same reason.
    let ours = results::table::distinct(ours);
    let others = others[others.len().saturating_sub(MOST)..].iter().copied();
    ours.into_iter()
        .chain(others)
        .collect::<Vec<&str>>()
        .join("; ")
}

#[cfg(test)]
mod tests;
