//! The cores of a modelled host: each computing thread has a core of its own, and progress threads
//! have those that are left.

use fabric::System;

/// The environment variable of OpenMP with the number of threads of a process.
pub const THREADS_VARIABLE: &str = "OMP_NUM_THREADS";

/// The number of cores of a host for each of its `ranks` ranks, one at least. `None`: the machine
/// does not specify its cores.
pub fn cores_of_rank(system: &System, ranks: usize) -> Option<usize> {
    let cores = system.host.cores? as usize;
    Some((cores / ranks.max(1)).max(1))
}

/// Checks that a host has a core for each thread of its ranks. The error states the lack, and what
/// the user can do.
///
/// # Errors
/// The host has fewer cores than threads.
pub fn check_cores(system: &System, ranks: usize, threads: usize) -> Result<(), String> {
    let Some(cores) = system.host.cores else {
        return Ok(());
    };
    let all = ranks.saturating_mul(threads);
    if all <= cores as usize {
        return Ok(());
    }
    let some = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    };
    let ranks = some(ranks, "rank");
    let cores = some(cores as usize, "core");
    let (what, fewer) = match threads {
        1 => (ranks, ""),
        _ => (
            format!("{ranks} with {threads} threads each, {all} threads,"),
            " or fewer threads (OMP_NUM_THREADS)",
        ),
    };
    Err(format!(
        "{what} on a host that has {cores} (host.cores): computing is timed as if each had a core of its own; use fewer \
         ranks on a host (--ppn){fewer}, or a machine whose hosts have more cores"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;
    use fabric::components::Part;

    #[test]
    fn each_thread_needs_a_core() {
        let sheet = Catalogue::builtin().sheet(System::KIND, "qdr").unwrap();
        let mut system = sheet.build::<System>().unwrap();
        system.host.cores = Some(8);
        assert_eq!(check_cores(&system, 8, 1), Ok(()));
        assert_eq!(check_cores(&system, 2, 4), Ok(()));
        let why = check_cores(&system, 9, 1).unwrap_err();
        assert!(
            why.starts_with("9 ranks on a host that has 8 cores"),
            "{why}"
        );
        let why = check_cores(&system, 3, 4).unwrap_err();
        assert!(
            why.contains("12 threads") && why.contains("OMP_NUM_THREADS"),
            "{why}"
        );
        system.host.cores = None;
        assert_eq!(check_cores(&system, 1000, 4), Ok(()));
    }
}
