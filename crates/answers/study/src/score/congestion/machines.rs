//! The machines of the points: their systems in networks.toml, their placement, and what a null
//! model knows of them.

use anyhow::{Result, anyhow};
use fabric::System;
use fabric::catalogue::Catalogue;
use fabric::collectives::ChoiceTable;

use super::points::Point;
use model::placement::PlacementRule;

/// The machines of the points, as TOML.
const SYSTEMS: &str = include_str!("../../../data/networks.toml");
/// The variable that names the algorithms of collectives.
const COLLECTIVES: &str = "FISHPLATE_COLLECTIVES";

/// A machine of published points.
pub(super) struct Machine {
    /// The name in the file of points.
    pub(super) published: &'static str,
    /// The name in tables and options, and of its system in networks.toml.
    pub(super) name: &'static str,
    /// Systems of other libraries: a part of the library's name, and the system.
    libraries: &'static [(&'static str, &'static str)],
    /// The placement of all its jobs.
    pub(super) placement: PlacementRule,
    /// The rate of a link in GB/s, and the hosts of a leaf switch: the inputs of the null models.
    pub(super) line: f64,
    pub(super) leaf: u32,
}

/// The machines, in the order of tables.
pub(super) const ALL: [Machine; 7] = [
    Machine {
        published: "Cirrus",
        name: "cirrus",
        libraries: &[("MPT", "cirrus-mpt")],
        placement: PlacementRule::Random,
        line: 6.81,
        leaf: 9,
    },
    Machine {
        published: "ARCHER",
        name: "archer",
        libraries: &[],
        placement: PlacementRule::Random,
        line: 10.0,
        leaf: 4,
    },
    Machine {
        published: "Athena",
        name: "athena",
        libraries: &[],
        placement: PlacementRule::Random,
        line: 12.5,
        leaf: 27,
    },
    Machine {
        published: "Fulhame",
        name: "fulhame",
        libraries: &[("HMPT", "fulhame-mpt"), ("MVAPICH2", "fulhame-mvapich")],
        placement: PlacementRule::Random,
        line: 12.5,
        leaf: 18,
    },
    Machine {
        published: "Thomas",
        name: "thomas",
        libraries: &[],
        placement: PlacementRule::Random,
        line: 12.5,
        leaf: 36,
    },
    Machine {
        published: "Fugaku",
        name: "fugaku",
        libraries: &[],
        placement: PlacementRule::Packed,
        line: 6.8,
        leaf: 1,
    },
    Machine {
        published: "Grid5000 taurus",
        name: "taurus",
        libraries: &[],
        placement: PlacementRule::Packed,
        line: 1.25,
        leaf: 36,
    },
];

impl Machine {
    /// The predictions of the null models for a job, in GB/s a node: the rate of a link, and half
    /// of it for a job that is larger than a leaf switch.
    pub(super) fn null(&self, nodes: u32) -> [f64; 2] {
        let is_beyond = nodes > self.leaf;
        [self.line, self.line / if is_beyond { 2.0 } else { 1.0 }]
    }

    /// The system that stands for the machine with this library.
    fn system(&self, library: &str) -> &'static str {
        let mut others = self.libraries.iter();
        let other = others.find(|(part, _)| library.contains(part));
        other.map_or(self.name, |(_, system)| system)
    }
}

/// The systems of all machines.
pub(in crate::score) struct Systems(Catalogue);

impl Systems {
    /// Reads the systems of this project.
    pub(in crate::score) fn read() -> Result<Systems> {
        let mut catalogue = Catalogue::builtin();
        let added = catalogue.add("networks.toml", SYSTEMS);
        added.map_err(|why| anyhow!("{why}"))?;
        Ok(Systems(catalogue))
    }

    /// The system with this name.
    pub(in crate::score) fn named(&self, name: &str) -> Result<System> {
        let system = self.0.system(name);
        system.map_err(|why| anyhow!("networks.toml: {why}"))
    }

    /// The system of a point, with its library.
    pub(super) fn of(&self, point: &Point) -> Result<System> {
        let machine = point.machine()?;
        // A job of a torus has a grid of its own, which no other job crosses.
        let own = format!("{}-{}", machine.name, point.nodes);
        let name = match machine.placement {
            PlacementRule::Packed if self.0.system(&own).is_ok() => &own,
            _ => machine.system(&point.library),
        };
        self.named(name)
    }
}

/// The settings by which ranks follow a system's library, and the algorithm that the point names.
pub(super) fn settings(system: &System, point: &Point, ranks: usize) -> Vec<(String, String)> {
    let software = &system.software;
    let mut set = model::library::settings(software);
    let named = ["linear", "pairwise"];
    let mut named = named.iter().filter(|name| point.library.ends_with(**name));
    let choices = match (named.next(), software.library) {
        (Some(name), _) => format!("alltoall={name}"),
        (None, Some(release)) => ChoiceTable::of(release).setting(ranks),
        (None, None) => String::new(),
    };
    if !choices.is_empty() {
        set.push((COLLECTIVES, choices));
    }
    let owned = set.into_iter();
    owned
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// True if these settings choose the linear algorithm for an alltoall of blocks of `bytes` bytes
/// among `ranks` ranks: of the choices that fit, the one of the most ranks counts, and of those the
/// one of the most bytes.
pub(super) fn is_linear(settings: &[(String, String)], ranks: usize, bytes: u64) -> bool {
    let mut all = settings.iter();
    let Some((_, choices)) = all.find(|(name, _)| name == COLLECTIVES) else {
        return false;
    };
    let fitting = choices.split(',').filter_map(|choice| {
        let (of, algorithm) = choice.split_once('=')?;
        let (of, least) = of.split_once('/').unwrap_or((of, "0"));
        let (of, size) = of.split_once('@').unwrap_or((of, "0"));
        let least: usize = least.parse().ok()?;
        let size = results::sizes::parse_bytes(size).ok()? as u64;
        (of == "alltoall" && least <= ranks && size <= bytes).then_some((least, size, algorithm))
    });
    let chosen = fitting.max_by_key(|(least, size, _)| (*least, *size));
    chosen.is_some_and(|(.., algorithm)| algorithm == "linear")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::congestion::points;

    #[test]
    fn every_point_has_a_system_with_room_for_it() {
        let systems = Systems::read().unwrap();
        for point in points::all().unwrap() {
            let system = systems.of(&point).unwrap();
            assert!(system.software.is_library(), "{point:?}");
            assert!(point.nodes <= system.nodes, "{point:?}");
            let cores = system.host.cores;
            assert!(
                cores.is_some_and(|cores| point.ranks_per_node <= cores),
                "{point:?}"
            );
        }
    }

    #[test]
    fn assumed_values_have_their_reasons_beside_them() {
        for line in SYSTEMS.lines().filter(|line| line.contains("\"assumed: ")) {
            assert!(line.contains("# assumed: "), "{line}");
        }
    }

    #[test]
    fn mpich_exchanges_pairwise_above_32_kib_and_open_mpi_above_3000_bytes() {
        let of = |system: &str, ranks, bytes| {
            let system = Systems::read().unwrap().0.system(system).unwrap();
            let choices = ChoiceTable::of(system.software.library.unwrap()).setting(ranks);
            is_linear(&[(COLLECTIVES.to_owned(), choices)], ranks, bytes)
        };
        assert!(of("cirrus", 1152, 16 << 10));
        assert!(!of("cirrus", 1152, 64 << 10));
        assert!(!of("fulhame", 1152, 16 << 10));
        assert!(!is_linear(&[], 8, 8));
    }
}
