//! Simulated machines for tests: a folder with the files of /sys and /proc that describe one.

use std::path::Path;

use tempfile::TempDir;

use super::cpu_list::CpuList;

/// A simulated machine: sockets of cores of hardware threads, with one NUMA node and one cache for
/// each socket. As on most machines, the first threads of all cores have the first numbers.
pub(crate) struct MadeUpMachine {
    folder: TempDir,
    all: CpuList,
}

impl MadeUpMachine {
    pub(crate) fn new(sockets: usize, cores: usize, threads: usize) -> MadeUpMachine {
        let machine = MadeUpMachine {
            folder: tempfile::tempdir().unwrap(),
            all: (0..sockets * cores * threads).collect(),
        };
        let (all, cpu) = (sockets * cores, "sys/devices/system/cpu/cpu");
        for number in 0..all * threads {
            let core = number % all;
            let siblings: CpuList = (0..threads).map(|thread| thread * all + core).collect();
            let package = package(core / cores, cores, threads, all);
            let write =
                |file: &str, text: &str| machine.write(&format!("{cpu}{number}/{file}"), text);
            write("topology/core_cpus_list", &siblings.to_string());
            write("topology/package_cpus_list", &package.to_string());
            write("cache/index0/level", "1");
            write("cache/index0/shared_cpu_list", &siblings.to_string());
            write("cache/index1/level", "3");
            write("cache/index1/shared_cpu_list", &package.to_string());
        }
        let nodes: CpuList = (0..sockets).collect();
        machine.write("sys/devices/system/node/online", &nodes.to_string());
        for socket in 0..sockets {
            let list = package(socket, cores, threads, all).to_string();
            machine.write(
                &format!("sys/devices/system/node/node{socket}/cpulist"),
                &list,
            );
        }
        machine
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// All hardware threads.
    pub(crate) fn all(&self) -> CpuList {
        self.all.clone()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    pub(crate) fn take_offline(&self, number: usize) {
        let folder = format!("sys/devices/system/cpu/cpu{number}/topology");
        std::fs::remove_dir_all(self.root().join(folder)).unwrap();
    }
}

fn package(socket: usize, cores: usize, threads: usize, all: usize) -> CpuList {
    let cores = socket * cores..(socket + 1) * cores;
    cores
        .flat_map(|core| (0..threads).map(move |thread| thread * all + core))
        .collect()
}
