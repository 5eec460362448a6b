//! Costs of the host that this user's earlier jobs have measured, and that later ones will use.
//!
//! One rank of each host reads the file in the user's cache, for all of them, and replaces it at
//! the end if its ranks have measured anything. Without a cache, or in virtual time, nothing
//! happens; no failure is an error, because costs are measured again.

use std::ffi::OsString;

use cost_cache::{Cache, host_name};

/// The version of the library: costs that another version measured may differ.
const VERSION: &str = concat!("fishplate ", env!("CARGO_PKG_VERSION"));

/// Gives the ranks of this host the costs that earlier jobs have kept. Returns the cache if this
/// rank takes care of it. `variables`: those of the environment.
pub(crate) fn begin(
    rank: &mpi::Rank,
    variables: impl Iterator<Item = (String, String)>,
) -> Option<Cache> {
    let is_first = rank.hosts().index(rank.rank()) == 0;
    if !is_first || rank.size() == 1 || !rank.keeps_costs() {
        return None;
    }
    let variables: Vec<(String, String)> = variables.collect();
    let variable = |wanted: &str| {
        let found = variables.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| OsString::from(value))
    };
    let cache = Cache::of_user(variable, host_name(VERSION))?;
    if let Some(kept) = cache.read() {
        rank.begin_with_costs(&kept);
    }
    Some(cache)
}

/// Keeps the costs that the ranks of this host have measured.
pub(crate) fn keep(rank: &mpi::Rank, cache: &Cache) {
    if let Some(lines) = rank.costs_to_keep() {
        // A full disk, or a home that may not be written, costs the next job its head start.
        let _ = cache.replace(&lines);
    }
}
