//! Sending signals to ranks and to what they started, and finding the latter.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd;
use rustix::process::Pid;

use crate::rank::Rank;

/// To one process. That it may be gone by now is no error.
pub(crate) fn to_process(pid: Pid, signal: Signal) {
    let _ = kill(unistd::Pid::from_raw(pid.as_raw_nonzero().get()), signal);
}

/// To all of its process group.
pub(crate) fn to_group(leader: Pid, signal: Signal) {
    let _ = killpg(unistd::Pid::from_raw(leader.as_raw_nonzero().get()), signal);
}

/// To all ranks of this host, and what they started. A rank that shares the launcher's process group may have had it from
/// the terminal.
pub(crate) fn to_ranks(ranks: &[Rank], signal: Signal, had: bool) {
    // The number of a process on another host means nothing here.
    let here = ranks.iter().filter(|rank| rank.host.is_none());
    for rank in here.filter(|rank| rank.is_running()) {
        match (rank.pid, rank.own_group) {
            (Some(pid), true) => to_group(pid, signal),
            (Some(pid), false) if !had => to_process(pid, signal),
            _ => {}
        }
    }
}

/// To all ranks, and to what they left behind. A stopped process takes it only when it goes on.
pub(crate) fn to_all(ranks: &[Rank], signal: Signal, had: bool) {
    to_ranks(ranks, signal, had);
    to_ranks(ranks, Signal::SIGCONT, false);
    let orphans = children()
        .into_iter()
        .filter(|&pid| ranks.iter().all(|rank| rank.pid != Some(pid)));
    orphans.for_each(|pid| to_process(pid, signal));
}

/// The processes whose parent is this one. As the launcher is the reaper of its descendants, orphans are among them.
fn children() -> Vec<Pid> {
    let this = rustix::process::getpid();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| parent(pid) == Some(this))
        .filter_map(Pid::from_raw)
        .collect()
}

fn parent(pid: i32) -> Option<Pid> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold some; state and parent follow.
    let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
    Pid::from_raw(parent.parse().ok()?)
}
