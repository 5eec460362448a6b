//! The choice of the cores of each rank on a host, if the user has requested a binding.

use super::cpu_list::CpuList;
use super::request::{BindTo, BindingRequest, MapBy};
use super::shares::shares;
use super::topology::{HardwareThread, Level, Topology};

/// The hardware threads of each of the `ranks` ranks of this host, as `request` demands. `None`:
/// the user requests no binding. An error is the text for the user.
pub(crate) fn place(
    topology: &Topology,
    ranks: usize,
    request: &BindingRequest,
) -> Result<Option<Vec<CpuList>>, String> {
    let topology = &limited(topology, request.cpus.as_ref())?;
    let everything = || vec![topology.list(); ranks];
    let wish = match (&request.bind_to, &request.map_by) {
        (Some(BindTo::None), _) => return Ok(request.cpus.is_some().then(everything)),
        (None, None) => return Ok(Some(shares(topology, ranks).unwrap_or_else(everything))),
        (bind_to, map_by) => Wish::new(bind_to.as_ref(), map_by.as_ref()),
    };
    (0..ranks)
        .map(|rank| wish.cpus(topology, rank, ranks))
        .collect::<Result<_, _>>()
        .map(Some)
}

/// The part of the topology that `--cpu-set` permits.
fn limited(topology: &Topology, cpus: Option<&CpuList>) -> Result<Topology, String> {
    let Some(cpus) = cpus else {
        return Ok(topology.clone());
    };
    let beyond = cpus.without(&topology.list());
    if !beyond.is_empty() {
        return Err(format!(
            "--cpu-set {cpus}: this job may not use {beyond} here, only {}",
            topology.list()
        ));
    }
    Ok(topology.within(cpus))
}

/// A complete description of the binding that the user requests.
struct Wish {
    bind: Level,
    count: usize,
    overload: bool,
    map: Level,
    ranks_each: Option<usize>,
}

impl Wish {
    /// If only a mapping is given, ranks are bound to the parts that it names; if only a binding is
    /// given, ranks are mapped by its parts.
    fn new(bind_to: Option<&BindTo>, map_by: Option<&MapBy>) -> Wish {
        let level = map_by.and_then(|map| map.level);
        let cores_each = map_by.and_then(|map| map.cores_each);
        let (bind, count, overload) = match bind_to {
            Some(BindTo::Parts {
                level,
                count,
                overload,
            }) => (*level, *count, *overload),
            _ if cores_each.is_some() => (Level::Core, 1, false),
            _ => (level.unwrap_or(Level::Core), 1, false),
        };
        Wish {
            bind,
            count: cores_each.unwrap_or(count),
            overload,
            map: level.unwrap_or(bind),
            ranks_each: map_by.and_then(|map| map.ranks_each),
        }
    }

    /// The hardware threads of rank `rank` among the `ranks` ranks of this host.
    fn cpus(&self, topology: &Topology, rank: usize, ranks: usize) -> Result<CpuList, String> {
        let parts: Vec<&[HardwareThread]> = topology.parts(self.map).collect();
        let (part, turn) = match self.ranks_each {
            Some(each) => (rank / each, rank % each),
            None => (rank % parts.len(), rank / parts.len()),
        };
        let part = *parts.get(part).ok_or_else(|| {
            let (found, name) = (parts.len(), name(self.map, parts.len()));
            format!(
                "--map-by ppr:{}:PART has no place for {ranks} ranks on {found} {name}: start fewer \
                 ranks, or more on each",
                self.ranks_each.unwrap_or(1)
            )
        })?;
        // The parts to choose from, and the number of ranks that choose before this one.
        let (choices, before): (Vec<&[HardwareThread]>, usize) = if self.bind < self.map {
            let inside = part.chunk_by(|one, other| one.part(self.bind) == other.part(self.bind));
            (inside.collect(), turn)
        } else if self.bind == self.map && self.ranks_each.is_none() {
            (parts, rank)
        } else {
            let around =
                |other: &&[HardwareThread]| other[0].part(self.bind) == part[0].part(self.bind);
            (topology.parts(self.bind).filter(around).collect(), 0)
        };
        let first = before * self.count;
        let is_shared = self.overload || self.bind > Level::Core;
        let needed = if is_shared {
            self.count
        } else {
            first + self.count
        };
        if needed > choices.len() {
            return Err(self.too_many(ranks, choices.len()));
        }
        let chosen = (first..first + self.count).flat_map(|at| choices[at % choices.len()]);
        Ok(chosen.map(|thread| thread.number).collect())
    }

    fn too_many(&self, ranks: usize, choices: usize) -> String {
        let place = match self.bind < self.map {
            true => format!(" in a {}", name(self.map, 1)),
            false => String::new(),
        };
        format!(
            "cannot bind {ranks} {} to {} {} each: there {} {choices}{place} for this job; start fewer \
             ranks, let them share (--bind-to {}:overload-allowed), or bind none (--bind-to none)",
            if ranks == 1 { "rank" } else { "ranks" },
            self.count,
            name(self.bind, self.count),
            if choices == 1 { "is" } else { "are" },
            match self.bind {
                Level::HardwareThread => "hwthread",
                _ => "core",
            },
        )
    }
}

