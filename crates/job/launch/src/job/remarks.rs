//! Remarks of ranks to the user: warnings, each printed once; and calls of procedures that the
//! library lacks, printed at the first call and again after the job, because a program may ignore
//! the error.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::rank_state::RankEvent;

/// The most warnings that a job prints, each with a topic of its own.
const WARNINGS: usize = 64;
/// The most procedures that are recorded: more than the standard has.
const MOST: usize = 1024;
/// The most procedures that the line after the job lists.
const NAMED: usize = 12;

/// The remarks for the user that all ranks have made.
#[derive(Default)]
pub(super) struct Remarks {
    /// The topics of warnings that have been printed.
    warned: HashSet<String>,
    /// The names of procedures that the library lacks, each with the ranks that have called it.
    called: BTreeMap<String, BTreeSet<usize>>,
}

impl Remarks {
    /// The text to print for an event of a rank. `None`: nothing is printed.
    pub(super) fn text(&mut self, rank: usize, event: RankEvent) -> Option<String> {
        match event {
            RankEvent::Warning { topic, text } => {
                let is_new = self.warned.len() < WARNINGS && self.warned.insert(topic);
                is_new.then(|| format!("rank {rank}: {text}"))
            }
            RankEvent::Unsupported { procedure } => {
                let text = pmi::unsupported_text(&procedure);
                self.add(rank, procedure).then_some(text)
            }
            _ => None,
        }
    }

    /// Records that a rank has called a procedure that the library lacks. True if it is the first
    /// call of this procedure in the job.
    fn add(&mut self, rank: usize, procedure: String) -> bool {
        if self.called.len() >= MOST && !self.called.contains_key(&procedure) {
            return false;
        }
        let ranks = self.called.entry(procedure).or_default();
        let is_first = ranks.is_empty();
        ranks.insert(rank);
        is_first
    }

    /// The line to print after the job: the called procedures that the library lacks. `None` if
    /// there are none.
    pub(super) fn line(&self) -> Option<String> {
        let one = |(procedure, ranks): (&String, &BTreeSet<usize>)| {
            let count = ranks.len();
            let plural = if count == 1 { "" } else { "s" };
            format!("{procedure} ({count} rank{plural})")
        };
        let named: Vec<String> = self.called.iter().take(NAMED).map(one).collect();
        let more = match self.called.len().saturating_sub(NAMED) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_is_printed_once() {
        let mut remarks = Remarks::default();
        let mut text = |topic: &str| {
            let (topic, text) = (topic.into(), "slow".into());
            remarks.text(3, RankEvent::Warning { topic, text })
        };
        assert_eq!(text("memory").unwrap(), "rank 3: slow");
        assert_eq!((text("memory"), text("cores").is_some()), (None, true));
    }

    #[test]
    fn each_procedure_is_new_once() {
        let mut called = Remarks::default();
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
        let mut called = Remarks::default();
        (0..2 * MOST).for_each(|at| {
            called.add(0, format!("MPI_{at:04}"));
        });
        assert_eq!(called.called.len(), MOST);
        let line = called.line().unwrap();
        assert!(
            line.ends_with(&format!("MPI_0011 (1 rank) and {} more", MOST - NAMED)),
            "{line}"
        );
    }
}
