//! Counts the runs and replays that a comparison makes.

use std::time::Duration;

use crate::estimate::{self, Runs};
use crate::record::Record;
use crate::{FIRST, MOST_RECORDINGS, Request};

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
    pub(crate) fn runs(&self, recorded: Option<&Record>) -> Runs {
        let (first, _) = self.recordings();
        let (made, numbers): (usize, Vec<usize>) = match recorded {
            Some(record) => {
                let counts = record.counts.iter();
                let counts = counts.filter(|of| self.ranks.contains(&of.ranks));
                (0, counts.map(|of| of.recordings.len()).collect())
            }
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
        let plain = plain * (self.placement.each.len() + usize::from(has_wildcards))
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

    /// True if machines of the comparison have different hosts, so that networks can be exchanged.
    pub(crate) fn has_different_hosts(&self) -> bool {
        let first = &self.machines[0];
        let mut others = self.machines.iter();
        others.any(|machine| !machine.has_hosts_of(first))
    }

    /// True if replays are made to show how sure the answer is.
    pub(crate) fn has_search(&self) -> bool {
        self.machines.len() > 1 && !self.quick
    }

    /// The line about how long the recordings take that follow the first one. `None`: there is
    /// none.
    pub(crate) fn estimate_of_recordings(&self, each: Duration) -> Option<String> {
        let left = self.runs(None).recordings.saturating_sub(1);
        estimate::of_recordings(each, left)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Machine;
    use crate::PlacementChoice;
    use crate::RunFolder;
    use crate::Sweep;
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
            placement: PlacementChoice::default(),
            setting: Vec::new(),
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

    fn sweep(request: &Request) -> Sweep {
        Sweep::new(vec![request.clone()]).unwrap()
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
        assert!(sweep(&usual).announced(None).starts_with(
            "./a runs 6 times or more, and what it recorded is replayed 33 times or more; "
        ));
        assert!(
            sweep(&quick).announced(None).starts_with(
                "./a runs 2 times, and what it recorded is replayed 8 times or more; "
            )
        );
        let says = sweep(&usual).dry_run().unwrap();
        assert!(
            says.contains("33 times, then usually 2 to 40 times")
                && says.contains("each other's hosts")
                && says.contains("6 times more for each pair of recordings"),
            "{says}"
        );
    }
}
