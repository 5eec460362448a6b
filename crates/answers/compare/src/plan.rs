//! Counts the runs and replays that a comparison makes, and informs the user of their number and
//! time.

use std::time::Duration;

use anyhow::Result;

use crate::estimate::{self, Runs, USUAL_SEARCH};
use crate::record::{self, Record};
use crate::{FIRST, MOST_RECORDINGS, Request, RunFolder, hosts};

/// The choice of rows whose time is divided into its shares, by replays on ideal machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divided {
    /// The rows of all machines with the best number of ranks.
    BestRanks,
    /// The rows of all machines with all numbers of ranks.
    All,
}

impl Request {
    /// The least and the greatest number of recordings with each number of ranks.
    pub(crate) fn recordings(&self) -> (usize, usize) {
        match self.recordings {
            Some(number) => (number, number),
            None if self.quick => (1, 1),
            None => (FIRST, MOST_RECORDINGS),
        }
    }

    /// The number of threads that OpenMP may start in a rank on every machine, by the cores of the
    /// machines' hosts. `None`: no machine defines its number of cores.
    pub(crate) fn threads_of_rank(&self, ranks: usize) -> Option<usize> {
        let on_host = ranks.min(self.per_host);
        let machines = self.machines.iter();
        let cores = machines.filter_map(|machine| machine.cores_of_rank(on_host));
        cores.min()
    }

    /// The runs of a comparison, without further recordings and without the search for the
    /// certainty. `recorded`: the recordings, if they exist already.
    fn runs(&self, recorded: Option<&Record>) -> Runs {
        let each = self.each_choice().map(|one| one.runs_placed(recorded));
        each.fold(Runs::default(), |all, one| Runs {
            recordings: one.recordings,
            replays: all.replays + one.replays,
        })
    }

    /// The runs of a comparison with the first choice of placements.
    fn runs_placed(&self, recorded: Option<&Record>) -> Runs {
        let (first, _) = self.recordings();
        let (made, numbers): (usize, Vec<usize>) = match recorded {
            Some(record) => (
                0,
                record.counts.iter().map(|of| of.recordings.len()).collect(),
            ),
            None => (first * self.ranks.len(), vec![first; self.ranks.len()]),
        };
        let machines = self.machines.len();
        let plain = numbers.len() * machines;
        let several = numbers.iter().filter(|number| **number > 1 && !self.quick);
        // Two kinds of replays without any cost, which are made on the first machine only.
        let all_ideal = |ranks: usize| {
            let ideal = (0..machines).map(|machine| self.ideals(machine, ranks).count());
            2 + ideal.sum::<usize>() + usize::from(self.is_fast) * machines
        };
        let sweep = self.ranks.iter().map(|ranks| all_ideal(*ranks));
        // The replays with a free start, and those on ideal machines.
        let divided = match self.divided() {
            None => 0,
            Some(Divided::BestRanks) => numbers.len() - 1 + machines + sweep.min().unwrap_or(0),
            Some(Divided::All) => numbers.len() * machines + sweep.sum::<usize>(),
        };
        let has_wildcards = !self.quick && recorded.is_some_and(Record::has_wildcards);
        // The machine of the recording as it is, and without the costs of its network.
        let checks = 2 * numbers.len() * usize::from(self.recorded_on.is_some());
        let plain = plain * (self.choice().each.len() + usize::from(has_wildcards))
            + several.sum::<usize>();
        Runs {
            recordings: made,
            replays: checks + plain + divided,
        }
    }

    /// The choice of rows whose time is divided; `None` if `quick`.
    pub(crate) fn divided(&self) -> Option<Divided> {
        (!self.quick).then_some(self.divided)
    }

    /// A line about the number of runs, for a user who wants to know it before any is made.
    pub fn dry_run(&self) -> Result<String> {
        let record = self.known_record()?;
        let (first, most) = self.recordings();
        let mut more = String::new();
        if self.has_search() {
            more += ", then usually 2 to 40 times to find how sure the answer is";
        }
        if hosts::differ(self) {
            more += ", and 4 times with the networks of two machines in each other's hosts";
        }
        if record.is_none() && first < most {
            // A replay with each of two recordings left out, and again the earlier replays on the
            // first machine.
            let each = 2 + 1 + first;
            more += &format!(
                ", and {each} times more for each pair of recordings beyond {first} of a number of ranks, where they differ; a disturbed recording is made again, with at most {most} in all"
            );
        }
        Ok(self.runs_line(record.as_ref(), &more))
    }

