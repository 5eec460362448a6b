//! The signals that the launcher receives, as a descriptor to poll.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::Error;

/// The signals that the launcher handles: it forwards them, reacts to them, or needs them to detect
/// the deaths of ranks.
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

/// The `si_code` of signals from the kernel: a terminal has sent it to its foreground process
/// group.
const FROM_KERNEL: i32 = 0x80;

/// The signals that the launcher handles. They are blocked while this value lives, so that they can
/// be read from a descriptor.
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

/// A signal that has been read from the descriptor.
pub(crate) struct ReceivedSignal {
    pub signal: Signal,
    /// True if a terminal sent the signal; then the ranks in the launcher's process group received
    /// it too.
    pub from_terminal: bool,
}

impl Signals {
    /// Blocks the signals that the launcher handles.
    ///
    /// # Errors
    /// The system refuses to block or read them.
    pub fn take() -> Result<Self, Error> {
        let refused = |errno: nix::errno::Errno| Error::System {
            what: "take signals",
            why: errno.into(),
        };
        let ignored = ignored();
        if ignores(ignored, Signal::SIGCHLD) {
            // The disposition is inherited from a parent that ignores the ends of its children. The
            // launcher needs those of its own.
            // SAFETY: the default action involves no handler of ours.
            unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }.map_err(refused)?;
        }
        // Ignored signals stay ignored, as with `nohup` and for background commands of a script.
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

    /// The signal mask before [`Signals::take`], with which ranks start.
    pub(crate) fn before(&self) -> SigSet {
        self.before
    }

    /// The next signal that has been received, if there is one.
    pub(crate) fn read(&mut self) -> Option<ReceivedSignal> {
        loop {
            let info = self.descriptor.read_signal().ok()??;
            if let Ok(signal) = Signal::try_from(info.ssi_signo as i32) {
                return Some(ReceivedSignal {
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

/// Makes a write beyond the limit on file sizes return an error, which the command reports, instead
/// of a signal that ends it without a message. Programs started by it have the default action.
pub fn outlive_file_limit() {
    extern "C" fn nothing(_: i32) {}
    if !ignores(ignored(), Signal::SIGXFSZ) {
        // SAFETY: the handler does nothing. The signal is not ignored, as programs would inherit
        // that. If the system refuses the handler, the default action stays.
        let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::Handler(nothing)) };
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
