//! A new process, before it becomes the program of a rank.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::sys::ptrace;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Resource, Rlimit, getppid, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The process group of a rank.
pub(super) enum Group {
    /// The launcher's, because the rank reads the terminal.
    Launchers,
    /// Its own.
    Own,
    /// Its own, in a session of its own. The kernel may divide processor time among sessions first:
    /// beside one with many tasks, such a rank gets a share. Ranks that share a core must not: a
    /// rank that yields it does so within its session only.
    Session,
}

/// The changes to a new process before it becomes the program.
pub(super) struct ChildSetup {
    pub(super) launcher: Pid,
    pub(super) shared: Arc<[(&'static str, OwnedFd)]>,
    pub(super) control: OwnedFd,
    pub(super) descriptors: Option<Rlimit>,
    pub(super) signals: SigSet,
    pub(super) group: Group,
    /// The cores of this rank, if it is to be bound.
    pub(super) mask: Option<CpuSet>,
    /// Whether the rank must not start without them.
    pub(super) must_bind: bool,
    /// Whether the program is to stop before its first instruction.
    pub(super) held: bool,
}

impl ChildSetup {
    pub(super) fn apply(&self) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The launcher may have died before the call above.
        if getppid() != Some(self.launcher) {
            return Err(Errno::SRCH.into());
        }
        let shared = self.shared.iter().map(|(_, file)| file);
        for descriptor in shared.chain([&self.control]) {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        if let Some(limit) = self.descriptors {
            setrlimit(Resource::Nofile, limit)?;
        }
        if let Some(mask) = &self.mask {
            // The kernel may have taken these cores from the job meanwhile.
            let bound = sched_setaffinity(None, mask);
            bound.or_else(|why| if self.must_bind { Err(why) } else { Ok(()) })?;
        }
        match self.group {
            // Ctrl-\ on the terminal asks the launcher for a report. It must not end this rank,
            // which gets the signal too.
            // SAFETY: ignoring a signal involves no handler.
            Group::Launchers => drop(unsafe { signal(Signal::SIGQUIT, SigHandler::SigIgn) }?),
            Group::Session => drop(rustix::process::setsid()?),
            Group::Own => rustix::process::setpgid(None, None)?,
        }
        // Last, so that no blocked signal is delivered earlier.
        self.signals.thread_set_mask()?;
        if self.held {
            ptrace::traceme()?;
        }
        Ok(())
    }
}

/// Leaves a new process stopped before the first instruction of its program, for a debugger to
/// attach. This thread has started it, and traces it until then.
pub(super) fn hold(pid: Pid) -> io::Result<()> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get());
    let mut status = waitpid(pid, None)?;
    if let WaitStatus::Stopped(..) = status {
        ptrace::detach(pid, Signal::SIGSTOP)?;
        // On a busy machine it stops some time later.
        status = waitpid(pid, Some(WaitPidFlag::WUNTRACED))?;
    }
    match status {
        WaitStatus::Stopped(..) => Ok(()),
        // Its end is reported as that of a rank.
        _ => Err(Errno::CHILD.into()),
    }
}
