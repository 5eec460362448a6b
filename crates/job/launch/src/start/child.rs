//! The changes to a new process before it executes the program of a rank.

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
    /// The rank stays in the launcher's process group, because it reads from the terminal.
    Launchers,
    /// The rank leads a process group of its own.
    Own,
    /// The rank leads a session, and a process group, of its own. The kernel may first divide
    /// processor time among sessions; so beside a session with many tasks, such a rank gets an
    /// equal share. Not for ranks that share a core: a rank yields the core only within its
    /// session.
    Session,
}

/// The changes to a new process before it executes the program.
pub(super) struct ChildSetup {
    pub(super) launcher: Pid,
    pub(super) shared: Arc<[(&'static str, OwnedFd)]>,
    pub(super) control: OwnedFd,
    pub(super) descriptors: Option<Rlimit>,
    pub(super) signals: SigSet,
    pub(super) group: Group,
    /// The hardware threads of this rank, if it is to be bound.
    pub(super) mask: Option<CpuSet>,
    /// True if the rank must not start unbound.
    pub(super) must_bind: bool,
    /// True if the program must stop before its first instruction.
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
            // This can fail: the kernel may have withdrawn these cores from the job meanwhile.
            let bound = sched_setaffinity(None, mask);
            bound.or_else(|why| if self.must_bind { Err(why) } else { Ok(()) })?;
        }
        match self.group {
            // Ctrl-\ on the terminal requests a report of the launcher. The signal also reaches
            // this rank, which must not end by it.
            // SAFETY: ignoring a signal involves no handler.
            Group::Launchers => drop(unsafe { signal(Signal::SIGQUIT, SigHandler::SigIgn) }?),
            Group::Session => drop(rustix::process::setsid()?),
            Group::Own => rustix::process::setpgid(None, None)?,
        }
        // This comes last, so that no blocked signal is delivered earlier.
        self.signals.thread_set_mask()?;
        if self.held {
            ptrace::traceme()?;
        }
        Ok(())
    }
}

/// Leaves a new process stopped before the first instruction of its program, so that a debugger can
/// attach. This thread has started the process and traces it until then.
pub(super) fn hold(pid: Pid) -> io::Result<()> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get());
    let mut status = waitpid(pid, None)?;
    if let WaitStatus::Stopped(..) = status {
        ptrace::detach(pid, Signal::SIGSTOP)?;
        // On a busy machine the process stops only some time later.
        status = waitpid(pid, Some(WaitPidFlag::WUNTRACED))?;
    }
    match status {
        WaitStatus::Stopped(..) => Ok(()),
        // Its death is reported as that of a rank.
        _ => Err(Errno::CHILD.into()),
    }
}
