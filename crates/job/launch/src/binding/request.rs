//! A user's request for the binding of ranks, in the option syntax of Open MPI and MPICH.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::cpu_list::CpuList;
use super::topology::{Level, Topology};

/// A user's request for the binding of ranks. If it is empty, the launcher chooses a binding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingRequest {
    /// The parts of the machine to which each rank is bound.
    pub bind_to: Option<BindTo>,
    /// The parts of the machine over which ranks are distributed.
    pub map_by: Option<MapBy>,
    /// The hardware threads that the ranks of each host may use.
    pub cpus: Option<CpuList>,
    /// True if the launcher prints the binding of each rank.
    pub report: bool,
}

impl BindingRequest {
    /// The number of ranks that this host takes, if the request counts ranks by parts of the
    /// machine (`ppr:2:socket`). `None`: the request has no such count, or the kernel does not
    /// describe the parts.
    pub fn ranks_here(&self) -> Option<usize> {
        self.ranks_on(&Topology::of_this_thread()?)
    }

    fn ranks_on(&self, topology: &Topology) -> Option<usize> {
        let map = self.map_by.as_ref()?;
        let parts = topology.parts(map.level?).count();
        map.ranks_each.map(|each| each.saturating_mul(parts))
    }
}

/// The parts of the machine to which each rank is bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindTo {
    /// No rank is bound to cores.
    None,
    /// Each rank is bound to `count` parts of the kind `level`.
    Parts {
        /// The kind of hardware that a part is: a core, a cache, a NUMA node, a socket.
        level: Level,
        /// The number of parts for each rank, at least one.
        count: usize,
        /// True if several ranks may be bound to one core or hardware thread.
        overload: bool,
    },
}

/// The distribution of the ranks of a host over parts of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapBy {
    /// The kind of the parts. `None`: ranks follow the parts to which they are bound, in order.
    pub level: Option<Level>,
    /// The number of ranks on each part. `None`: ranks are dealt to all parts cyclically.
    pub ranks_each: Option<usize>,
    /// The number of cores that each rank gets.
    pub cores_each: Option<usize>,
}

/// The names of parts of the machine in options, and their kinds.
const LEVELS: [(&str, Level); 8] = [
    ("core", Level::Core),
    ("hwthread", Level::HardwareThread),
    ("hwt", Level::HardwareThread),
    ("l3cache", Level::Cache),
    ("l3", Level::Cache),
    ("numa", Level::Numa),
    ("socket", Level::Socket),
    ("package", Level::Socket),
];

fn level(name: &str) -> Option<Level> {
    let name = name.to_ascii_lowercase();
    let found = LEVELS.iter().find(|(known, _)| *known == name);
    found.map(|(_, level)| *level)
}

fn positive(text: &str) -> Option<usize> {
    text.parse()
        .ok()
        .filter(|&count| (1..=CORES_EACH).contains(&count))
}

/// The most cores of a rank, and the most ranks on a part.
const CORES_EACH: usize = 1 << 16;

impl FromStr for BindTo {
    type Err = String;

    fn from_str(text: &str) -> Result<BindTo, String> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        if name.eq_ignore_ascii_case("none") && words.next().is_none() {
            return Ok(BindTo::None);
        }
        let level = level(name).ok_or("valid are core, hwthread, l3cache, numa, socket, none")?;
        let (mut count, mut overload) = (1, false);
        for word in words {
            match (word.to_ascii_lowercase().as_str(), positive(word)) {
                ("overload-allowed", _) => overload = true,
                ("no-overload", _) => overload = false,
                ("if-supported", _) => {}
                (_, Some(number)) => count = number,
                _ => {
                    return Err(format!(
                        "`:{word}` is neither a number of parts, such as core:2, nor :overload-allowed"
                    ));
                }
            }
        }
        Ok(BindTo::Parts {
            level,
            count,
            overload,
        })
    }
}

impl FromStr for MapBy {
    type Err = String;

