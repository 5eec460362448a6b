//! A rank's pass of progress, which also drives tasks: operations with several steps.

use super::Rank;
use crate::Result;

impl Rank {
    /// One pass of progress, tasks included. True if anything moved.
    ///
    /// # Errors
    /// A transport failed, or a peer broke the protocol.
    pub fn progress(&self) -> Result<bool> {
        let mut state = self.lock();
        let moved = state.progress()?;
        let tasks = !state.engine.tasks.is_empty();
        drop(state);
        Ok(tasks && self.run_tasks() || moved)
    }
}
