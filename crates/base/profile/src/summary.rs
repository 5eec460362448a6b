//! The summary of a job: the counts of its ranks, summed up.

use std::collections::BTreeMap;

use crate::left_out::LeftOut;
use crate::read::{Procedure, RankRecord, SizeClass, State};

/// Picoseconds in a second.
pub(crate) const SECOND: f64 = 1e12;

/// The summary of a job. As JSON it is the object of `fishplate run --summary json`.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Summary {
    /// The program that ran, with its arguments.
    pub program: String,
    /// The number of ranks of the job.
    pub ranks: usize,
    /// The largest number of ranks on a host.
    pub ranks_per_host: usize,
    /// The modelled machine on which the job ran, if any.
    pub fabric: Option<String>,
    /// The time of the job on the modelled machine, in seconds.
    pub virtual_s: Option<f64>,
    /// The time at which the last rank returned from MPI_Init, in seconds; of a modelled machine.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub started_s: Option<f64>,
    /// The time of the job on this machine, in seconds.
    pub wall_s: f64,
    /// True for a replay the fast way, which runs no protocols.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "std::ops::Not::not")
    )]
    pub fast: bool,
    /// True if a rank has not called MPI_Finalize: its last call and all later ones are missing.
    pub partial: bool,
    /// The share of a rank's time in MPI: least, median and greatest over all ranks.
    pub mpi_share: Shares,
    /// The times of each rank that has called MPI_Init.
    pub per_rank: Vec<RankTimes>,
    /// The procedures, summed over the ranks, most time first.
    pub procedures: Vec<ProcedureUse>,
    /// The messages between ranks.
    pub messages: Messages,
    /// The pairs of ranks that have communicated, in order of sender and receiver.
    pub matrix: Vec<Pair>,
    /// The busiest resources of the modelled machine, busiest first.
    pub resources: Vec<ResourceUse>,
    /// The busiest link between switches. `None`: no message crossed one.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub fullest_link: Option<ResourceUse>,
    /// The connections from processes outside the job, for each rail that had any.
    #[cfg_attr(feature = "serde", serde(default))]
    pub strangers: Vec<Strangers>,
    /// The ranks that had no path to a peer for some time.
    #[cfg_attr(feature = "serde", serde(default))]
    pub outages: Vec<RankOutages>,
    /// The computing of each rank, if it is timed. Its times differ from run to run.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub computed: Vec<RankComputing>,
    /// For each rank the virtual times, in seconds, at which it began the marked steps of a replay.
    /// Empty without marks.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub steps: Vec<Vec<f64>>,
    /// The tests and waits of a replay that would have found other requests complete than in the
    /// recorded run. `None`: there are none.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub other_choices: Option<u64>,
    /// The effects that the modelled machine leaves out of this run.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "LeftOut::is_empty")
    )]
    pub left_out: LeftOut,
}

/// The computing of a rank whose computing is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RankComputing {
    /// The world rank.
    pub rank: usize,
    /// Involuntary context switches while the rank computed.
    pub switches: u64,
    /// The time that the rank computed, in seconds.
    pub computing_s: f64,
    /// The greatest number of threads of the rank that computed at one time.
    pub threads: u64,
}

/// The outages of a rank that have ended: the times without any path to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RankOutages {
    /// The world rank.
    pub rank: usize,
    /// The number of outages of the rank that have ended.
    pub count: u64,
    /// The sum of the durations of the outages, in seconds. Simultaneous outages to several peers
    /// are added.
    pub seconds: f64,
}

/// The connections that processes outside the job have made to a rail of a rank. They could not
/// prove that they know the secret, and were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Strangers {
    /// The world rank.
    pub rank: usize,
    /// The index of the rail on that rank.
    pub rail: usize,
    /// The number of connections from processes outside the job.
    pub count: u64,
}

/// The least, the median and the greatest share among the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shares {
    /// The least share among the ranks.
    pub least: f64,
    /// The median share; with an even number of ranks the mean of the middle two.
    pub median: f64,
    /// The greatest share among the ranks.
    pub most: f64,
}

/// The times of a rank, from the call of MPI_Init to the return of MPI_Finalize, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RankTimes {
    /// The world rank.
    pub rank: usize,
    /// The time of the rank in MPI procedures, in seconds.
    pub mpi_s: f64,
    /// The time of the rank outside MPI procedures, in seconds.
    pub compute_s: f64,
    /// The part of `mpi_s` for which the rank was idle, in seconds, if it is known.
    pub wait_s: Option<f64>,
    /// The part of `mpi_s` for which the rank worked on its own memory on a modelled machine, in
    /// seconds: the arithmetic of reductions, packing, the program's callbacks.
    #[cfg_attr(feature = "serde", serde(default))]
    pub inside_s: f64,
    /// The part of `compute_s` that the progress thread of windows has added to it, in seconds.
    #[cfg_attr(feature = "serde", serde(default))]
    pub thread_s: f64,
}

