//! Signals to the launcher.

use nix::sys::signal::Signal;

use super::RunningJob;
use super::status_query::{QueryPurpose, REPORT};
use crate::processes;
use crate::signals::ReceivedSignal;
use crate::verdict::{Cause, Verdict};

impl RunningJob<'_> {
    /// Handles the signals that have arrived.
    pub(super) fn take_signals(&mut self) {
        while let Some(received) = self.signals.read() {
            match received.signal {
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP => self.interrupt(received),
                Signal::SIGUSR1 | Signal::SIGUSR2 => {
                    self.pass_on(received.signal, received.from_terminal)
                }
                Signal::SIGQUIT => self.query_status(QueryPurpose::Report, REPORT),
                Signal::SIGTSTP => self.stop(received.from_terminal),
                Signal::SIGCONT => self.pass_on(Signal::SIGCONT, received.from_terminal),
                _ => {}
            }
        }
    }

    /// The first interrupt lets ranks report their status and clean up. A second one kills them.
    fn interrupt(&mut self, received: ReceivedSignal) {
        if self.is_ending() {
            self.end(&[Signal::SIGKILL]);
            return;
        }
        self.had = Some(received.signal).filter(|_| received.from_terminal);
        let steps: &'static [Signal] = match received.signal {
            Signal::SIGINT => &[Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL],
            Signal::SIGHUP => &[Signal::SIGHUP, Signal::SIGTERM, Signal::SIGKILL],
            _ => &[Signal::SIGTERM, Signal::SIGKILL],
        };
        self.fail(
            Verdict {
                rank: None,
                cause: Cause::Interrupt(received.signal),
            },
            steps,
        );
    }

    /// Stops the ranks and this process, and continues the ranks when this process continues.
    fn stop(&mut self, from_terminal: bool) {
        self.pass_on(Signal::SIGTSTP, from_terminal);
        self.announce_silence();
        processes::to_process(rustix::process::getpid(), Signal::SIGSTOP);
        self.pass_on(Signal::SIGCONT, false);
    }
}
