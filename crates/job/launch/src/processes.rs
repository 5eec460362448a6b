//! Signals to ranks and to the processes that they started.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::Error;
use crate::rank::RankProcess;

/// Sends a signal to one process. Does nothing if the process is gone.
pub(crate) fn to_process(pid: Pid, signal: Signal) {
    let _ = kill(unistd::Pid::from_raw(pid.as_raw_nonzero().get()), signal);
}

/// Sends a signal to the process group of `leader`.
pub(crate) fn to_group(leader: Pid, signal: Signal) {
    let _ = killpg(unistd::Pid::from_raw(leader.as_raw_nonzero().get()), signal);
}

/// Sends a signal to all ranks of this host and their process groups. `had`: a terminal has sent it
/// already to ranks in the launcher's process group, which are skipped. SIGSTOP follows SIGTSTP,
/// because SIGTSTP alone stops no process of a session without a terminal.
pub(crate) fn to_ranks(ranks: &[RankProcess], signal: Signal, had: bool) {
    // A process ID of another host has no meaning on this one.
    let here = ranks.iter().filter(|rank| rank.host.is_none());
    for rank in here.filter(|rank| rank.is_running()) {
        match (rank.pid, rank.own_group) {
            (Some(pid), true) => {
                to_group(pid, signal);
                if signal == Signal::SIGTSTP {
                    to_group(pid, Signal::SIGSTOP);
                }
            }
            (Some(pid), false) if !had => to_process(pid, signal),
            _ => {}
        }
    }
}

/// Sends a signal to all ranks and to orphans that they have left behind, but not to the process
/// `spared`. SIGCONT follows, because a stopped process handles signals only when it continues.
pub(crate) fn to_all(ranks: &[RankProcess], spared: Option<Pid>, signal: Signal, had: bool) {
    to_ranks(ranks, signal, had);
    to_ranks(ranks, Signal::SIGCONT, false);
    let orphans = children()
        .into_iter()
        .filter(|&pid| ranks.iter().all(|rank| rank.pid != Some(pid)) && spared != Some(pid));
    orphans.for_each(|pid| to_process(pid, signal));
}

/// Makes this process the parent of orphans among its descendants.
pub(crate) fn reap_orphans() -> Result<(), Error> {
    match rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        // QEMU emulates processes of another kind without this call. There, orphans of ranks are
        // init's, and only what ranks leave in their process groups ends with the job.
        Err(Errno::INVAL) => Ok(()),
        done => done.map_err(Error::system("become the reaper of orphans")),
    }
}

/// The children of this process. They include orphans, because the launcher is the subreaper of its
/// descendants.
fn children() -> Vec<Pid> {
    let this = rustix::process::getpid();
    those_with(|parent, _| parent == Some(this))
}

/// The processes in the process groups whose leaders are `leaders`.
pub(crate) fn in_groups(leaders: &[Pid]) -> Vec<Pid> {
    those_with(|_, group| group.is_some_and(|group| leaders.contains(&group)))
}

/// The processes for whose parent and process group `fits` returns true.
fn those_with(fits: impl Fn(Option<Pid>, Option<Pid>) -> bool) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let fitting = pids.filter(|&pid: &i32| {
        parent_and_group(pid).is_some_and(|(parent, group)| fits(parent, group))
    });
    fitting.filter_map(Pid::from_raw).collect()
}

fn parent_and_group(pid: i32) -> Option<(Option<Pid>, Option<Pid>)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name is in parentheses and may contain parentheses; state, parent and group
    // follow.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    let mut next = || Some(Pid::from_raw(words.next()?.parse().ok()?));
    Some((next()?, next()?))
}
