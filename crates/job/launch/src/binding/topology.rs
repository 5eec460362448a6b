//! The hardware threads of this machine that a process may use, and the cores, caches, NUMA nodes
//! and sockets that they belong to, as the kernel describes them in /sys.
//!
//! Invariant: every hardware thread of the affinity mask is in the topology, even if the kernel
//! describes none; then each is a core of its own.

use std::collections::HashMap;
use std::path::Path;

use rustix::thread::sched_getaffinity;
use serde::{Deserialize, Serialize};

use super::cpu_list::CpuList;

/// A kind of parts of a machine that contain hardware threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// A hardware thread itself.
    HardwareThread,
    /// A core.
    Core,
    /// The cores that share the largest cache.
    Cache,
    /// A NUMA node: the cores near one memory.
    Numa,
    /// A socket.
    Socket,
}

/// A hardware thread, with the number of each part of the machine that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwareThread {
    /// The kernel's number of the hardware thread.
    pub number: usize,
    core: usize,
    cache: usize,
    numa: usize,
    socket: usize,
}

impl HardwareThread {
    /// The number of the part at `level` to which this hardware thread belongs.
    pub fn part(&self, level: Level) -> usize {
        match level {
            Level::HardwareThread => self.number,
            Level::Core => self.core,
            Level::Cache => self.cache,
            Level::Numa => self.numa,
            Level::Socket => self.socket,
        }
    }
}

/// The hardware threads that a process may use, sorted so that near ones are adjacent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    threads: Vec<HardwareThread>,
}

impl Topology {
    /// The hardware threads in the affinity mask of the calling thread. `None`: the kernel does not
    /// return the mask.
    pub fn of_this_thread() -> Option<Topology> {
        let mask = sched_getaffinity(None).ok()?;
        Some(Topology::read(Path::new("/"), &CpuList::from(&mask)))
    }

    /// The hardware threads in `allowed`, as described by the files in `root`/sys.
    pub fn read(root: &Path, allowed: &CpuList) -> Topology {
        let mut reader = Reader {
            root,
            memories: memories(root),
            cores: KnownParts::default(),
            caches: KnownParts::default(),
            sockets: KnownParts::default(),
        };
        let threads = allowed.iter().map(|number| reader.hardware_thread(number));
        let threads = threads.collect();
        Topology { threads }.in_order()
    }

    /// Sorts the hardware threads so that near ones are adjacent.
    fn in_order(mut self) -> Topology {
        self.threads.sort_by_key(|thread| {
            let HardwareThread {
                number,
                core,
                cache,
                numa,
                socket,
            } = *thread;
            (socket, numa, cache, core, number)
        });
        self
    }

    /// The hardware threads, near ones adjacent.
    pub fn threads(&self) -> &[HardwareThread] {
        &self.threads
    }

    /// The parts of the machine at this level, in order, each as its hardware threads.
    pub fn parts(&self, level: Level) -> impl Iterator<Item = &[HardwareThread]> {
        self.threads
            .chunk_by(move |left, right| left.part(level) == right.part(level))
    }

    /// The numbers of all hardware threads of the topology.
    pub fn list(&self) -> CpuList {
        self.threads.iter().map(|thread| thread.number).collect()
    }

    /// The part of this topology that consists of the hardware threads in `list`.
    pub fn within(&self, list: &CpuList) -> Topology {
        let threads = self.threads.iter();
        let threads = threads.filter(|thread| list.contains(thread.number));
        Topology {
            threads: threads.cloned().collect(),
        }
    }
}

#[cfg(test)]
impl Topology {
    /// A simulated machine of sockets with cores with hardware threads (`parts`), restricted to
    /// `allowed`.
    pub(super) fn made_up(parts: [usize; 3], allowed: &CpuList) -> Topology {
        let [sockets, cores, _] = parts;
        let thread = |number| {
            let core = number % (sockets * cores);
            let socket = core / cores;
            let (cache, numa) = (socket * cores, socket);
            HardwareThread {
                number,
                core,
                cache,
                numa,
                socket,
            }
        };
        let threads = allowed.iter().map(thread).collect();
        Topology { threads }.in_order()
    }
}

fn read(root: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(root.join(file)).ok()
}

fn read_list(root: &Path, file: &str) -> Option<CpuList> {
    CpuList::parse(&read(root, file)?).filter(|list| !list.is_empty())
}

/// The NUMA nodes of the machine, with their hardware threads.
fn memories(root: &Path) -> Vec<(usize, CpuList)> {
    const NODES: &str = "sys/devices/system/node";
    let nodes = read_list(root, &format!("{NODES}/online")).unwrap_or_default();
    let list = |node| read_list(root, &format!("{NODES}/node{node}/cpulist"));
    nodes
        .iter()
        .filter_map(|node| Some((node, list(node)?)))
        .collect()
}

/// Reads a machine's description. It reads each part once, because a machine has hundreds of
/// hardware threads.
struct Reader<'a> {
    root: &'a Path,
    memories: Vec<(usize, CpuList)>,
    cores: KnownParts,
    caches: KnownParts,
    sockets: KnownParts,
}

/// Parts of one kind: maps each hardware thread to the first one of its part, whose number names
/// the part. (The kernel's numbers of cores are unique only within a socket.)
#[derive(Default)]
struct KnownParts(HashMap<usize, usize>);