/// The name of `count` parts of the machine: singular or plural.
pub(crate) fn name(level: Level, count: usize) -> &'static str {
    match (level, count == 1) {
        (Level::HardwareThread, true) => "hardware thread",
        (Level::HardwareThread, false) => "hardware threads",
        (Level::Core, true) => "core",
        (Level::Core, false) => "cores",
        (Level::Cache, true) => "shared cache",
        (Level::Cache, false) => "shared caches",
        (Level::Numa, true) => "NUMA node",
        (Level::Numa, false) => "NUMA nodes",
        (Level::Socket, true) => "socket",
        (Level::Socket, false) => "sockets",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::made_up::MadeUpMachine;

    /// Parses a request `BIND MAP CPUS`; `-` stands for an option that is not given.
    fn request(words: &str) -> BindingRequest {
        let words: Vec<&str> = words.split(' ').collect();
        let word = |at: usize| words.get(at).filter(|word| **word != "-");
        BindingRequest {
            bind_to: word(0).map(|word| word.parse().unwrap()),
            map_by: word(1).map(|word| word.parse().unwrap()),
            cpus: word(2).map(|word| word.parse().unwrap()),
            report: false,
        }
    }

    /// The placement on a machine of two sockets with two cores of two threads: 0,4 1,5 and 2,6
    /// 3,7.
    fn placed(words: &str, ranks: usize) -> Result<String, String> {
        let machine = MadeUpMachine::new(2, 2, 2);
        let all = CpuList::parse("0-7").unwrap();
        let topology = Topology::read(machine.root(), &all);
        let lists = place(&topology, ranks, &request(words))?;
        let lists = lists.map(|lists| lists.iter().map(CpuList::to_string).collect::<Vec<_>>());
        Ok(lists.map_or("none".into(), |lists| lists.join(" ")))
    }

    #[test]
    fn ranks_are_bound_as_wished() {
        for (words, ranks, expected) in [
            ("core", 4, "0,4 1,5 2,6 3,7"),
            ("core slot", 2, "0,4 1,5"),
            ("core:2", 2, "0-1,4-5 2-3,6-7"),
            ("core:overload-allowed", 5, "0,4 1,5 2,6 3,7 0,4"),
            ("hwthread", 3, "0 4 1"),
            ("numa", 3, "0-1,4-5 2-3,6-7 0-1,4-5"),
            ("socket", 2, "0-1,4-5 2-3,6-7"),
            ("none", 2, "none"),
            ("core socket", 4, "0,4 2,6 1,5 3,7"),
            ("hwthread core", 5, "0 1 2 3 4"),
            ("socket core", 4, "0-1,4-5 0-1,4-5 2-3,6-7 2-3,6-7"),
            ("- socket", 2, "0-1,4-5 2-3,6-7"),
            ("- core", 2, "0,4 1,5"),
            ("- slot", 2, "0,4 1,5"),
            ("- node", 2, "0,4 1,5"),
            ("- socket:PE=2", 2, "0-1,4-5 2-3,6-7"),
            ("- slot:PE=2", 2, "0-1,4-5 2-3,6-7"),
            ("- ppr:2:socket", 3, "0-1,4-5 0-1,4-5 2-3,6-7"),
            ("core ppr:2:socket", 3, "0,4 1,5 2,6"),
            ("core ppr:1:socket", 2, "0,4 2,6"),
            ("- - 1,3", 2, "1 3"),
            ("- - 0-3", 2, "0-1 2-3"),
            ("- - 1", 2, "1 1"),
            ("none - 1-2", 2, "1-2 1-2"),
            ("core - 2-3,6-7", 2, "2,6 3,7"),
        ] {
            assert_eq!(placed(words, ranks).as_deref(), Ok(expected), "{words}");
        }
    }

    #[test]
    fn impossible_wishes_are_explained() {
        for (words, ranks, expected) in [
            (
                "core",
                5,
                "cannot bind 5 ranks to 1 core each: there are 4 for this job",
            ),
            (
                "hwthread",
                9,
                "9 ranks to 1 hardware thread each: there are 8",
            ),
            ("core:3", 2, "2 ranks to 3 cores each"),
            ("core:5", 1, "cannot bind 1 rank to 5 cores each"),
            ("core socket", 5, "there are 2 in a socket"),
            (
                "- socket:PE=3",
                1,
                "1 rank to 3 cores each: there are 2 in a socket",
            ),
            ("core:3:overload-allowed socket", 1, "3 cores each"),
            ("- ppr:1:socket", 3, "no place for 3 ranks on 2 sockets"),
            ("core - 8", 1, "this job may not use 8 here, only 0-7"),
            ("core - 1", 2, "there is 1 for this job"),
        ] {
            let why = placed(words, ranks).unwrap_err();
            assert!(why.contains(expected), "{words}: {why}");
        }
    }
}
