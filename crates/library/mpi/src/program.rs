//! Records of when a program on a modelled machine enters and leaves MPI calls, and the end of a
//! rank.

use channel::{MappedMemory, Transport};

use crate::rank::Rank;
use crate::request::Waiting;
use crate::{ProgramCall, Result};

impl Rank {
    /// Records that the program enters an MPI call; `call` has the computing time before it.
    pub fn enter(&self, call: ProgramCall) {
        let mut state = self.lock();
        if call.computed > 0 && state.objects.windows.has_modelled_thread() {
            state.compute_beside_thread(call.computed);
        }
        state.engine.router.machine().enter(call);
    }

    /// Begins a step of the program, between two of its calls.
    pub fn begin_step(&self) {
        self.lock().engine.router.machine().begin_step();
    }

    /// Records that the program leaves an MPI call.
    pub fn leave(&self) {
        self.lock().engine.router.machine().leave();
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
            if sent {
                state.engine.router.receive_no_more();
            }
            let (messages, router) = (&mut state.engine.messages, &state.engine.router);
            let sent = sent && messages.shares_nothing(router);
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
        // The drop of the worker joins its thread, which must happen without the lock.
        let worker = self.lock().objects.files.worker.take();
        drop(worker);
        let mut state = self.lock();
        state.engine.report_rails();
        state.engine.report_strangers();
        Ok(())
    }
}
