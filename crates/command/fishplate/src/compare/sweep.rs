//! The sweep of a comparison, from the command line: ranks, ranks on each host, hosts, networks'
//! ratios, placements.
//!
//! Invariant: a job that has no room on a machine is an error before any run.

use ::compare::placements::RANDOM;
use ::compare::{Machine, PER_HOST, PLACEMENT, PlacementChoice, Setting};
use clap::Args;
use fabric::Oversubscription;
use results::arguments::{POSITIVE, whole_number};

use super::machines::MachineArguments;
use super::prices::PriceArguments;
use crate::modelled::LARGER;

#[derive(Args)]
pub(super) struct SweepArguments {
    /// Numbers of ranks, such as 8,16,32 [default: 2, or those of the traces]
    #[arg(short = 'n', long = "ranks", visible_alias = "np", value_name = "COUNT,...",
        value_delimiter = ',',
        value_parser = |word: &str| whole_number::<usize>(word, POSITIVE))]
    ranks: Vec<usize>,

    /// Numbers of hosts, all of them full: the ranks are COUNT times those of --ppn
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', conflicts_with = "ranks",
        value_parser = |word: &str| whole_number::<usize>(word, POSITIVE))]
    nodes: Vec<usize>,

    /// Ranks on each host; several are compared one after the other
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', default_value = "1",
        value_parser = |word: &str| whole_number::<usize>(word, POSITIVE))]
    ppn: Vec<usize>,

    /// Hosts of a leaf switch for each of its links up, on all machines: 1, or 3 or 3:1; several
    /// are compared one after the other. Jobs on hosts below one switch do not notice (--set
    /// nodes=COUNT with --placement)
    #[arg(long, value_name = "RATIO,...", value_delimiter = ',',
        value_parser = Oversubscription::of_word)]
    oversubscription: Vec<Oversubscription>,

    /// Hosts of each machine on which the job's nodes lie: `packed` (the first), `spread` (at even
    /// distances), `random` (several by chance), `random:SEED`, or their numbers from 0, such as
    /// `0,4,8-11`; several of these are compared one after the other. A machine has as many hosts
    /// as its value `nodes` says (--set nodes=COUNT); a packed job makes it larger [default:
    /// packed]
    #[arg(long, value_name = "RULE|HOSTS,...")]
    placement: Vec<String>,

    /// Placements of `--placement random`: seeds 1 to COUNT. The times are those in the middle
    #[arg(long, value_name = "COUNT", default_value_t = RANDOM, requires = "placement",
        value_parser = |word: &str| whole_number::<u64>(word, 1..=1000))]
    placements: u64,

    /// Let nodes and calls of the job vary, in COUNT draws: nodes by 1 % and one in six by 10 %
    /// more, calls by delays of 3.4 %. A draw is the same on all machines. The times are those in
    /// the middle, and the answer says on how many draws it holds [default of COUNT: 5]
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "5",
        require_equals = true, conflicts_with_all = ["points", "merge"],
        value_parser = |word: &str| whole_number::<u64>(word, 1..=1000))]
    vary: Option<u64>,
}

/// One comparison of the sweep.
pub(super) struct Case {
    pub(super) machines: Vec<Machine>,
    pub(super) ranks: Vec<usize>,
    pub(super) per_host: usize,
    pub(super) placement: PlacementChoice,
    pub(super) setting: Vec<Setting>,
}