/// The calls of a procedure by all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcedureUse {
    /// The name of the procedure.
    pub name: String,
    /// The number of calls by all ranks.
    pub calls: u64,
    /// The time in the calls of all ranks, in seconds.
    pub seconds: f64,
    /// The bytes of the messages that began during the calls.
    pub bytes: u64,
}

/// The messages between ranks, those within collective operations included.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Messages {
    /// The number of messages that were sent.
    pub count: u64,
    /// The sum of the bytes of the messages.
    pub bytes: u64,
    /// The messages by size, without empty classes.
    pub by_size: Vec<SizeClass>,
}

/// The messages from one rank to another: `[from, to, count, bytes]` in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "[u64; 4]", into = "[u64; 4]"))]
pub struct Pair {
    /// The world rank of the sender.
    pub from: u64,
    /// The world rank of the receiver.
    pub to: u64,
    /// The number of messages from the sender to the receiver.
    pub count: u64,
    /// The sum of the bytes of the messages from the sender to the receiver.
    pub bytes: u64,
}

impl From<[u64; 4]> for Pair {
    fn from([from, to, count, bytes]: [u64; 4]) -> Pair {
        Pair {
            from,
            to,
            count,
            bytes,
        }
    }
}

impl From<Pair> for [u64; 4] {
    fn from(pair: Pair) -> [u64; 4] {
        [pair.from, pair.to, pair.count, pair.bytes]
    }
}

/// The use of a resource of a modelled machine.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ResourceUse {
    /// The name of the resource, such as `link out`.
    pub name: String,
    /// The number of the host that the resource belongs to.
    pub host: u32,
    /// The rail that the resource belongs to, if any.
    pub rail: Option<u32>,
    /// The time for which the resource was busy, in seconds.
    pub busy_s: f64,
    /// The share of the job's time for which the resource was busy.
    pub share: f64,
}

/// The facts of a job that its ranks do not record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFacts {
    /// The program that ran, with its arguments.
    pub program: String,
    /// The largest number of ranks on a host.
    pub ranks_per_host: usize,
    /// The modelled machine on which the job ran, if any.
    pub fabric: Option<String>,
    /// The time of the job on this machine, in seconds.
    pub wall_s: f64,
    /// The busiest resources of the modelled machine, busiest first.
    pub resources: Vec<ResourceUse>,
    /// The busiest link between switches. `None`: no message crossed one.
    pub fullest_link: Option<ResourceUse>,
    /// For each rank the times, in seconds, at which it began the steps of a replayed trace.
    pub steps: Vec<Vec<f64>>,
    /// The choices of a replay that time decided otherwise than in the recorded run. `None`: there
    /// are none.
    pub other_choices: Option<u64>,
    /// The reason why the program's own clocks show the time of this computer instead of virtual
    /// time.
    pub real_clocks: Option<String>,
}

impl Summary {
    /// Sums up what the ranks of a job have counted.
    pub fn of(facts: JobFacts, records: &[RankRecord]) -> Summary {
        let began = || {
            let ranks = records.iter().enumerate();
            ranks.filter(|(_, record)| record.state != State::Absent)
        };
        let per_rank: Vec<RankTimes> = began().map(times).collect();
        let end = began().map(|(_, record)| record.time).max();
        Summary {
            program: facts.program,
            ranks: records.len(),
            ranks_per_host: facts.ranks_per_host,
            virtual_s: end
                .filter(|_| facts.fabric.is_some())
                .map(|end| end as f64 / SECOND),
            started_s: began()
                .map(|(_, record)| record.started as f64 / SECOND)
                .reduce(f64::max)
                .filter(|_| facts.fabric.is_some()),
            fabric: facts.fabric,
            wall_s: facts.wall_s,
            fast: false,
            partial: began().any(|(_, record)| record.state != State::Finished)
                || !(per_rank.is_empty() || per_rank.len() == records.len()),
            mpi_share: shares(&per_rank),
            per_rank,
            procedures: procedures(records.iter().flat_map(|record| &record.procedures)),
            messages: messages(records),
            matrix: matrix(records),
            resources: facts.resources,
            fullest_link: facts.fullest_link,
            strangers: strangers(records),
            outages: outages(records),
            computed: computed(records),
            steps: facts.steps,
            other_choices: facts.other_choices,
            left_out: LeftOut::of(records, facts.real_clocks),
        }
    }

