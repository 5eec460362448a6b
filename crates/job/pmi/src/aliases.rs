//! A rank's place in its job and on its host, under our names and under those of other launchers,
//! which wrappers of GPU programs and scripts read.

use knobs::{LOCAL_RANK, LOCAL_SIZE};

use crate::Hosts;

/// A number of a rank's place.
#[derive(Debug, Clone, Copy)]
enum Place {
    Rank,
    Size,
    LocalRank,
    LocalSize,
}

/// The names of other launchers.
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

/// The variables that tell programs and scripts a rank's place: names and values. Ranks of this
/// library read none of them.
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

/// True if our launcher sets this variable of another launcher.
pub(crate) fn is_alias(name: &str) -> bool {
    ALIASES.iter().any(|(alias, _)| *alias == name)
}
