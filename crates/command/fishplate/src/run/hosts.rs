//! The options of `fishplate run` for hosts, and the placement of ranks on the hosts.

use std::path::PathBuf;

use clap::Args;
use results::arguments::{ANY, whole_number};

/// The command-line arguments that name the hosts of a job.
#[derive(Args)]
pub(super) struct HostArguments {
    /// Run on these hosts, filled in order; NAME:RANKS sets the number of ranks on a host. Further
    /// lists add hosts
    #[arg(long, value_name = "NAME[:RANKS],...", conflicts_with = "fabric")]
    hosts: Vec<String>,

    /// Run on the hosts that this file names, one on a line: `a`, `a:2`, `a slots=2 max_slots=4`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fabric", "hosts"])]
    hostfile: Option<PathBuf>,

    /// Batch system whose hosts and places to use: auto, none, flux, slurm, pbs, lsf, sge, or
    /// hostfile for the one that variables of other launchers name
    #[arg(long, value_name = "NAME", default_value = "auto", conflicts_with = "fabric",
        value_parser = launch::AllocationChoice::parse)]
    allocation: launch::AllocationChoice,

    /// Command that starts a program on a host, e.g. 'ssh {host}' [default: the batch system's, or
    /// ssh in batch mode]
    #[arg(long, value_name = "COMMAND WITH {host}")]
    launch_with: Option<String>,

    /// Most ranks on each host (on a modelled machine: default 1)
    #[arg(long, value_name = "COUNT",
        value_parser = |word: &str| whole_number::<usize>(word, ANY))]
    pub(super) ppn: Option<usize>,

    /// Let hosts take more ranks than the places that --hosts or --hostfile gives them
    #[arg(long)]
    oversubscribe: bool,

    /// Refuse more ranks on a host than it has cores
    #[arg(long, conflicts_with = "oversubscribe")]
    pub(super) nooversubscribe: bool,
}

impl HostArguments {
    /// Places the ranks. Returns their number, and the hosts; no hosts mean this machine. If no
    /// number is given, a binding that counts ranks by parts of this machine determines it.
    pub(super) fn place(
        &self,
        ranks: Option<usize>,
        is_modelled: bool,
        binding: &launch::BindingRequest,
    ) -> Result<(usize, Vec<launch::JobHost>), String> {
        let named = match (&self.hosts[..], &self.hostfile) {
            ([], None) => None,
            ([], Some(file)) => Some(launch::HostList::read(file)?),
            (lists, _) => Some(launch::HostList::parse(&lists.join(","))?),
        };
        let allocation = match is_modelled {
            true => None,
            false => launch::Allocation::of_this_process(self.allocation)?,
        };
        let list = match (&named, &allocation) {
            (Some(list), Some(allocation)) => allocation.restrict(list, self.oversubscribe)?,
            (Some(list), None) => list.clone(),
            (None, Some(allocation)) => allocation.list(),
            (None, None) if self.launch_with.is_some() => {
                return Err(
                    "--launch-with starts programs on other hosts: name them by --hosts or --hostfile".into(),
                );
            }
            (None, None) if is_modelled => return Ok((ranks.unwrap_or(1), Vec::new())),
            (None, None) => {
                let ranks = ranks.or_else(|| binding.ranks_here());
                return Ok((self.ranks_here(ranks)?, Vec::new()));
            }
        };
        let asked = allocation.as_ref().filter(|_| named.is_none());
        let wanted = launch::Places {
            ranks: ranks.or(asked.and_then(launch::Allocation::ranks)),
            per_host: self.ppn,
            oversubscribe: self.oversubscribe,
            launch_with: self.launch_with.as_deref(),
            allocation: allocation.as_ref(),
        };
        let hosts = launch::place(&list, wanted)?;
        let ranks = hosts.iter().map(|host| host.ranks).sum();
        match hosts.as_slice() {
            // If the only host is this machine, its ranks need no agent.
            [host] if named.is_none() && host.command.is_empty() => Ok((ranks, Vec::new())),
            _ => Ok((ranks, hosts)),
        }
    }

    /// The number of ranks for a job on this machine only.
    fn ranks_here(&self, ranks: Option<usize>) -> Result<usize, String> {
        match (ranks, self.ppn) {
            (_, Some(0)) => Err("--ppn 0: a host needs at least one rank".into()),
            (Some(ranks), Some(most)) if ranks > most && !self.oversubscribe => Err(format!(
                "--ppn {most}: {ranks} ranks need more hosts than this one; name them by --hosts or --hostfile"
            )),
            (ranks, most) => Ok(ranks.or(most).unwrap_or(1)),
        }
    }
}
