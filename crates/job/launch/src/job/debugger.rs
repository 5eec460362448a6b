//! The processes of the job for a debugger.

use nix::sys::signal::Signal;

use super::RunningJob;
use crate::mpir::{self, RankEntry};
use crate::rank::RankProcess;

impl RunningJob<'_> {
    /// Once all ranks have been started: publishes their processes, and lets ranks that wait for a
    /// debugger continue.
    pub(super) fn show_debugger(&mut self) {
        if self.ranks.iter().any(|rank| rank.pid.is_none()) {
            return;
        }
        let ranks = self.ranks.iter();
        mpir::publish(ranks.map(|rank| self.entry(rank)).collect());
        if mpir::is_being_debugged() {
            self.pass_on(Signal::SIGCONT, false);
        }
    }

    fn entry(&self, rank: &RankProcess) -> RankEntry {
        let pid = rank.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let program = self.options.program(rank.number).1;
        // The kernel knows the binary of a script; another host's is out of sight.
        let here = rank.host.is_none();
        let running = std::fs::read_link(format!("/proc/{pid}/exe"));
        let running = running.ok().filter(|_| here);
        let named = || program.file().and_then(|file| file.canonicalize().ok());
        let file = running.or_else(named);
        RankEntry {
            host: self.host_name(rank.number),
            executable: file
                .unwrap_or(program.program.clone().into())
                .to_string_lossy()
                .into_owned(),
            pid,
        }
    }
}
