//! Two threads, each of which is bound to its own core.

use std::fs;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Runs both functions at once, each on its own core, and returns the result of `first`.
pub(crate) fn pair<T: Send>(
    first: impl FnOnce() -> Result<T> + Send,
    second: impl FnOnce() -> Result<()> + Send,
) -> Result<T> {
    let (one, other) = two_cores()?;
    thread::scope(|scope| {
        // The second thread waits until the system has also started the first.
        let (go, may_go) = mpsc::channel();
        let refused = "cannot start a thread";
        let second = thread::Builder::new().spawn_scoped(scope, move || {
            may_go.recv().context(refused)?;
            pin(other).and_then(|()| second())
        });
        let second = second.context(refused)?;
        let first =
            thread::Builder::new().spawn_scoped(scope, move || pin(one).and_then(|()| first()));
        let first = first.context(refused)?;
        // The channel is only a start signal, so an error is ignored.
        let _ = go.send(());
        let value = first.join().unwrap_or_else(|panic| resume_unwind(panic));
        second.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        value
    })
}

/// Binds this thread to a CPU, as the kernel numbers them.
fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("cannot bind to CPU {cpu}"))
}

/// The first CPU that this process may use, and the first one on another core.
fn two_cores() -> Result<(usize, usize)> {
    let allowed = sched_getaffinity(Pid::from_raw(0))
        .context("cannot read the CPUs that this process may use")?;
    let mut cpus = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false));
    let first = cpus.next().context("this process may use no CPU")?;
    match cpus.find(|&cpu| core(cpu).is_none() || core(cpu) != core(first)) {
        Some(second) => Ok((first, second)),
        None => {
            bail!("two cores are needed, but this process may use only the core of CPU {first}")
        }
    }
}

/// The list of CPUs on the same core, as the kernel writes it; `None` if it cannot be read.
fn core(cpu: usize) -> Option<String> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    fs::read_to_string(path).ok()
}
