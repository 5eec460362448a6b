//! The hosts and cores of a Flux instance, found by `flux resource R`. Agents are started by `flux
//! exec`.

use serde::Deserialize;

use super::given::{Allocation, Reach, Surroundings};
use super::hostlist::expand;
use crate::host_table::ListedHost;

/// The parts of the output of `flux resource R` that this module reads.
#[derive(Deserialize)]
struct Resources {
    execution: Execution,
}

#[derive(Deserialize)]
struct Execution {
    #[serde(rename = "R_lite")]
    sets: Vec<ResourceSet>,
    nodelist: Vec<String>,
}

/// The resources of several brokers of Flux, which are equal.
#[derive(Deserialize)]
struct ResourceSet {
    /// The numbers of the brokers that have these resources: `0-3,5`.
    rank: String,
    children: Children,
}

#[derive(Deserialize)]
struct Children {
    core: String,
}

pub(super) fn find(from: &Surroundings<'_>) -> Result<Option<Allocation>, String> {
    // A process that `flux run` has started is a rank: each of its siblings would start a job, too.
    if from.get("FLUX_URI").is_none() {
        return Ok(None);
    }
    let name = match from.get("FLUX_ENCLOSING_ID") {
        Some(job) => format!("Flux job {job}"),
        None => "the Flux instance".to_string(),
    };
    let text = (from.command)(&["flux", "resource", "R"]).map_err(|why| {
        format!(
            "{name}: `flux resource R`: {}",
            crate::error::why_text(&why)
        )
    })?;
    let hosts = hosts(&text).ok_or_else(|| {
        format!("{name}: the output of `flux resource R` is no description of resources")
    })?;
    let words = ["flux", "exec", "--rank={index}"];
    let reach = Reach {
        words: Some(words.map(str::to_string).into()),
        unset: &[],
    };
    Allocation::new(name, hosts, None, reach)
}

/// The hosts in a description of resources, with a slot for each core.
fn hosts(text: &str) -> Option<Vec<ListedHost>> {
    let Resources { execution } = serde_json::from_str(text).ok()?;
    let names = expand(&execution.nodelist.join(",")).ok()?;
    let mut brokers = Vec::new();
    for set in &execution.sets {
        let cores = numbers(&set.children.core)?.len();
        brokers.extend(
            numbers(&set.rank)?
                .into_iter()
                .map(|broker| (broker, cores)),
        );
    }
    brokers.sort_unstable();
    let hosts = names.into_iter().zip(&brokers);
    let hosts = hosts.map(|(name, &(broker, cores))| ListedHost {
        places: Some(cores.max(1)),
        index: broker,
        ..ListedHost::named(&name)
    });
    Some(hosts.collect()).filter(|hosts: &Vec<_>| hosts.len() == brokers.len())
}

/// The numbers in a set such as `0-3,5`, with or without brackets.
fn numbers(set: &str) -> Option<Vec<usize>> {
    let set = set.trim_start_matches('[').trim_end_matches(']');
    let numbers = expand(&format!("[{set}]")).ok()?;
    numbers.iter().map(|number| number.parse().ok()).collect()
}
