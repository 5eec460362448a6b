//! The progress thread of windows. It runs while a window exists whose operations need the target's
//! processor even when the target makes no MPI calls.

use std::sync::Arc;

use channel::lock::Guard;
use channel::{Assisted, Party, ProgressThread, Router};
use knobs::ProgressBy;

use crate::rank::Rank;
use crate::state::State;
use crate::window::Assistance;
use crate::{Error, Result};

/// A rank whose progress the progress thread makes.
#[derive(Clone, Copy)]
struct OnThread<'a>(&'a Rank);

impl Party for OnThread<'_> {
    type State = State;
    type Error = Error;

    fn lock(&self) -> Guard<'_, State> {
        self.0.lock()
    }

    fn has_threads(&self) -> bool {
        self.0.threads()
    }

    fn router(state: &mut State) -> &mut Router {
        &mut state.engine.router
    }

    fn progress(state: &mut State) -> Result<bool> {
        let moved = state.progress();
        let moved = moved.and_then(|moved| {
            let is_served = state.serve_windows()?;
            state.engine.moved += u64::from(is_served && !moved);
            Ok(is_served || moved)
        });
        moved.inspect_err(|error| state.engine.messages.raise_later(error))
    }

    fn needs_room(state: &State) -> bool {
        state.engine.messages.has_work()
    }

    /// False: tasks may run functions of the program, so they wait for its next MPI call.
    fn has_tasks(_: &State) -> bool {
        false
    }

    fn run_tasks(&self) -> bool {
        false
    }

    /// Does nothing: the progress thread does not answer the launcher's requests for a report.
    fn attend(&self) -> Result<()> {
        Ok(())
    }

    fn contact_awaited(_: &mut State) -> Result<()> {
        Ok(())
    }

    fn contain(state: &mut State, error: channel::Error) -> Result<()> {
        let contained = state.engine.contain(&state.objects.comms, error.into());
        contained.inspect_err(|error| state.engine.messages.raise_later(error))
    }

    fn deadlock(&self, _: &mut State) -> Error {
        unreachable!("modelled machines have no progress thread")
    }
}

impl Assisted for OnThread<'_> {
    fn try_lock(&self) -> Option<Guard<'_, State>> {
        self.0.try_lock_for_progress()
    }

    fn rounds(state: &State) -> u64 {
        state.engine.moved
    }
}

impl Rank {
    /// Starts the progress thread, if a window needs it and it does not run.
    pub(super) fn begin_window_progress(self: &Arc<Rank>) {
        {
            let mut state = self.lock();
            let is_wanted =
                self.knobs.progress == ProgressBy::Thread && !state.objects.windows.has_thread();
            if !is_wanted || !state.objects.windows.need_thread() {
                return;
            }
            if !state.engine.router.machine().abilities().runs_threads {
                state.objects.windows.thread = Assistance::Modelled;
                return;
            }
        }
        self.admit_progress_thread();
        let rank = Arc::downgrade(self);
        let thread = ProgressThread::start(move |watch| {
            let Some(rank) = rank.upgrade() else {
                return false;
            };
            // The rank's next progress call raises the error, or fails in the same manner.
            rank.waiter.step(&OnThread(&rank), watch).is_ok()
        });
        match thread {
            Ok(thread) => self.lock().objects.windows.thread = Assistance::Thread(Box::new(thread)),
            Err(why) => {
                self.dismiss_progress_thread();
                let text = format!(
                    "operations on its windows wait for its MPI calls, because the progress thread \
                     cannot start: {why}"
                );
                self.lock().engine.warn("progress-thread", &text);
            }
        }
    }

    /// Ends the progress thread, unless another window needs it.
    pub(super) fn end_window_progress(&self) {
        if !self.lock().objects.windows.need_thread() {
            self.end_progress_thread();
        }
    }

    /// Ends the progress thread of the rank, if it runs.
    pub(crate) fn end_progress_thread(&self) {
        let thread = std::mem::take(&mut self.lock().objects.windows.thread);
        if let Assistance::Thread(thread) = thread {
            self.waiter.end_thread(*thread);
            self.dismiss_progress_thread();
        }
    }
}

impl State {
    /// Computes for `nanos` nanoseconds of virtual time before the next call, and simulates the
    /// progress thread meanwhile: each arrival interrupts the computing, which ends later by the
    /// time of serving it.
    #[cold]
    pub(crate) fn compute_beside_thread(&mut self, nanos: u64) {
        self.engine.router.machine().begin_computing(nanos);
        loop {
            match self.engine.router.machine().compute() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    // The rank's next progress call raises an error that concerns the rank as a
                    // whole.
                    let _ = OnThread::contain(self, error);
                    return;
                }
            }
            loop {
                match OnThread::progress(self) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => return,
                }
            }
        }
    }
}
