//! The check of the model by the recorded run: the machine of the recording replays it, and the
//! times of the replay are compared with those that the ranks measured.
//!
//! All times are means of the ranks, from the end of `MPI_Init` to the begin of `MPI_Finalize`,
//! without the work of the recorder.

pub(crate) mod show;

use anyhow::Result;
use profile::Summary;
use trace::{Measured, Trace};

use crate::Request;
use crate::ideal::Ideal;
use crate::jobs::{Runner, Task};
use crate::machine::Machine;
use crate::record::{Record, Recordings};

/// The machine of the recording, if the user names one, with its values.
#[derive(Clone, Debug)]
pub struct RecordedOn(pub Machine);

/// The greatest share of the recorded time for which other processes may have had the cores of the
/// ranks: beyond it the recorded times say more of them than of the machine.
const INTERRUPTED: f64 = 0.05;
/// The greatest error of a time, as a share of the recorded whole, that counts as a fit: the error
/// of predictions that the project demands of itself (the median of its applications).
const FITS: f64 = 0.05;

/// The check with one number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The name of the recorded machine.
    pub machine: String,
    /// The number of ranks.
    pub ranks: usize,
    /// The number of ranks on each host.
    pub per_host: usize,
    /// False if the ranks were not placed on the hosts in blocks of equal size, as the replay
    /// places them.
    pub is_placed_alike: bool,
    /// The comparison of the times, or the reason why there is none.
    pub outcome: Result<Checked, String>,
}

/// The times of the recorded run beside those of its replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The whole, then the time outside MPI, then that in the calls of each procedure, the longest
    /// recorded time first.
    pub kinds: Vec<Kind>,
    /// The time that the null model gives, in seconds: computing + messages × latency + bytes /
    /// rate of the slowest rank, by the figures of the machine.
    pub null: f64,
    /// The part of the replayed time that the network costs, in seconds.
    pub network: f64,
    /// The share of the recorded time for which other processes had the cores of the ranks.
    pub interrupted: f64,
}

/// The recorded and the replayed time of one kind of calls, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The name of a procedure, or [`WHOLE`] or [`OUTSIDE`].
    pub name: String,
    /// The time that the ranks measured.
    pub recorded: f64,
    /// The time of the replay.
    pub replayed: f64,
}

/// The name of the whole time.
pub const WHOLE: &str = "all";
/// The name of the time outside MPI.
pub const OUTSIDE: &str = "outside MPI";

impl Kind {
    /// The replayed time minus the recorded one, in seconds.
    pub fn error(&self) -> f64 {
        self.replayed - self.recorded
    }
}

impl Checked {
    /// The recorded and the replayed time of the whole.
    pub fn whole(&self) -> &Kind {
        &self.kinds[0]
    }

    /// An error in seconds as a share of the recorded time.
    pub fn share(&self, seconds: f64) -> f64 {
        seconds / self.whole().recorded.max(f64::MIN_POSITIVE)
    }

    /// True if the recorded times are those of the machine alone.
    pub fn is_usable(&self) -> bool {
        self.interrupted <= INTERRUPTED && self.whole().recorded > 0.0
    }

    /// The kinds of calls whose error is more than a twentieth of the recorded time, and the time
    /// outside MPI if it is such a one. Empty: the whole fits, by each kind.
    pub fn misfits(&self) -> Vec<&Kind> {
        let kinds = self.kinds[1..].iter();
        kinds
            .filter(|kind| self.share(kind.error()).abs() > FITS)
            .collect()
    }

    /// The factor by which the costs of the network are off, if they alone are wrong. `None`: the
    /// recorded times say nothing of the machine.
    pub fn factor(&self) -> Option<f64> {
        let error = self.whole().error().abs();
        let factor = match self.network > 0.0 {
            true => 1.0 + error / self.network,
            false => f64::INFINITY,
        };
        self.is_usable().then_some(factor)
    }

    /// The comparison of what the ranks of the recordings measured with the summaries of two
    /// replays: on the machine, and without any cost of its network.
    fn of(recordings: &[Vec<&Measured>], run: &Summary, free: &Summary, null: f64) -> Checked {
        let recorded = Times::recorded(recordings);
        let [replayed, free] = [run, free].map(Times::replayed);
        let kind = |name: &str, of: fn(&Times) -> f64| Kind {
            name: name.into(),
            recorded: of(&recorded),
            replayed: of(&replayed),
        };
        let mut kinds: Vec<Kind> = Vec::new();
        for (name, seconds) in &recorded.inside {
            kinds.push(Kind {
                name: name.clone(),
                recorded: *seconds,
                replayed: replayed.inside(name),
            });
        }
        kinds.sort_by(|one, other| other.recorded.total_cmp(&one.recorded));
        kinds.splice(
            0..0,
            [kind(WHOLE, Times::whole), kind(OUTSIDE, |all| all.outside)],
        );
        let interrupted = recordings
            .iter()
            .flatten()
            .map(|one| one.interrupted as f64);
        let all = recordings.iter().flatten().count().max(1) as f64;
        Checked {
            null,
            network: replayed.whole() - free.whole(),
            interrupted: interrupted.sum::<f64>() * 1e-9
                / all
                / recorded.whole().max(f64::MIN_POSITIVE),
            kinds,
        }
    }
}

/// The mean times of the ranks of a run, in seconds.
#[derive(Default)]
struct Times {
    outside: f64,
    /// The time in the calls of each procedure.
    inside: Vec<(String, f64)>,
}

