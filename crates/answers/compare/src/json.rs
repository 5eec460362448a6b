//! A comparison as one JSON object.

use fabric::accuracy::Certainty;
use serde_json::{Value, json};

use crate::bounds::Bounds;
use crate::exchange::Exchange;
use crate::machine::Facts;
use crate::report::Comparison;
use crate::row::{Outcome, Row};
use crate::show::remarks;
use crate::{check, measured};

/// The comparison as one JSON object.
pub(crate) fn json(comparison: &Comparison) -> Value {
    let rows = comparison.rows.iter().map(|row| row_json(comparison, row));
    let advice = &comparison.advice;
    let name = |machine: Option<usize>| machine.map(|at| comparison.machines[at].name.clone());
    let sensitivity = advice.sensitivity.as_ref().map(|found| {
        let deciding = found.deciding.iter().map(|one| {
            json!({
                "name": one.assumption.name,
                "value": one.assumption.value,
                "source": one.assumption.source,
                "changes_with": one.values.iter().flatten().collect::<Vec<_>>(),
            })
        });
        json!({
            "assumptions": found.assumptions,
            "estimated": found.estimated.0,
            "estimates_left_open": found.estimated.1,
            "holds_for_all": found.holds_for_all,
            "deciding": deciding.collect::<Vec<_>>(),
        })
    });
    let mut whole = json!({
        "program": comparison.program,
        "trace_of": comparison.trace,
        "fast": comparison.is_estimated,
        "ranks_per_host": comparison.per_host,
        "machines": comparison.machines.iter().map(machine_json).collect::<Vec<_>>(),
        "recordings": comparison.recorded.iter().map(|of| json!({
            "ranks": of.ranks,
            "number": of.recordings,
            "aligned": of.aligned,
            "computing_seconds": of.computing,
            "loop": measured::loop_json(of),
            "imbalance": of.unevenness.map(|uneven| uneven.imbalance),
            "noise": of.unevenness.map(|uneven| uneven.noise),
        })).collect::<Vec<_>>(),
        "checks": check::show::json(comparison),
        "decides": measured::measure_json(comparison.measure),
        "remarks": remarks(comparison),
        "rows": rows.collect::<Vec<_>>(),
        "advice": {
            "ranks": advice.ranks,
            "best": name(advice.best()),
            "equal": advice.equals.iter().map(|at| name(Some(*at))).collect::<Vec<_>>(),
            "other_ranks": advice.counts.iter().map(|(ranks, over)| json!({
                "ranks": ranks,
                "over": over,
            })).collect::<Vec<_>>(),
            "recordings_that_change_it": advice.recordings.0,
            "rival": name(advice.rival),
            "fastest": name(advice.fastest),
            "by": if advice.by_money { "price times time" } else { "time" },
            "lead": advice.lead,
            "certainty": advice.certainty().map(Certainty::name),
            "model": advice.model.map(|word| json!({
                "known": word.case.name(),
                "certainty": word.certainty.name(),
                "checked": word.checked,
            })),
            "sensitivity": sensitivity,
            "exchange": advice.exchange.as_ref().map(exchange_json),
            "sentence": advice.sentence(),
        },
    });
    if !comparison.placement.is_packed() {
        whole["placement"] = json!(comparison.placement.name);
    }
    if let Some((held, all)) = advice.placements {
        whole["advice"]["placements"] = json!({ "number": all, "holds_on": held });
    }
    whole
}

/// The facts of a machine.
fn machine_json(machine: &Facts) -> Value {
    json!({
        "name": machine.name,
        "fabric": machine.word,
        "values": machine.values,
        "assumed_or_inferred": machine.uncertain,
        "compute_scale": machine.compute_scale,
        "host": machine.hardware.host,
        "library": machine.hardware.software,
        "set": machine.changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "stand_ins": machine.stand_ins.iter().map(|one| json!({
            "key": one.key,
            "part": one.part,
            "source": format!("{}: {}", one.standing, one.reason),
        })).collect::<Vec<_>>(),
    })
}

fn exchange_json(of: &Exchange) -> Value {
    let share = |hosts: usize| of.shares().map(|shares| shares[hosts]);
    let hosts = [0, 1].map(|hosts| {
        json!({
            "of": of.names[hosts],
            "host": of.hosts[hosts],
            "best_network": of.values[0][hosts],
            "rival_network": of.values[1][hosts],
            "lead_of_network": of.of_network()[hosts],
            "share_of_lead": share(hosts),
        })
    });
    json!({ "best": of.names[0], "rival": of.names[1], "lead": of.lead(), "hosts": hosts })
}

/// The placement of a row, or the times of its placements; empty for the first hosts.
fn placed_json(comparison: &Comparison, row: &Row) -> Value {
    if comparison.placement.is_packed() {
        return json!({});
    }
    let each = row.placed.iter().map(|run| {
        json!({
            "placement": run.draw.placement.to_string(),
            "variation": run.draw.variation,
            "seconds": run.summary.virtual_s,
            "compared_seconds": run.value,
        })
    });
    json!({ "placement": comparison.placement.name, "placements": each.collect::<Vec<_>>() })
}

fn row_json(comparison: &Comparison, row: &Row) -> Value {
    let mut object = json!({
        "machine": comparison.machines[row.machine].name,
        "ranks": row.ranks,
        "price": row.cost.as_ref().ok().map(|cost| json!({
            "amount": cost.price.amount(),
            "currency": cost.price.currency(),
            "of": if cost.is_hourly { "an hour" } else { "purchase" },
            "cost_of_an_hour": cost.an_hour,
        })),
        "no_price": row.cost.as_ref().err(),
    });
    let more = match &row.outcome {
        Outcome::Refused(why) => json!({ "not_replayed": why }),
        Outcome::Ran(summary) => json!({
            "seconds": row.time(),
            "spread": row.spread(),
            "seconds_with_free_sources": row.free.map(|free| free.whole),
            "speed_up": comparison.speed_up(row),
            "efficiency": comparison.efficiency(row),
            "mpi_share": summary.mpi_share,
            "bound": row.bounds.map(|bounds| bounds.name()),
            "no_bound": row.no_bounds,
            "other_choices": summary.other_choices,
            "shares": row.bounds.map(|bounds| {
                let pairs = Bounds::NAMES.iter().zip(bounds.shares);
                let is_known = |(name, share): &(&&str, f64)| {
                    **name != Bounds::NAMES[Bounds::CONTENTION] || *share > 0.0
                };
                let pairs = pairs.filter(is_known);
                pairs.map(|(name, share)| (name.to_string(), json!(share))).collect::<serde_json::Map<_, _>>()
            }),
            "resources": summary.resources,
            "messages": summary.messages,
            "procedures": summary.procedures,
            "cost": row.money(),
            "runs_an_hour": row.value.map(|seconds| 3600.0 / seconds),
            "bought": row.cost.as_ref().ok().and_then(|cost| cost.bought).map(|bought| json!({
                "hosts": bought.hosts,
                "jobs_at_once": bought.jobs,
                "runs": row.value.map(|seconds| bought.runs(seconds)),
            })),
            "on_front": crate::front::is_on(&comparison.rows, row),
        }),
    };
    let parts = measured::row_json(row);
    let placed = placed_json(comparison, row);
    let fullest = row
        .summary()
        .and_then(|summary| summary.fullest_link.as_ref());
    let fullest = fullest.map_or(json!({}), |link| json!({ "fullest_link": link }));
    for more in [parts, more, placed, fullest] {
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
    }
    object
}
