//! Blocking sends.

use crate::message_buffer::MessageBuffer;
use crate::rank::Rank;
use crate::request::{Mode, RequestId};
use crate::{Class, Result};

impl Rank {
    /// A blocking send: `MPI_Send`, `MPI_Ssend`, `MPI_Rsend` or `MPI_Bsend`.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    #[inline(always)]
    pub fn send(
        &self,
        operation: &'static str,
        mode: Mode,
        buffer: impl MessageBuffer,
        dest: i32,
        tag: i32,
        comm: impl Into<u32>,
    ) -> Result<()> {
        let mode = match mode {
            Mode::Standard => Mode::Blocking,
            other => other,
        };
        let mut state = self.lock();
        let buffer = buffer.resolve(&state.objects.types)?;
        let id = state.send(mode, &buffer, dest, tag, comm.into())?;
        if id == state.engine.messages.requests.done() {
            return Ok(());
        }
        drop(state);
        self.wait_sent(operation, id)
    }

    /// Waits until the send of a blocking call is complete.
    #[inline(never)]
    fn wait_sent(&self, operation: &'static str, id: RequestId) -> Result<()> {
        let status = self.wait(operation, id)?;
        match status.error {
            Class::SUCCESS => Ok(()),
            _ => self.result_of(status).map(drop),
        }
    }
}