impl Times {
    /// The mean of several recordings.
    fn recorded(recordings: &[Vec<&Measured>]) -> Times {
        let ranks = recordings.iter().flatten().count().max(1) as f64;
        let mut times = Times::default();
        for measured in recordings.iter().flatten() {
            times.outside += measured.outside as f64 * 1e-9 / ranks;
            for one in &measured.inside {
                times.add(&one.procedure, one.nanos as f64 * 1e-9 / ranks);
            }
        }
        times
    }

    fn replayed(summary: &Summary) -> Times {
        let ranks = summary.per_rank.len().max(1) as f64;
        let outside = summary.per_rank.iter().map(|rank| rank.compute_s);
        let mut times = Times {
            outside: outside.sum::<f64>() / ranks,
            inside: Vec::new(),
        };
        for one in &summary.procedures {
            if !["MPI_Init", "MPI_Init_thread", "MPI_Finalize"].contains(&one.name.as_str()) {
                times.add(&one.name, one.seconds / ranks);
            }
        }
        times
    }

    fn add(&mut self, procedure: &str, seconds: f64) {
        match self.inside.iter_mut().find(|of| of.0 == procedure) {
            Some(of) => of.1 += seconds,
            None => self.inside.push((procedure.into(), seconds)),
        }
    }

    fn inside(&self, procedure: &str) -> f64 {
        let known = self.inside.iter().find(|of| of.0 == procedure);
        known.map_or(0.0, |of| of.1)
    }

    fn whole(&self) -> f64 {
        self.outside + self.inside.iter().map(|of| of.1).sum::<f64>()
    }
}

/// The number of ranks on each host of a recorded run. `None`: they were not placed in blocks of
/// equal size, or were not measured.
pub fn placement(trace: &Trace) -> Option<usize> {
    let hosts = trace
        .ranks
        .iter()
        .map(|rank| Some(rank.measured.as_ref()?.host));
    let hosts: Vec<u64> = hosts.collect::<Option<_>>()?;
    let first = hosts.first()?;
    let each = hosts.iter().take_while(|host| *host == first).count();
    let is_block = |(rank, host): (usize, &u64)| (rank / each) as u64 == *host;
    hosts.iter().enumerate().all(is_block).then_some(each)
}

/// True if all ranks of the trace have measured their times.
pub fn is_measured(trace: &Trace) -> bool {
    trace.ranks.iter().all(|rank| rank.measured.is_some())
}

impl Request {
    /// A machine of the comparison by its number; that of the recording comes after the others.
    pub(crate) fn machine(&self, number: usize) -> &Machine {
        match (self.machines.get(number), &self.recorded_on) {
            (None, Some(RecordedOn(machine))) => machine,
            _ => &self.machines[number],
        }
    }

    /// The number of ranks on each host of a machine, in replays with this number of ranks.
    pub(crate) fn per_host_of(&self, machine: usize, ranks: usize) -> usize {
        let is_recorded = machine >= self.machines.len();
        let recorded = is_recorded
            .then(|| self.recorded_placement(ranks))
            .flatten();
        recorded.unwrap_or(self.per_host)
    }

    fn recorded_placement(&self, ranks: usize) -> Option<usize> {
        let trace = self.traces.iter().find(|one| one.ranks.len() == ranks)?;
        placement(trace)
    }
}

/// Makes the checks: one for each number of ranks, if the user names the machine of the recording.
pub(crate) fn checks(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
) -> Result<Vec<Check>> {
    let Some(RecordedOn(machine)) = &request.recorded_on else {
        return Ok(Vec::new());
    };
    let number = request.machines.len();
    let tasks = record.counts.iter().flat_map(|of| {
        let free = Task::ideal(request, number, of.ranks, Ideal::Everything);
        [
            Task::plain(number, of.ranks).with_taken(),
            Task {
                is_free: false,
                ..free.with_taken()
            },
        ]
    });
    let tasks: Vec<Task> = tasks.collect();
    runner.phase("replaying the machine of the recording", Some(tasks.len()));
    let outcomes = runner.replay(request, record, &tasks)?;
    let pairs = record.counts.iter().zip(outcomes.chunks_exact(2));
    let checks = pairs.map(|(of, outcomes)| {
        let per_host = request.per_host_of(number, of.ranks);
        let outcome = match outcomes {
            [Ok(run), Ok(free)] => {
                let null = null_model(machine, per_host, run);
                Ok(Checked::of(&measured(of), run, free, null))
            }
            [Err(why), _] | [_, Err(why)] => Err(why.clone()),
            _ => Err("it was not replayed".into()),
        };
        Check {
            machine: machine.name.clone(),
            ranks: of.ranks,
            per_host,
            is_placed_alike: request.recorded_placement(of.ranks).is_some(),
            outcome,
        }
    });
    Ok(checks.collect())
}

/// The times that the ranks of each recording have measured.
fn measured(of: &Recordings) -> Vec<Vec<&Measured>> {
    let recordings = of.recordings.iter();
    let ranks = recordings.map(|one| &one.recorded().ranks);
    let measured = ranks.map(|ranks| {
        let all = ranks.iter().filter_map(|rank| rank.measured.as_ref());
        all.collect()
    });
    measured.collect()
}

/// The time of a run by the null model, in seconds. Messages within a host cost nothing.
fn null_model(machine: &Machine, per_host: usize, run: &Summary) -> f64 {
    let (latency, rate) = machine.latency_and_rate();
    let times = run.per_rank.iter().map(|rank| {
        let host = |rank: u64| rank as usize / per_host.max(1);
        let sent = run
            .matrix
            .iter()
            .filter(|pair| pair.from as usize == rank.rank && host(pair.from) != host(pair.to));
        let seconds = sent.map(|pair| pair.count as f64 * latency + pair.bytes as f64 / rate);
        rank.compute_s + seconds.sum::<f64>()
    });
    times.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
