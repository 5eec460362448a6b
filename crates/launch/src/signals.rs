//! The signals that the launcher takes, as something to poll.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::Error;

/// Passed on to ranks, answered, or needed to see ranks die.
const TAKEN: [Signal; 9] = [
    Signal::SIGCHLD,
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// The code of a signal that a terminal sent, to all of its foreground process group.
const FROM_KERNEL: i32 = 0x80;

/// While this lives, the signals wait to be read.
pub(crate) struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

pub(crate) struct Received {
    pub signal: Signal,
    /// Then the ranks that share the launcher's process group have got it too.
    pub from_terminal: bool,
}

impl Signals {
    pub fn take() -> Result<Self, Error> {
        let refused = |errno: nix::errno::Errno| Error::System {
            what: "take signals",
            why: errno.into(),
        };
        let ignored = ignored();
        if ignores(ignored, Signal::SIGCHLD) {
            // Inherited from a parent that wants no news of its own children; without news of ours nothing works.
            // SAFETY: the default action involves no handler of ours.
            unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }.map_err(refused)?;
        }
        // What is ignored stays so: `nohup`, and jobs that a script started in the background.
        let taken = TAKEN
            .into_iter()
            .filter(|&taken| taken == Signal::SIGCHLD || !ignores(ignored, taken));
        let set: SigSet = taken.collect();
        let before = SigSet::thread_get_mask().map_err(refused)?;
        set.thread_block().map_err(refused)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor = SignalFd::with_flags(&set, flags).map_err(refused)?;
        Ok(Signals { descriptor, before })
    }

    /// The signals that were held back before: what ranks are to begin with.
    pub fn before(&self) -> SigSet {
        self.before
    }

    pub fn read(&mut self) -> Option<Received> {
        loop {
            let info = self.descriptor.read_signal().ok()??;
            if let Ok(signal) = Signal::try_from(info.ssi_signo as i32) {
                return Some(Received {
                    signal,
                    from_terminal: info.ssi_code == FROM_KERNEL,
                });
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while self.read().is_some() {}
        let _ = self.before.thread_set_mask();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The signals that this process ignores, as a mask.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn ignores(mask: u64, signal: Signal) -> bool {
    mask >> (signal as i32 - 1) & 1 == 1
}
