//! Sending signals to ranks and to what they started, and finding the latter.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd;
use rustix::process::Pid;

/// To one process. That it may be gone by now is no error.
pub(crate) fn to_process(pid: Pid, signal: Signal) {
    let _ = kill(unistd::Pid::from_raw(pid.as_raw_nonzero().get()), signal);
}

/// To all of its process group.
pub(crate) fn to_group(leader: Pid, signal: Signal) {
    let _ = killpg(unistd::Pid::from_raw(leader.as_raw_nonzero().get()), signal);
}

/// The processes whose parent is this one. As the launcher is the reaper of its descendants, orphans are among them.
pub(crate) fn children() -> Vec<Pid> {
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
