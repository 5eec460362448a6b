//! The one progress function: it takes arrived packets, advances transfers and sends queued
//! packets.

use channel::ShortPath;

use super::Engine;
use crate::Result;
use crate::comm::Comms;

impl Engine {
    /// One pass of progress, without tasks. True if anything moved. It runs no function of the
    /// user's and never waits.
    ///
    /// # Errors
    /// A transport failed, or a peer broke the protocol.
    #[inline(always)]
    pub(crate) fn progress(&mut self, comms: &Comms) -> Result<bool> {
        // With devices `has_nothing` is never true: only a poll shows what has arrived.
        if self.router.has_nothing() && !self.messages.has_work() {
            return Ok(false);
        }
        self.round(comms)
    }

    #[inline(never)]
    fn round(&mut self, comms: &Comms) -> Result<bool> {
        let moved = match self.messages.round(&mut self.router) {
            Ok(moved) => moved,
            Err(error) => {
                self.contain(comms, error)?;
                true
            }
        };
        self.moved += u64::from(moved);
        Ok(moved)
    }
}