/// The words, sorted and each once.
fn set(numbers: &[usize]) -> Vec<usize> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl SweepArguments {
    /// The numbers of ranks that the user wants; empty for those of the traces.
    pub(super) fn wanted(&self) -> Vec<usize> {
        let full = self.ppn.iter();
        let full = full.flat_map(|ppn| self.nodes.iter().map(move |nodes| nodes * ppn));
        set(&[self.ranks.clone(), full.collect()].concat())
    }

    /// True if the user wants numbers of hosts.
    pub(super) fn has_nodes(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// The ranks on each host of the first comparison.
    pub(super) fn first_ppn(&self) -> usize {
        self.ppn[0]
    }

    /// The comparisons of the sweep. `recorded`: the numbers of ranks of the traces, if any.
    pub(super) fn cases(
        &self,
        machines: &MachineArguments,
        prices: &PriceArguments,
        recorded: &[usize],
    ) -> Result<Vec<Case>, String> {
        let placements = self.placements()?;
        let mut ratios: Vec<Option<Oversubscription>> = Vec::new();
        for ratio in self.oversubscription.iter().copied().map(Some) {
            if ratios.contains(&ratio) {
                return Err(format!(
                    "--oversubscription: {}:1 is named twice",
                    ratio.map_or(1, |one| one.0)
                ));
            }
            ratios.push(ratio);
        }
        if ratios.is_empty() {
            ratios.push(None);
        }
        let mut cases = Vec::new();
        for per_host in set(&self.ppn) {
            let ranks = self.ranks_with(per_host, recorded);
            for ratio in &ratios {
                let machines = prices.priced(machines.machines(*ratio)?)?;
                for machine in &machines {
                    for ranks in &ranks {
                        let checked = machine.check(*ranks, per_host);
                        checked.map_err(|why| format!("--fabrics: {why}"))?;
                    }
                }
                for placement in &placements {
                    check_placed(placement, &machines, &ranks, per_host)?;
                    cases.push(Case {
                        setting: self.setting(per_host, *ratio, placement, placements.len()),
                        machines: machines.clone(),
                        ranks: ranks.clone(),
                        per_host,
                        placement: placement.clone(),
                    });
                }
            }
        }
        Ok(cases)
    }

    /// The numbers of ranks with so many on each host.
    fn ranks_with(&self, per_host: usize, recorded: &[usize]) -> Vec<usize> {
        let full: Vec<usize> = self.nodes.iter().map(|nodes| nodes * per_host).collect();
        match (full.is_empty(), recorded.is_empty(), self.ranks.is_empty()) {
            (false, ..) => set(&full),
            (_, false, _) => set(recorded),
            (.., false) => set(&self.ranks),
            _ => vec![2],
        }
    }

    /// The settings that the user has listed.
    fn setting(
        &self,
        per_host: usize,
        ratio: Option<Oversubscription>,
        placement: &PlacementChoice,
        placements: usize,
    ) -> Vec<Setting> {
        let of = |name: &'static str, value: String| Setting { name, value };
        let is_placed = placements > 1 || !placement.is_packed();
        let per_host = (self.ppn.len() > 1).then(|| of(PER_HOST, per_host.to_string()));
        let ratio = ratio.map(|ratio| of("oversubscription", format!("{ratio}:1")));
        let placement = is_placed.then(|| of(PLACEMENT, placement.name.clone()));
        [per_host, ratio, placement].into_iter().flatten().collect()
    }

    /// The choices of placements.
    fn placements(&self) -> Result<Vec<PlacementChoice>, String> {
        let choices = PlacementChoice::parse(&self.placement, self.placements);
        let choices = choices.map_err(|why| format!("--placement: {why}"))?;
        let varied = |choice: PlacementChoice| match self.vary {
            Some(draws) => choice.varied(draws),
            None => choice,
        };
        Ok(choices.into_iter().map(varied).collect())
    }
}

/// Checks that the jobs have room with a placement.
fn check_placed(
    choice: &PlacementChoice,
    machines: &[Machine],
    ranks: &[usize],
    per_host: usize,
) -> Result<(), String> {
    if choice.is_packed() {
        return Ok(());
    }
    for ranks in ranks {
        let mut machines = machines.iter();
        let check = |one: &Machine| one.check_placed(*ranks, per_host, &choice.each[0].placement);
        let checked = machines.try_for_each(check);
        checked.map_err(|why| format!("--placement {}: {why}; {LARGER}", choice.name))?;
    }
    Ok(())
}
