//! Procedures that the library lacks and that ranks have called: a line at the first call, and one
//! after the job, because a program may ignore the error.

use std::collections::{BTreeMap, BTreeSet};

use super::{RunningJob, say};

/// The most procedures that are remembered: more than the standard has.
const MOST: usize = 1024;
/// The most procedures that the line after the job names.
const NAMED: usize = 12;

/// The ranks that have called each procedure.
#[derive(Default)]
pub(super) struct Unsupported(BTreeMap<String, BTreeSet<usize>>);

impl Unsupported {
    /// Records a call. Whether it is the first one of this procedure.
    fn add(&mut self, rank: usize, procedure: String) -> bool {
        if self.0.len() >= MOST && !self.0.contains_key(&procedure) {
            return false;
        }
        let ranks = self.0.entry(procedure).or_default();
        let is_first = ranks.is_empty();
        ranks.insert(rank);
        is_first
    }

    /// The line after the job. None if no such procedure was called.
    fn line(&self) -> Option<String> {
        let one = |(procedure, ranks): (&String, &BTreeSet<usize>)| {
            let count = ranks.len();
            let plural = if count == 1 { "" } else { "s" };
            format!("{procedure} ({count} rank{plural})")
        };
        let named: Vec<String> = self.0.iter().take(NAMED).map(one).collect();
        let more = match self.0.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "ranks called procedures that are not supported yet, and these calls did nothing: {}{more}",
                named.join(", ")
            )
        })
    }
}

impl RunningJob<'_> {
    /// Handles the report of a rank about its first call of this procedure.
    pub(super) fn unsupported_called(&mut self, rank: usize, procedure: String) {
        let text = pmi::unsupported_text(&procedure);
        if self.unsupported.add(rank, procedure) {
            self.say(&text);
        }
    }

    /// Reports after the job which of these procedures were called.
    pub(super) fn say_unsupported(&self) {
        if let Some(line) = self.unsupported.line() {
            say(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_procedure_is_new_once() {
        let mut called = Unsupported::default();
        assert_eq!(called.line(), None);
        assert!(called.add(1, "MPI_Put".into()));
        assert!(!called.add(1, "MPI_Put".into()));
        assert!(!called.add(0, "MPI_Put".into()));
        assert!(called.add(3, "MPI_Get".into()));
        let line = called.line().unwrap();
        assert!(
            line.ends_with(" nothing: MPI_Get (1 rank), MPI_Put (2 ranks)"),
            "{line}"
        );
    }

    #[test]
    fn a_flood_of_names_has_an_end() {
        let mut called = Unsupported::default();
        (0..2 * MOST).for_each(|at| {
            called.add(0, format!("MPI_{at:04}"));
        });
        assert_eq!(called.0.len(), MOST);
        let line = called.line().unwrap();
        assert!(
            line.ends_with(&format!("MPI_0011 (1 rank) and {} more", MOST - NAMED)),
            "{line}"
        );
    }
}
