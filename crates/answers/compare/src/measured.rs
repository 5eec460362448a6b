//! Sentences for the user about the measured parts of a program's runs: the loop that was found,
//! the time that is compared, and noise.

use serde_json::{Value, json};

use crate::main_loop::By;
use crate::report::{Comparison, LoopFacts, Recorded};
use crate::row::Row;
use crate::work::Measure;

/// Sentences about the measurement: the loop that was found, the time that is compared, and noise.
pub(crate) fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut said: Vec<String> = results::table::distinct(comparison.recorded.iter().map(found));
    said.push(decides(comparison));
    said.extend(comparison.recorded.iter().filter_map(noise));
    said
}

/// The sentence about the loop of the program with one number of ranks.
fn found(of: &Recorded) -> String {
    let ranks = of.ranks;
    match &of.found {
        Err(why) => format!("No loop with {ranks} ranks: {why}."),
        Ok(facts) => format!(
            "{} with {ranks} ranks: {} iterations, {}{}.",
            name(&facts.by),
            facts.iterations,
            calls(facts),
            counted(facts)
        ),
    }
}

fn name(by: &By) -> String {
    match by {
        By::Calls { any_size: false } => "Loop found".into(),
        By::Calls { any_size: true } => "Loop found, of calls whose sizes differ,".into(),
        By::Control(None) => "Loop marked by MPI_Pcontrol".into(),
        By::Control(Some(region)) => format!("Loop marked by MPI_Pcontrol ({region})"),
        By::After { call, number: 1 } => format!("Loop after {call}"),
        By::After { call, number } => format!("Loop after {call} number {number}"),
    }
}

fn calls(facts: &LoopFacts) -> String {
    match facts.calls {
        (1, 1) => "1 call each".into(),
        (least, most) if least == most => format!("{least} calls each"),
        (least, most) => format!("{least} to {most} calls each"),
    }
}

fn counted(facts: &LoopFacts) -> String {
    match facts.counted {
        0 => String::new(),
        1 => ", the first left out".into(),
        many => format!(", the first {many} left out"),
    }
}

/// The sentence that names the compared time.
fn decides(comparison: &Comparison) -> String {
    match comparison.measure {
        Measure::Loop => {
            "Speed-up, bound and advice are about the loop, not about the start.".into()
        }
        Measure::Iterations(number) => {
            format!("Speed-up and advice are about a run of {number} iterations.")
        }
        Measure::WholeLoop => format!(
            "{}Speed-up, bound and advice are about the loop as it ran.",
            no_prediction(comparison)
        ),
        Measure::Rest => {
            let wanted = comparison.iterations.map(|number| {
                format!("A run of {number} iterations has no prediction without a loop. ")
            });
            let about = "Speed-up, bound and advice are about the run without its start.";
            wanted.unwrap_or_default() + about
        }
    }
}

/// The sentence why the time of further iterations is unknown; empty if it is known.
fn no_prediction(comparison: &Comparison) -> String {
    let why = comparison.rows.iter().find_map(|row| match row.prediction {
        Some(Err(why)) => {
            let name = &comparison.machines[row.machine].name;
            Some(format!(
                "No prediction with {} ranks: on {name} {why}. ",
                row.ranks
            ))
        }
        _ => None,
    });
    why.unwrap_or_default()
}

/// The sentence about computing that differs by chance, if there is much of it.
fn noise(of: &Recorded) -> Option<String> {
    let uneven = of.unevenness.filter(|uneven| uneven.is_noise())?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let why = match of.ranks > cores {
        true => format!("{} ranks took turns on {cores} cores", of.ranks),
        false => "the computer was not quiet".into(),
    };
    Some(format!(
        "Ranks with equal calls computed for times that differ by chance, because {why}: {:.0} % of their computing is noise, \
         and {:.0} % is imbalance of the program. With --even they compute for their mean.",
        uneven.noise * 100.0,
        uneven.imbalance * 100.0
    ))
}

/// The loop with one number of ranks as JSON.
pub(crate) fn loop_json(of: &Recorded) -> Value {
    match &of.found {
        Err(why) => json!({ "none": why.to_string() }),
        Ok(facts) => json!({
            "found": name(&facts.by),
            "iterations": facts.iterations,
            "first_counted": facts.counted,
            "kinds": facts.kinds,
            "calls": [facts.calls.0, facts.calls.1],
        }),
    }
}

/// The compared part of a run as JSON.
pub(crate) fn measure_json(measure: Measure) -> Value {
    match measure {
        Measure::Loop => json!("loop"),
        Measure::WholeLoop => json!("whole loop"),
        Measure::Rest => json!("without start"),
        Measure::Iterations(number) => json!({ "iterations": number }),
    }
}

/// The parts of a row's time as JSON.
pub(crate) fn row_json(row: &Row) -> Value {
    let known = row.prediction.and_then(Result::ok);
    json!({
        "start_seconds": row.start,
        "iteration_seconds": row.iteration,
        "rest_seconds": known.map(|known| known.rest),
        "no_prediction": row.prediction.and_then(Result::err).map(|why| why.to_string()),
        "deciding_seconds": row.value,
    })
}
