//! Claims of cores: by them, jobs on one host whose users request no binding choose different
//! cores.
//!
//! A claim is an exclusive `flock` on the kernel's own folder of a hardware thread,
//! /sys/devices/system/cpu/cpuN. The lock ends with the last descriptor of the launcher, however
//! that ends. Nothing has to be created, so nothing is left behind, and jobs of all users see it. A
//! user who holds these locks for no job only prevents soft bindings, on which nothing depends.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use super::cpu_list::CpuList;
use super::topology::{Level, Topology};

/// The number of attempts to lock the gate, by which one launcher at a time chooses cores.
const TRIES: u32 = 50;
/// The pause between two attempts to lock the gate.
const PAUSE: Duration = Duration::from_millis(1);

/// Claims of cores. They end when this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// The claimed cores, by their numbers at [`Level::Core`], with their locks.
    cores: Vec<(usize, OwnedFd)>,
}

impl Claims {
    /// Calls `choose` with the cores of `topology` that no other job has claimed, and claims those
    /// that it returns. `None`: it returned none. An error: no lock can be taken on this host.
    pub(crate) fn choose<T>(
        root: &Path,
        topology: &Topology,
        choose: impl FnOnce(&Topology) -> Option<(T, CpuList)>,
    ) -> Result<Option<(T, Claims)>, Errno> {
        // Without the gate, two launchers that lock core after core at once would both find few
        // free.
        let _gate = gate(root)?;
        let mut claims = Claims::default();
        let mut free = CpuList::default();
        for core in topology.parts(Level::Core) {
            let name = core[0].part(Level::Core);
            if let Some(lock) = lock(&folder(root, name))? {
                claims.cores.push((name, lock));
                let numbers = core.iter().map(|thread| thread.number);
                free = free.iter().chain(numbers).collect();
            }
        }
        let Some((chosen, taken)) = choose(&topology.within(&free)) else {
            return Ok(None);
        };
        let taken = topology.within(&taken);
        let is_taken = |core| {
            let mut threads = taken.threads().iter();
            threads.any(|thread| thread.part(Level::Core) == core)
        };
        claims.cores.retain(|(core, _)| is_taken(*core));
        Ok(Some((chosen, claims)))
    }

    /// Claims those of these hardware threads that no other job has claimed.
    pub(crate) fn mark(root: &Path, topology: &Topology, taken: &CpuList) -> Claims {
        let all = |free: &Topology| Some(((), free.list()));
        let marked = Claims::choose(root, &topology.within(taken), all);
        marked
            .ok()
            .flatten()
            .map_or_else(Claims::default, |((), claims)| claims)
    }
}

fn folder(root: &Path, number: usize) -> PathBuf {
    root.join(format!("sys/devices/system/cpu/cpu{number}"))
}

/// Locks the gate: the folder that contains those of all hardware threads.
fn gate(root: &Path) -> Result<OwnedFd, Errno> {
    let folder = root.join("sys/devices/system/cpu");
    for _ in 0..TRIES {
        match lock(&folder)? {
            Some(lock) => return Ok(lock),
            None => thread::sleep(PAUSE),
        }
    }
    Err(Errno::WOULDBLOCK)
}

/// Locks a folder of claims. `None`: another process holds the lock.
fn lock(folder: &Path) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = open(folder, flags, Mode::empty())?;
    match flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(descriptor)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::made_up::MadeUpMachine;
    use crate::binding::shares::shares;

    fn topology(machine: &MadeUpMachine, allowed: &str) -> Topology {
        Topology::read(machine.root(), &CpuList::parse(allowed).unwrap())
    }

    /// The hardware threads of a job with `ranks` ranks, with its claims. `None`: it gets none.
    fn job(machine: &MadeUpMachine, allowed: &str, ranks: usize) -> Option<(String, Claims)> {
        let topology = topology(machine, allowed);
        Claims::choose(machine.root(), &topology, |free| {
            let shares = shares(free, ranks)?;
            let taken: CpuList = shares.iter().flat_map(CpuList::iter).collect();
            Some((taken.to_string(), taken))
        })
        .unwrap()
    }

    #[test]
    fn jobs_do_not_overlap_while_cores_are_free() {
        let machine = MadeUpMachine::new(1, 8, 1);
        let (first, first_claims) = job(&machine, "0-7", 5).unwrap();
        let (second, _second_claims) = job(&machine, "0-7", 3).unwrap();
        assert_eq!((first.as_str(), second.as_str()), ("0-4", "5-7"));
        assert!(job(&machine, "0-7", 1).is_none());
        drop(first_claims);
        let (third, _claims) = job(&machine, "0-7", 2).unwrap();
        assert_eq!(third, "0-3");
    }

    #[test]
    fn a_core_is_claimed_with_all_its_threads() {
        let machine = MadeUpMachine::new(1, 2, 2);
        let (first, _claims) = job(&machine, "0,2", 1).unwrap();
        assert_eq!(first, "0,2");
        let (second, _claims) = job(&machine, "1,2,3", 1).unwrap();
        assert_eq!(second, "1,3");
    }

    #[test]
    fn a_hard_binding_marks_what_is_free() {
        let machine = MadeUpMachine::new(1, 4, 1);
        let (_, _claims) = job(&machine, "0-1", 1).unwrap();
        let topology = topology(&machine, "0-3");
        let list = CpuList::parse("1-2").unwrap();
        let marked = Claims::mark(machine.root(), &topology, &list);
        let cores: Vec<usize> = marked.cores.iter().map(|(first, _)| *first).collect();
        assert_eq!(cores, [2]);
        assert_eq!(job(&machine, "0-3", 1).unwrap().0, "3");
    }

    #[test]
    fn without_folders_nothing_is_claimed() {
        let nothing = tempfile::tempdir().unwrap();
        let topology = Topology::read(nothing.path(), &CpuList::parse("0-1").unwrap());
        let chosen = Claims::choose(nothing.path(), &topology, |free| Some(((), free.list())));
        assert_eq!(chosen.map(drop), Err(Errno::NOENT));
    }

    #[test]
    fn a_launcher_that_chooses_makes_others_wait() {
        let machine = MadeUpMachine::new(1, 1, 1);
        let gate = gate(machine.root()).unwrap();
        let root = machine.root();
        thread::scope(|scope| {
            let other = scope.spawn(|| super::gate(root).is_ok());
            drop(gate);
            assert!(other.join().unwrap());
        });
    }
}
