//! Progress with tasks.

use super::Rank;
use crate::Result;

impl Rank {
    /// One round of progress, with tasks. True if anything moved.
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