    /// A line about the number of runs, for the user, before the first run.
    pub(crate) fn announced(&self, recorded: Option<&Record>) -> String {
        self.runs_line(recorded, " or more")
    }

    fn runs_line(&self, recorded: Option<&Record>, more: &str) -> String {
        let program = record::words(&self.program[..1]);
        let Runs {
            recordings,
            replays,
        } = self.runs(recorded);
        if !self.runs_program() {
            return format!("{program} is replayed {replays} times{more}");
        }
        let files = match &self.folder {
            RunFolder::Scratch => {
                "each run has a folder of its own, which is removed (--in)".into()
            }
            RunFolder::Here(folder) => {
                format!("each run writes its files to {} again", folder.display())
            }
        };
        let or_more = match self.recordings() {
            (least, most) if least < most => " or more",
            _ => "",
        };
        format!(
            "{program} runs {recordings} times{or_more}, and what it recorded is replayed {replays} times{more}; {files}"
        )
    }

    /// True if replays are made to show how sure the answer is.
    fn has_search(&self) -> bool {
        self.machines.len() > 1 && !self.quick
    }

    /// The line about how long the recordings take that follow the first one. `None`: there is
    /// none.
    pub(crate) fn estimate_of_recordings(&self, each: Duration) -> Option<String> {
        let left = self.runs(None).recordings.saturating_sub(1);
        estimate::of_recordings(each, left)
    }

    /// The line about how long the replays take that follow `made` ones. `None`: none follows.
    pub(crate) fn estimate_of_replays(
        &self,
        record: &Record,
        each: Duration,
        made: usize,
    ) -> Option<String> {
        let search = if self.has_search() { USUAL_SEARCH } else { 0 };
        let left = (self.runs(Some(record)).replays + search).saturating_sub(made);
        (left > 0).then(|| estimate::of_replays(each, left))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Machine;
    use crate::PlacementChoice;
    use crate::check::RecordedOn;
    use crate::work::Wanted;
    use fabric::System;
    use fabric::catalogue::Catalogue;
    use fabric::components::Part;
    use replay::Variability;

    /// A request to compare these machines with these numbers of ranks.
    pub(crate) fn request(machines: &[&str], ranks: &[usize]) -> Request {
        let machine = |name: &&str| {
            let sheet = Catalogue::builtin().sheet(System::KIND, name).unwrap();
            Machine::new(name, sheet).unwrap()
        };
        Request {
            machines: machines.iter().map(machine).collect(),
            recorded_on: None,
            ranks: ranks.into(),
            per_host: 1,
            placements: vec![PlacementChoice::default()],
            variability: Variability::default(),
            options: Vec::new(),
            program: vec!["./a".into(), "100".into()],
            traces: Vec::new(),
            keep: None,
            wanted: Wanted::default(),
            recordings: None,
            quick: false,
            is_fast: false,
            divided: Divided::BestRanks,
            folder: RunFolder::Scratch,
        }
    }

    #[test]
    fn the_runs_are_counted() {
        let usual = request(&["qdr", "2xqdr", "fdr", "edr"], &[8, 16]);
        let quick = Request {
            quick: true,
            ..usual.clone()
        };
        let whole = Request {
            divided: Divided::All,
            ..usual.clone()
        };
        // The check replays its machine twice for each number of ranks.
        let checked = Request {
            recorded_on: Some(RecordedOn(usual.machines[0].clone())),
            ..usual.clone()
        };
        let more = checked.runs(None).replays - usual.runs(None).replays;
        assert_eq!(more, 2 * 2);
        // The plain runs are recordings, one replay on each machine, and recordings left out on the
        // first. Then a free start on the first machine and on all with the best number of ranks;
        // 14 ideal ones.
        let counts = [&usual, &quick, &whole].map(|request| {
            let runs = request.runs(None);
            (runs.recordings, runs.replays)
        });
        assert_eq!(counts, [(6, 8 + 6 + 5 + 14), (2, 8), (6, 8 + 6 + 8 + 28)]);
        assert!(usual.announced(None).starts_with(
            "./a runs 6 times or more, and what it recorded is replayed 33 times or more; "
        ));
        assert!(
            quick.announced(None).starts_with(
                "./a runs 2 times, and what it recorded is replayed 8 times or more; "
            )
        );
        let says = usual.dry_run().unwrap();
        assert!(
            says.contains("33 times, then usually 2 to 40 times")
                && says.contains("each other's hosts")
                && says.contains("6 times more for each pair of recordings"),
            "{says}"
        );
    }
}
