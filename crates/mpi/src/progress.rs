//! The one progress function: takes what has arrived, moves long messages, sends what waits for room.

use crate::Result;
use crate::rank::{Rank, State};

impl State {
    /// One round. True if anything moved. Runs no function of the user's and never waits.
    #[inline(always)]
    pub fn progress(&mut self) -> Result<bool> {
        if self.router.has_nothing() && !self.messages.has_work() {
            return Ok(false);
        }
        self.round()
    }

    #[inline(never)]
    fn round(&mut self) -> Result<bool> {
        let State {
            router, messages, ..
        } = self;
        let moved = messages.round(router)?;
        self.moved += u64::from(moved);
        Ok(moved)
    }
}

impl Rank {
    /// One round of progress, tasks included. True if anything moved.
    pub fn progress(&self) -> Result<bool> {
        let mut state = self.lock();
        let moved = state.progress()?;
        let tasks = !state.tasks.is_empty();
        drop(state);
        if tasks {
            self.run_tasks();
        }
        Ok(moved)
    }
}
