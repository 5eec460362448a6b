//! Variables for a rank's number in its job and on its host, under our names and those of other MPI
//! libraries. Scripts and wrappers of GPU programs read them.

use knobs::{LOCAL_RANK, LOCAL_SIZE};

use crate::Hosts;

/// A fact about a rank that an environment variable reports: its number or the number of ranks, in
/// the job or on its host.
#[derive(Debug, Clone, Copy)]
enum Place {
    Rank,
    Size,
    LocalRank,
    LocalSize,
}

/// The environment variables by which other MPI libraries report these facts, each with the fact
/// that it reports.
const ALIASES: &[(&str, Place)] = &[
    ("PMI_RANK", Place::Rank),
    ("PMI_SIZE", Place::Size),
    ("OMPI_COMM_WORLD_RANK", Place::Rank),
    ("OMPI_COMM_WORLD_SIZE", Place::Size),
    ("OMPI_COMM_WORLD_LOCAL_RANK", Place::LocalRank),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", Place::LocalSize),
    ("MPI_LOCALRANKID", Place::LocalRank),
    ("MPI_LOCALNRANKS", Place::LocalSize),
];

/// The environment variables that inform scripts of a rank's number and of its job's size: names
/// and values. Ranks of this library read none of them.
pub fn place_variables(rank: usize, hosts: &Hosts) -> Vec<(&'static str, String)> {
    let value = |place: Place| match place {
        Place::Rank => rank,
        Place::Size => hosts.ranks(),
        Place::LocalRank => hosts.index(rank),
        Place::LocalSize => hosts.beside(rank).count(),
    };
    let ours = [
        (LOCAL_RANK, Place::LocalRank),
        (LOCAL_SIZE, Place::LocalSize),
    ];
    let all = ours.iter().chain(ALIASES);
    all.map(|&(name, place)| (name, value(place).to_string()))
        .collect()
}

/// True if our launcher sets this variable, which belongs to another MPI library.
pub(crate) fn is_alias(name: &str) -> bool {
    ALIASES.iter().any(|(alias, _)| *alias == name)
}
