//! `fishplate run --check rma`: reports conflicting accesses of a job to windows.

use std::fs::File;

use model::Notes;
use rma_check::{Event, Machine};

/// The most conflicts that are shown.
const SHOWN: usize = 20;

/// Prints the conflicting accesses to windows among those that ranks have recorded in the world, to
/// standard error. If there are some, the error gives their number.
pub(crate) fn report(world: &File) -> Result<(), String> {
    let mut notes = Notes::read(world)
        .map_err(|why| format!("--check rma: the notes of the ranks cannot be read: {why}"))?;
    if notes.lost > 0 {
        eprintln!(
            "fishplate: --check rma: {} accesses and more are too many; the last {} are not checked: run a smaller problem",
            notes.entries.len(),
            notes.lost
        );
    }
    // The sort is stable: the notes of one rank stay in their order.
    notes.entries.sort_by_key(|(time, ..)| *time);
    let mut machine = Machine::default();
    for (time, call, words) in &notes.entries {
        let name = notes.names.get(*call as usize);
        if let Some((rank, event)) = Event::decode(*words) {
            machine.take(*time, rank, name.map_or("", String::as_str), event);
        }
    }
    let found = machine.conflicts();
    for conflict in found.iter().take(SHOWN) {
        eprintln!(
            "fishplate: --check rma: {}",
            terminal_text::lines(&conflict.to_string())
        );
    }
    match found.len() {
        0 => Ok(()),
        1 => Err("--check rma: one conflict of accesses to a window".into()),
        many => Err(format!(
            "--check rma: {many} conflicts of accesses to windows{}",
            match many.saturating_sub(SHOWN) {
                0 => String::new(),
                left => format!(", of which {left} are not shown"),
            }
        )),
    }
}
