//! A program's calls as such: their begin and end on a modelled machine, and the last one.

use channel::Transport;

use crate::rank::Rank;
use crate::request::Waiting;
use crate::{ProgramCall, Result};

impl Rank {
    /// Begins a call of the program, after its computing.
    pub fn enter(&self, call: ProgramCall) {
        let mut state = self.lock();
        if call.computed > 0 && state.objects.windows.has_modelled_thread() {
            state.compute_beside_thread(call.computed);
        }
        state.engine.router.machine().enter(call);
    }

    /// A step of the program begins, between two of its calls.
    pub fn begin_step(&self) {
        self.lock().engine.router.machine().begin_step();
    }

    /// Ends a call of the program. `is_sure` is false for a poll, whatever it has found, and
    /// for a reading of the clock.
    pub fn leave(&self, is_sure: bool) {
        self.lock().engine.router.machine().leave(is_sure);
    }

    /// Sends all queued packets, and closes the connections to all peers, which must close theirs
    /// too. This is the last step before a rank leaves its job.
    ///
    /// # Errors
    /// Progress failed.
    pub fn finish(&self, operation: &'static str) -> Result<()> {
        self.end_progress_thread();
        let waiting = Waiting::in_call(operation);
        self.wait_until(&waiting, |state| {
            let sent = !state.engine.messages.has_work()
                && state.engine.buffered_sends_are_done()
                && state.objects.files.are_quiet();
            let is_closed = match sent.then(|| state.engine.router.close()) {
                Some(Err(error)) => {
                    state.engine.contain(&state.objects.comms, error.into())?;
                    false
                }
                Some(Ok(is_closed)) => is_closed,
                None => false,
            };
            Ok(is_closed.then_some(()))
        })?;
        // The thread of a worker ends without the lock.
        let worker = self.lock().objects.files.worker.take();
        drop(worker);
        let mut state = self.lock();
        state.engine.report_rails();
        state.engine.report_strangers();
        Ok(())
    }
}
