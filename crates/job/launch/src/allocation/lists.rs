//! The hosts of an allocation of batch systems that list them in a file or a variable: PBS, LSF,
//! Grid Engine.

use super::given::{Allocation, Reach, Surroundings};
use crate::host_table::ListedHost;

/// PBS provides a file with a line for each slot. Its own command to start tasks has no standard
/// input, which an agent needs, so agents are started by ssh.
pub(super) fn pbs(from: &Surroundings<'_>) -> Result<Option<Allocation>, String> {
    let Some(path) = from.get("PBS_NODEFILE") else {
        return Ok(None);
    };
    let name = job_name(from, "PBS", "PBS_JOBID");
    let text = from.file_of("PBS_NODEFILE", &path)?;
    Allocation::new(name, one_place_each(&text), None, Reach::default())
}

/// LSF provides a file with a line for each slot, and a variable with pairs of a host and its
/// slots.
pub(super) fn lsf(from: &Surroundings<'_>) -> Result<Option<Allocation>, String> {
    let pairs = from.get("LSB_MCPU_HOSTS");
    let file = from.get("LSB_DJOB_HOSTFILE");
    let name = job_name(from, "LSF", "LSB_JOBID");
    let hosts = match (pairs, file) {
        (Some(pairs), _) => {
            let words: Vec<&str> = pairs.split_whitespace().collect();
            let read = |pair: &[&str]| match pair {
                [host, count] => listed(host, count),
                _ => None,
            };
            let hosts: Option<Vec<ListedHost>> = words.chunks(2).map(read).collect();
            hosts.ok_or_else(|| {
                format!("{name}: LSB_MCPU_HOSTS={pairs}: it lists no pairs of a host and a number")
            })?
        }
        (None, Some(path)) => one_place_each(&from.file_of("LSB_DJOB_HOSTFILE", &path)?),
        (None, None) => return Ok(None),
    };
    Allocation::new(name, hosts, None, by("blaunch {host}"))
}

/// Grid Engine provides a file with lines of host, number of slots, queue, and processors.
pub(super) fn grid_engine(from: &Surroundings<'_>) -> Result<Option<Allocation>, String> {
    let Some(path) = from.get("PE_HOSTFILE") else {
        return Ok(None);
    };
    let name = job_name(from, "Grid Engine", "JOB_ID");
    let text = from.file_of("PE_HOSTFILE", &path)?;
    let mut hosts = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut words = line.split_whitespace();
        let Some(host) = words.next() else { continue };
        let host = listed(host, words.next().unwrap_or_default()).ok_or_else(|| {
            format!("{name}: PE_HOSTFILE={path}:{number}: a line is a host, a number of places, a queue and processors")
        })?;
        hosts.push(host);
    }
    Allocation::new(name, hosts, None, by("qrsh -inherit -V {host}"))
}

/// The name of the batch system, with its name for the job, if there is one.
fn job_name(from: &Surroundings<'_>, system: &str, variable: &str) -> String {
    match from.get(variable) {
        Some(job) => format!("{system} job {job}"),
        None => format!("the {system} job"),
    }
}

fn by(words: &str) -> Reach {
    Reach {
        words: Some(words.split(' ').map(str::to_string).collect()),
        unset: &[],
    }
}

/// A host with a number of slots. `None` if `places` is not a positive number.
fn listed(name: &str, places: &str) -> Option<ListedHost> {
    let places: usize = places.parse().ok().filter(|&places| places > 0)?;
    Some(ListedHost {
        places: Some(places),
        ..ListedHost::named(name)
    })
}

/// The hosts in a text with one line for each slot.
fn one_place_each(text: &str) -> Vec<ListedHost> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let hosts = lines.map(|line| ListedHost {
        places: Some(1),
        ..ListedHost::named(line)
    });
    hosts.collect()
}
