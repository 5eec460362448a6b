//! The one progress function: it takes arrived packets, advances transfers and sends queued
//! packets.

use crate::Result;
use crate::rank::{Rank, State};
use channel::ShortPath;

impl State {
    /// One round of progress, without tasks. True if anything moved. It runs no function of the
    /// user's and never waits.
    ///
    /// # Errors
    /// A transport failed, or a peer broke the protocol.
    #[inline(always)]
    pub fn progress(&mut self) -> Result<bool> {
        // Only a rank without devices has nothing.
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
        let moved = match messages.round(router) {
            Ok(moved) => moved,
            Err(error) => {
                self.contain(error)?;
                true
            }
        };
        self.moved += u64::from(moved);
        Ok(moved)
    }
}

impl Rank {
    /// One round of progress, with tasks. True if anything moved.
    ///
    /// # Errors
    /// A transport failed, or a peer broke the protocol.
    pub fn progress(&self) -> Result<bool> {
        let mut state = self.lock();
        let moved = state.progress()?;
        let tasks = !state.tasks.is_empty();
        drop(state);
        Ok(tasks && self.run_tasks() || moved)
    }
}
