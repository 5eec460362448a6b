//! The traces of the jobs whose processes have written their parts into files of hosts.

use std::collections::BTreeMap;

use crate::cut::{self, Beginning};
use crate::part_file::Parts;
use crate::raw::{Job, Part};
use crate::{Builder, Trace};

/// Merges the parts of all processes into traces, one for each job, in the order in which the jobs
/// ran. `anonymous`: without the names of programs.
///
/// # Errors
/// The part that is missing or unusable, and the reason.
pub fn merged(parts: &Parts, anonymous: bool) -> Result<Vec<Trace>, String> {
    let mut by_rank: BTreeMap<usize, Vec<(Job, &Part)>> = BTreeMap::new();
    for (rank, part) in parts.all() {
        let job = part.job();
        let job = job.ok_or_else(|| format!("the part of rank {rank} has lost its beginning"))?;
        by_rank.entry(rank).or_default().push((job, part));
    }
    if by_rank.is_empty() && parts.lost > 0 {
        return Err(format!(
            "its {} bytes have no whole block of a recorder of this version; remove them and record again",
            parts.lost
        ));
    }
    let mut ranks: Vec<Vec<(Job, &Part)>> = by_rank.into_values().collect();
    for parts in &mut ranks {
        parts.sort_by_key(|(job, _)| job.began);
    }
    let jobs = ranks.first().map_or(0, Vec::len);
    (0..jobs)
        .map(|number| {
            let of_job = ranks.iter().map(|parts| parts.get(number));
            let of_job: Option<Vec<&(Job, &Part)>> = of_job.collect();
            let wrong = "the processes have run jobs of different sizes; record them one by one";
            job(&of_job.ok_or(wrong)?, parts.lost, anonymous)
        })
        .collect()
}

/// The trace of one job.
fn job(parts: &[&(Job, &Part)], lost: u64, anonymous: bool) -> Result<Trace, String> {
    let (first, ranks) = (&parts[0].0, parts.len());
    if first.size != ranks {
        let size = first.size;
        return Err(format!(
            "there are parts of {ranks} ranks, and the job had {size}: the files of some hosts are missing"
        ));
    }
    let mut builder = Builder::new(match anonymous {
        true => "program".into(),
        false => first.program.clone(),
    });
    let mut hosts: Vec<&str> = Vec::new();
    let host_of: Vec<u64> = parts
        .iter()
        .map(|(job, _)| {
            let known = hosts.iter().position(|host| *host == job.host);
            known.unwrap_or_else(|| {
                hosts.push(&job.host);
                hosts.len() - 1
            }) as u64
        })
        .collect();
    let number = match hosts.len() {
        1 => "1 host".into(),
        number => format!("{number} hosts"),
    };
    builder.note(&format!("recorded under {} on {number}", first.library));
    let mut cut = Vec::new();
    for (rank, (_, part)) in parts.iter().enumerate() {
        let added = part.add_beginning_to(&mut builder);
        let added = added.map_err(|why| format!("rank {rank}: {why}"))?;
        if !added.is_whole {
            cut.push(rank);
        }
    }
    let mut trace = builder.finish().with_rounded_times();
    for (rank, host) in trace.ranks.iter_mut().zip(host_of) {
        if let Some(measured) = &mut rank.measured {
            measured.host = host;
        }
    }
    if let Some(rank) = cut.first() {
        trace.notes.push(format!(
            "{} of {ranks} ranks end early, rank {rank} first: they were killed, or their file could not be written",
            cut.len()
        ));
    }
    match cut::beginning(&trace) {
        Ok(Some(Beginning { trace: cut, .. })) => trace = cut,
        Ok(None) => (),
        Err(why) => trace.notes.push(format!("it cannot be replayed: {why}")),
    }
    if lost > 0 {
        trace
            .notes
            .push(format!("{lost} bytes of no whole block were left out"));
    }
    trace.notes.extend(computing(&trace));
    Ok(trace)
}

/// A sentence about the time outside MPI, if the ranks have measured it.
fn computing(trace: &Trace) -> Option<String> {
    let all = trace.ranks.iter().filter_map(|rank| rank.measured.as_ref());
    let sums = all.fold([0u64; 4], |sums, one| {
        let more = [one.outside, one.known, one.slept, one.interrupted];
        [0, 1, 2, 3].map(|at| sums[at].saturating_add(more[at]))
    });
    let [outside, known, slept, interrupted] = sums;
    let share = |part: u64| 100.0 * part as f64 / outside.max(1) as f64;
    (outside > 0).then(|| {
        format!(
            "{:.0} % of the time outside MPI is in long gaps, whose processor time is known; {:.1} % asleep, {:.1} % with the core at another process",
            share(known),
            share(slept),
            share(interrupted)
        )
    })
}