    /// True if no rank has called MPI_Init.
    pub fn is_empty(&self) -> bool {
        self.per_rank.is_empty()
    }
}

impl RankTimes {
    /// The share of the rank's time that it spent in MPI.
    pub fn mpi_share(&self) -> f64 {
        match self.mpi_s + self.compute_s {
            0.0 => 0.0,
            all => self.mpi_s / all,
        }
    }
}

fn times((rank, record): (usize, &RankRecord)) -> RankTimes {
    let in_mpi = record.in_mpi.min(record.time);
    RankTimes {
        rank,
        mpi_s: in_mpi as f64 / SECOND,
        compute_s: (record.time - in_mpi) as f64 / SECOND,
        wait_s: record.waited.map(|time| time as f64 / SECOND),
        inside_s: record.worked as f64 / SECOND,
        thread_s: record.delayed as f64 / SECOND,
    }
}

fn shares(ranks: &[RankTimes]) -> Shares {
    let mut shares: Vec<f64> = ranks.iter().map(RankTimes::mpi_share).collect();
    shares.sort_by(f64::total_cmp);
    let (Some(&least), Some(&most)) = (shares.first(), shares.last()) else {
        return Shares::default();
    };
    let middle = shares.len() / 2;
    Shares {
        least,
        median: (shares[(shares.len() - 1) / 2] + shares[middle]) / 2.0,
        most,
    }
}

fn procedures<'a>(all: impl Iterator<Item = &'a Procedure>) -> Vec<ProcedureUse> {
    let mut sums: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for procedure in all {
        let sum = sums.entry(&procedure.name).or_default();
        let own = [procedure.calls, procedure.time, procedure.bytes];
        *sum = std::array::from_fn(|at| sum[at].saturating_add(own[at]));
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(name, [_, time, _])| (std::cmp::Reverse(*time), *name));
    let total = |(name, [calls, time, bytes]): (&str, [u64; 3])| ProcedureUse {
        name: name.into(),
        calls,
        seconds: time as f64 / SECOND,
        bytes,
    };
    sums.into_iter().map(total).collect()
}

fn messages(records: &[RankRecord]) -> Messages {
    let mut classes: BTreeMap<u64, SizeClass> = BTreeMap::new();
    let mut all = Messages::default();
    for class in records.iter().flat_map(|record| &record.sizes) {
        let sum = classes.entry(class.up_to).or_default();
        sum.up_to = class.up_to;
        sum.count = sum.count.saturating_add(class.count);
        sum.bytes = sum.bytes.saturating_add(class.bytes);
        all.count = all.count.saturating_add(class.count);
        all.bytes = all.bytes.saturating_add(class.bytes);
    }
    all.by_size = classes.into_values().collect();
    all
}

fn matrix(records: &[RankRecord]) -> Vec<Pair> {
    let of = |(from, record): (usize, &RankRecord)| {
        let mut row: Vec<Pair> = record
            .peers
            .iter()
            .map(|peer| Pair {
                from: from as u64,
                to: peer.rank,
                count: peer.sent.count,
                bytes: peer.sent.bytes,
            })
            .collect();
        row.sort_by_key(|pair| pair.to);
        row
    };
    records.iter().enumerate().flat_map(of).collect()
}

fn strangers(records: &[RankRecord]) -> Vec<Strangers> {
    let of = |(rank, record): (usize, &RankRecord)| {
        let rails = record.strangers.into_iter().enumerate();
        let counted = rails.filter(|(_, count)| *count > 0);
        counted.map(move |(rail, count)| Strangers { rank, rail, count })
    };
    records.iter().enumerate().flat_map(of).collect()
}

fn computed(records: &[RankRecord]) -> Vec<RankComputing> {
    let of = |(rank, record): (usize, &RankRecord)| {
        let (switches, time, threads) = record.computed?;
        Some(RankComputing {
            rank,
            switches,
            computing_s: time as f64 / SECOND,
            threads,
        })
    };
    records.iter().enumerate().filter_map(of).collect()
}

fn outages(records: &[RankRecord]) -> Vec<RankOutages> {
    let of = |(rank, record): (usize, &RankRecord)| {
        let (count, time) = record.outages;
        let seconds = time as f64 / SECOND;
        (count > 0).then_some(RankOutages {
            rank,
            count,
            seconds,
        })
    };
    records.iter().enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests;