impl KnownParts {
    fn part(&mut self, number: usize, read: impl FnOnce() -> Option<CpuList>) -> Option<usize> {
        if let Some(first) = self.0.get(&number) {
            return Some(*first);
        }
        let list = read()?;
        let first = list.first()?;
        self.0.extend(list.iter().map(|member| (member, first)));
        Some(first)
    }
}

impl Reader<'_> {
    fn hardware_thread(&mut self, number: usize) -> HardwareThread {
        let root = self.root;
        let folder = format!("sys/devices/system/cpu/cpu{number}");
        // The second name is that in older kernels.
        let list = |[name, old]: [&str; 2]| {
            let list = |name| read_list(root, &format!("{folder}/topology/{name}"));
            list(name).or_else(|| list(old))
        };
        let core = ["core_cpus_list", "thread_siblings_list"];
        let core = self.cores.part(number, || list(core)).unwrap_or(number);
        let socket = ["package_cpus_list", "core_siblings_list"];
        let socket = self.sockets.part(number, || list(socket)).unwrap_or(0);
        let cache = self.caches.part(number, || largest_cache(root, &folder));
        let mut memories = self.memories.iter();
        let memory = memories.find(|(_, list)| list.contains(number));
        HardwareThread {
            number,
            core,
            cache: cache.unwrap_or(core),
            numa: memory.map_or(0, |(node, _)| *node),
            socket,
        }
    }
}

/// The hardware threads that share the cache of the highest level.
fn largest_cache(root: &Path, folder: &str) -> Option<CpuList> {
    let caches = (0..).map_while(|index| {
        let file = |name| format!("{folder}/cache/index{index}/{name}");
        let level: u32 = read(root, &file("level"))?.trim().parse().ok()?;
        Some((level, read_list(root, &file("shared_cpu_list"))?))
    });
    caches.max_by_key(|(level, _)| *level).map(|(_, list)| list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::made_up::MadeUpMachine;

    fn parts(topology: &Topology, level: Level) -> Vec<String> {
        let list = |part: &[HardwareThread]| -> CpuList {
            part.iter().map(|thread| thread.number).collect()
        };
        topology
            .parts(level)
            .map(|part| list(part).to_string())
            .collect()
    }

    fn read(machine: &MadeUpMachine, allowed: &str) -> Topology {
        Topology::read(machine.root(), &CpuList::parse(allowed).unwrap())
    }

    #[test]
    fn two_sockets_with_two_threads_a_core() {
        let machine = MadeUpMachine::new(2, 2, 2);
        let topology = read(&machine, "0-7");
        assert_eq!(parts(&topology, Level::Core), ["0,4", "1,5", "2,6", "3,7"]);
        assert_eq!(parts(&topology, Level::Cache), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(parts(&topology, Level::Numa), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(parts(&topology, Level::Socket), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(parts(&topology, Level::HardwareThread).len(), 8);
    }

    #[test]
    fn a_mask_with_holes() {
        let machine = MadeUpMachine::new(2, 2, 2);
        let topology = read(&machine, "1,3,5,6");
        assert_eq!(parts(&topology, Level::Core), ["1,5", "6", "3"]);
        assert_eq!(parts(&topology, Level::Socket), ["1,5", "3,6"]);
        assert_eq!(topology.list().to_string(), "1,3,5-6");
        let within = topology.within(&CpuList::parse("3,5,9").unwrap());
        assert_eq!(within.list().to_string(), "3,5");
    }

    #[test]
    fn an_offline_core_is_missing_in_sys() {
        let machine = MadeUpMachine::new(1, 4, 1);
        machine.take_offline(2);
        let topology = read(&machine, "0-1,3");
        assert_eq!(parts(&topology, Level::Core), ["0", "1", "3"]);
        assert_eq!(parts(&topology, Level::Socket), ["0-1,3"]);
    }

    #[test]
    fn a_machine_without_a_description_has_the_cores_of_the_mask() {
        let nothing = tempfile::tempdir().unwrap();
        let topology = Topology::read(nothing.path(), &CpuList::parse("2-4").unwrap());
        assert_eq!(parts(&topology, Level::Core), ["2", "3", "4"]);
        assert_eq!(parts(&topology, Level::Numa), ["2-4"]);
        assert_eq!(parts(&topology, Level::Socket), ["2-4"]);
    }

    #[test]
    fn damaged_descriptions_are_like_none() {
        let machine = MadeUpMachine::new(1, 2, 1);
        machine.write(
            "sys/devices/system/cpu/cpu1/topology/core_cpus_list",
            "zero",
        );
        machine.write(
            "sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
            "",
        );
        machine.write("sys/devices/system/node/node0/cpulist", "0-x");
        let topology = read(&machine, "0-1");
        assert_eq!(parts(&topology, Level::Core), ["0", "1"]);
        assert_eq!(parts(&topology, Level::Numa), ["0-1"]);
    }

    #[test]
    fn this_machine_has_the_mask_of_this_thread() {
        let topology = Topology::of_this_thread().unwrap();
        let mask = CpuList::from(&sched_getaffinity(None).unwrap());
        assert_eq!(topology.list(), mask);
    }
}
