//! The guard: a process that kills all processes that are left of the job if the launcher is
//! killed.
//!
//! The kernel kills ranks when their launcher dies, but not the processes below them, such as the
//! program of a wrapper. All of them have the job's mark in their environment, by which the guard
//! finds them. A process that has cleared its environment is not found.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, waitpid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

use crate::processes;

/// The longest time for processes to end after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval between searches for processes that are left.
const AGAIN: Duration = Duration::from_millis(5);
/// The number of searches without a result before the guard ends: a process may start during one.
const LAST_SEARCHES: u32 = 2;

/// The mark of a job: the value of a variable in the environment of all its processes. For a job
/// that a rank of another job starts, it begins with the mark of that outer job.
#[derive(Debug, Clone)]
pub(crate) struct JobMark(String);

impl JobMark {
    /// Makes a mark that no other job of this host has.
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let own = format!(
            "{}-{}",
            std::process::id(),
            now.unwrap_or_default().as_nanos()
        );
        match std::env::var(pmi::JOB) {
            Ok(outer) if !outer.is_empty() => JobMark(format!("{outer}.{own}")),
            _ => JobMark(own),
        }
    }

    /// The value of the variable that holds the mark.
    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// True if a process with this environment belongs to the job, or to a job within it.
    fn marks(&self, environment: &[u8]) -> bool {
        let mut variables = environment.split(|&byte| byte == 0);
        variables.any(|variable| {
            let value = variable.strip_prefix(pmi::JOB.as_bytes());
            let value = value.and_then(|rest| rest.strip_prefix(b"="));
            let rest = value.and_then(|value| value.strip_prefix(self.0.as_bytes()));
            rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'.')))
        })
    }
}

/// The running guard of a job. It ends when this value is dropped.
pub(crate) struct Guard {
    pid: Pid,
    /// The pipe whose end shows the guard that the launcher has ended; a byte before it means that
    /// the launcher ended properly.
    alive: OwnedFd,
}

impl Guard {
    /// Starts the guard of this process, which must have only one thread. `speaks`: the guard
    /// reports its work to the user; for an agent the launcher does that. The guard also removes
    /// the `folder` of the job. `None` if the system cannot start another process: the job runs
    /// unguarded.
    pub(crate) fn start(mark: &JobMark, speaks: bool, folder: Option<&Path>) -> Option<Guard> {
        let (ended, alive) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        let launcher = std::process::id();
        let before = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
        let before = before.ok()?;
        // The child sends no signal to its parent, so the guard is not among the children that the
        // launcher waits for.
        // SAFETY: this copies the process, as fork does. It has one thread, so no lock stays locked
        // in the copy.
        let pid = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
        if pid == 0 {
            drop(alive);
            if is_orphaned(&ended) {
                if speaks {
                    say_killed(launcher);
                }
                end_all(mark);
                folder.into_iter().for_each(child_guard::remove);
            }
            // SAFETY: the copy ends without the exit handlers of the launcher.
            unsafe { libc::_exit(0) }
        }
        let _ = before.thread_set_mask();
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Guard { pid, alive })
    }

    /// The process ID of the guard.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // If the guard is gone, this write fails, which does not matter.
        let _ = rustix::io::write(&self.alive, &[1]);
        let pid = nix::unistd::Pid::from_raw(self.pid.as_raw_nonzero().get());
        while waitpid(pid, Some(WaitPidFlag::__WCLONE)) == Err(nix::errno::Errno::EINTR) {}
    }
}

/// Waits for the end of the launcher. True if it was killed.
fn is_orphaned(ended: &OwnedFd) -> bool {
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"fishplate-guard");
    close_others(ended.as_raw_fd());
    let mut byte = [0];
    loop {
        match rustix::io::read(ended, &mut byte) {
            Ok(0) => return true,
            Err(Errno::INTR) => {}
            // The launcher has ended properly.
            _ => return false,
        }
    }
}

fn say_killed(launcher: u32) {
    let line = format!(
        "fishplate: the launcher (pid {launcher}) was killed: all its processes are ended\n"
    );
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
}

/// Closes all descriptors of the process except standard error and `kept`.
fn close_others(kept: i32) {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open {
        if descriptor != kept && descriptor != libc::STDERR_FILENO {
            // SAFETY: the guard owns no descriptor except `kept`.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Kills the processes of the job until none is left.
fn end_all(mark: &JobMark) {
    let until = Instant::now() + PATIENCE;
    let mut without = 0;
    while without < LAST_SEARCHES && Instant::now() < until {
        without = match marked(mark) {
            Ok(found) if found.is_empty() => without + 1,
            Ok(found) => {
                found
                    .into_iter()
                    .for_each(|pid| processes::to_process(pid, Signal::SIGKILL));
                0
            }
            Err(_) => return,
        };
        std::thread::sleep(AGAIN);
    }
}

/// The processes whose environment has the mark. The guard is not one: its environment is the
/// launcher's, which has no mark.
fn marked(mark: &JobMark) -> io::Result<Vec<Pid>> {
    let pids = std::fs::read_dir("/proc")?.flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        // The environment of another user's process cannot be read; it does not belong to this job.
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        Pid::from_raw(pid).filter(|_| mark.marks(&environment))
    });
    Ok(pids.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_whole() {
        let mark = JobMark("12-34".into());
        for (environment, is_marked) in [
            (&b"A=1\0FISHPLATE_JOB=12-34\0B=2\0"[..], true),
            (b"FISHPLATE_JOB=12-34.5-6\0", true),
            (b"FISHPLATE_JOB=12-345\0", false),
            (b"FISHPLATE_JOB=5-6.12-34\0", false),
            (b"XFISHPLATE_JOB=12-34\0", false),
            (b"", false),
        ] {
            assert_eq!(mark.marks(environment), is_marked, "{environment:?}");
        }
    }
}
