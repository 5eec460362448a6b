//! `fishplate run --check`: what is checked after a run on a modelled machine, and the report of
//! messages and collective calls that do not fit each other.

use std::fs::File;

use clap::ValueEnum;
use message_check::{Event, Finding, Machine, Wanted};
use model::Notes;

/// The most errors, and the most notes, that are shown.
const SHOWN: usize = 20;

/// A word of `--check`.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Check {
    /// One-sided communication
    Rma,
    /// Messages and collective calls
    Messages,
    /// With messages: receives from any source that two messages could match
    Races,
    /// With messages: objects that are not freed before MPI_Finalize
    Leaks,
}

/// The checks after a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Checks {
    /// Accesses to windows.
    pub(crate) windows: bool,
    /// Messages and collective calls, with the notes that are wanted beside errors.
    pub(crate) messages: Option<Wanted>,
}

impl Checks {
    /// The checks of these words.
    pub(crate) fn of(words: &[Check]) -> Result<Checks, String> {
        let is_wanted = |what| words.contains(&what);
        let wanted = Wanted {
            races: is_wanted(Check::Races),
            leaks: is_wanted(Check::Leaks),
        };
        let messages = is_wanted(Check::Messages).then_some(wanted);
        if messages.is_none() && (wanted.races || wanted.leaks) {
            return Err(
                "--check: races and leaks are notes of the check of messages: --check messages,races,leaks"
                    .into(),
            );
        }
        Ok(Checks {
            windows: is_wanted(Check::Rma),
            messages,
        })
    }

    /// Prints what the notes in the world show. Returns a line for each check with errors.
    pub(crate) fn report(&self, world: &File) -> Vec<String> {
        let windows = self.windows.then(|| crate::conflicts::report(world));
        let messages = self.messages.map(|wanted| report(world, wanted));
        let all = windows.into_iter().chain(messages);
        all.filter_map(Result::err).collect()
    }
}

/// Prints the errors that the notes in the world show, to standard error, and then the notes that
/// are wanted. If there are errors, the error of this function gives their number.
fn report(world: &File, wanted: Wanted) -> Result<(), String> {
    let mut notes = Notes::read(world)
        .map_err(|why| format!("--check messages: the notes of the ranks cannot be read: {why}"))?;
    if notes.lost > 0 {
        let most = notes.entries.len();
        eprintln!(
            "fishplate: --check messages: note: not checked: the job has more than {most} events: run a smaller problem or fewer steps"
        );
        return Ok(());
    }
    // The sort is stable: the notes of one rank stay in their order.
    notes.entries.sort_by_key(|(time, ..)| *time);
    let mut machine = Machine::new(wanted);
    for (time, call, words) in &notes.entries {
        let name = notes.names.get(*call as usize);
        if let Some((rank, event)) = Event::decode(*words) {
            machine.take(*time, rank, name.map_or("", String::as_str), event);
        }
    }
    let (errors, others): (Vec<Finding>, Vec<Finding>) = machine
        .finish()
        .into_iter()
        .partition(|finding| finding.rule.is_error());
    show("", &errors);
    show("note: ", &others);
    match errors.len() {
        0 => Ok(()),
        1 => Err("--check messages: one error of messages or collective calls".into()),
        many => Err(format!(
            "--check messages: {many} errors of messages or collective calls{}",
            match many.saturating_sub(SHOWN) {
                0 => String::new(),
                left => format!(", of which {left} are not shown"),
            }
        )),
    }
}

fn show(head: &str, findings: &[Finding]) {
    for finding in findings.iter().take(SHOWN) {
        let text = terminal_text::lines(&finding.to_string());
        eprintln!("fishplate: --check messages: {head}{text}");
    }
    match findings.len().saturating_sub(SHOWN) {
        left if left > 0 && !head.is_empty() => {
            eprintln!("fishplate: --check messages: {left} more notes are not shown");
        }
        _ => {}
    }
}
