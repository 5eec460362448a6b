//! The process on this host that started this rank for another launcher, watched so that its death
//! can be detected.
//!
//! Its death is detected by a descriptor of the process, not only by the connection: other ranks
//! may hold the far end of a socket open, and libpmix waits without limit for a server that dies
//! during PMIx_Init.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

/// The names of launchers' processes, as the kernel keeps them (15 bytes at most).
const NAMES: &[&str] = &[
    "slurmstepd",
    "hydra_pmi_proxy",
    "prted",
    "prterun",
    "mpirun",
    "orted",
    "flux-shell",
];

/// The most processes between a rank and its launcher: wrappers such as shells and profilers.
const MOST_WRAPPERS: usize = 64;

/// Finds the nearest ancestor of this process that is a launcher's. The returned descriptor becomes
/// readable when that process ends. `None` if no such ancestor is visible.
pub(super) fn find() -> Option<OwnedFd> {
    let mut next = getppid();
    for _ in 0..MOST_WRAPPERS {
        let pid = next?;
        let (name, parent) = name_and_parent(pid)?;
        if NAMES.contains(&name.as_str()) {
            let file = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // The process ID may have been reused meanwhile.
            return (name_and_parent(pid)? == (name, parent)).then_some(file);
        }
        next = parent;
    }
    None
}

fn name_and_parent(pid: Pid) -> Option<(String, Option<Pid>)> {
    let path = format!("/proc/{}/stat", pid.as_raw_pid());
    parse(&std::fs::read_to_string(path).ok()?)
}

/// Parses the name and the parent from the text of `/proc/PID/stat`. The name may contain spaces
/// and parentheses.
fn parse(stat: &str) -> Option<(String, Option<Pid>)> {
    let (start, rest) = stat.rsplit_once(") ")?;
    let (_, name) = start.split_once('(')?;
    let parent = rest.split(' ').nth(1)?.parse().ok()?;
    Some((name.to_string(), Pid::from_raw(parent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let parent = Pid::from_raw(7);
        let found = parse("12 (a) S (b) R 7 12 12 0");
        assert_eq!(found, Some(("a) S (b".into(), parent)));
        assert_eq!(
            parse("12 (slurmstepd) S 0 1"),
            Some(("slurmstepd".into(), None))
        );
        for bad in ["", "12", "12 (a)", "12 (a) S", "12 (a) S x"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_process_has_a_name_and_a_parent() {
        let (name, parent) = name_and_parent(rustix::process::getpid()).unwrap();
        assert!(!name.is_empty());
        assert_eq!(parent, getppid());
    }
}
