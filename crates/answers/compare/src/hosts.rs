//! Makes the replays that divide the advantage of the best machine over its challenger between
//! network and hosts.
//!
//! Two machines differ in their networks (cards, rails, cables, switches) and perhaps in their
//! hosts (slots, memory, processors, the costs of the MPI library). Each network is therefore also
//! replayed in the hosts of the other machine. In equal hosts only the network makes a difference.
//! The difference has two values, one in the hosts of each machine, because a faster network saves
//! a greater share of the time where hosts and library take less of it.

use anyhow::Result;

use crate::advice::Advice;
use crate::exchange::Exchange;
use crate::jobs::{Runner, Task};
use crate::record::Record;
use crate::row::Row;
use crate::work::Measure;
use crate::{Request, start};

/// Replays the networks of the best machine and of its challenger in each other's hosts. `None`:
/// the hosts are the same, or a network cannot run in the other hosts.
pub(crate) fn exchange(
    request: &Request,
    record: &Record,
    runner: &mut Runner,
    rows: &[Row],
    measure: Measure,
    advice: &Advice,
) -> Result<Option<Exchange>> {
    let (Some(best), Some(rival)) = (advice.best(), advice.challenger()) else {
        return Ok(None);
    };
    let machines = [best, rival].map(|at| &request.machines[at]);
    if machines[0].has_hosts_of(machines[1]) {
        return Ok(None);
    }
    let ranks = advice.ranks;
    let pairs = [(best, rival), (rival, best)];
    let runs = pairs.map(|(network, hosts)| Task::in_hosts(network, hosts, ranks));
    let free = runs.clone().map(Task::with_free_start);
    let tasks = [runs, free].concat();
    let phase = "replaying both networks in each other's hosts";
    runner.phase(phase, Some(tasks.len()));
    let mut outcomes = runner.replay(request, record, &tasks)?;
    let free = outcomes.split_off(pairs.len());
    let marks = record.of(ranks);
    let marks = marks.and_then(|of| of.marks(None, &request.wanted));
    let exchanged = pairs.into_iter().zip(outcomes).zip(free);
    let values: Vec<Option<f64>> = exchanged
        .map(|(((network, hosts), run), free)| {
            let start = start(run.as_ref().ok()?, &free.ok()?)?;
            let value = measure.seconds(marks.as_ref(), run.as_ref().ok()?, start);
            let hosts = &request.machines[hosts];
            advice.value(&Row {
                value,
                cost: request.machines[network].cost_in(hosts, ranks, request.per_host),
                ..Row::new(request, network, ranks, run)
            })
        })
        .collect();
    let own = [best, rival].map(|at| {
        let row = rows
            .iter()
            .find(|row| (row.machine, row.ranks) == (at, ranks));
        advice.value(row?)
    });
    let ([Some(of_best), Some(of_rival)], [Some(best_there), Some(rival_there)]) =
        (own, values.as_slice())
    else {
        return Ok(None);
    };
    Ok(Some(Exchange {
        names: machines.map(|machine| machine.name.clone()),
        hosts: machines.map(|machine| machine.sheet.part("host").unwrap_or_default().to_owned()),
        values: [[of_best, *best_there], [*rival_there, of_rival]],
    }))
}