    fn from_str(text: &str) -> Result<MapBy, String> {
        const VALID: &str = "valid are slot, core, hwthread, l3cache, numa, socket, node, and ppr:COUNT:PART for \
             COUNT ranks on each PART";
        let mut words = text.split(':');
        let mut name = words.next().unwrap_or_default().to_ascii_lowercase();
        let mut ranks_each = None;
        if name == "ppr" {
            ranks_each = Some(words.next().and_then(positive).ok_or(VALID)?);
            name = words.next().ok_or(VALID)?.to_ascii_lowercase();
        }
        // `node` has no effect on a host: its ranks fill the slots in order in any case.
        let level = match name.as_str() {
            "slot" | "node" if ranks_each.is_none() => None,
            name => Some(level(name).ok_or(VALID)?),
        };
        let mut cores_each = None;
        for word in words {
            let word = word.to_ascii_lowercase();
            match word.strip_prefix("pe=").map(positive) {
                Some(Some(number)) => cores_each = Some(number),
                // Placement always permits more ranks than cores; only a binding can refuse them.
                None if ["oversubscribe", "nooversubscribe"].contains(&word.as_str()) => {}
                _ => {
                    return Err(format!(
                        "`:{word}` is not supported here; valid is :PE=COUNT, the cores of each rank"
                    ));
                }
            }
        }
        Ok(MapBy {
            level,
            ranks_each,
            cores_each,
        })
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuList, String> {
        let list = CpuList::parse(text).filter(|list| !list.is_empty());
        list.ok_or_else(|| "expected numbers of hardware threads, such as 0-3,8".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::made_up::MadeUpMachine;

    #[test]
    fn ranks_that_are_counted_by_parts_fill_them() {
        let machine = MadeUpMachine::new(2, 4, 2);
        let topology = Topology::read(machine.root(), &machine.all());
        for (map, expected) in [
            ("ppr:3:socket", Some(6)),
            ("ppr:1:core", Some(8)),
            ("ppr:1:hwthread", Some(16)),
            ("socket", None),
            ("slot", None),
        ] {
            let request = BindingRequest {
                map_by: Some(map.parse().unwrap()),
                ..Default::default()
            };
            assert_eq!(request.ranks_on(&topology), expected, "{map}");
        }
        assert_eq!(BindingRequest::default().ranks_on(&topology), None);
    }

    fn parts(level: Level, count: usize, overload: bool) -> BindTo {
        BindTo::Parts {
            level,
            count,
            overload,
        }
    }

    #[test]
    fn what_to_bind_to() {
        for (text, expected) in [
            ("none", BindTo::None),
            ("core", parts(Level::Core, 1, false)),
            ("Core", parts(Level::Core, 1, false)),
            ("core:4", parts(Level::Core, 4, false)),
            ("hwthread", parts(Level::HardwareThread, 1, false)),
            ("core:overload-allowed", parts(Level::Core, 1, true)),
            ("numa:if-supported", parts(Level::Numa, 1, false)),
            ("package", parts(Level::Socket, 1, false)),
            ("socket", parts(Level::Socket, 1, false)),
            ("l3cache", parts(Level::Cache, 1, false)),
        ] {
            assert_eq!(text.parse::<BindTo>(), Ok(expected), "{text}");
        }
        for text in ["", "cores", "core:0", "core:x", "none:2", "board"] {
            assert!(text.parse::<BindTo>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_to_map_by() {
        let map = |level, ranks_each, cores_each| MapBy {
            level,
            ranks_each,
            cores_each,
        };
        for (text, expected) in [
            ("slot", map(None, None, None)),
            ("node", map(None, None, None)),
            ("core", map(Some(Level::Core), None, None)),
            ("socket:PE=4", map(Some(Level::Socket), None, Some(4))),
            ("numa:oversubscribe", map(Some(Level::Numa), None, None)),
            ("ppr:2:socket", map(Some(Level::Socket), Some(2), None)),
            ("ppr:2:numa:pe=3", map(Some(Level::Numa), Some(2), Some(3))),
        ] {
            assert_eq!(text.parse::<MapBy>(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "dist",
            "ppr:2",
            "ppr:x:core",
            "ppr:2:node",
            "core:PE=0",
            "core:span",
        ] {
            assert!(text.parse::<MapBy>().is_err(), "{text}");
        }
    }
}
