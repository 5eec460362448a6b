//! Blocking receives.

use channel::lock::Guard;
use datatype::Buffer;

use crate::matching::Key;
use crate::message_buffer::MessageBuffer;
use crate::rank::Rank;
use crate::state::State;
use crate::{Result, Status};

impl Rank {
    /// A blocking receive. A message longer than the buffer is an error in the status.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    pub fn receive(
        &self,
        operation: &'static str,
        buffer: impl MessageBuffer,
        source: i32,
        tag: i32,
        comm: impl Into<u32>,
    ) -> Result<Status> {
        self.receive_then(operation, buffer, source, tag, comm, Ok)
    }

    /// A blocking receive followed by `then`: `MPI_Recv`. Each path to a status ends in its own
    /// call of `then`, so the status is not copied.
    ///
    /// # Errors
    /// An argument is invalid, progress failed, or `then` failed.
    #[inline(always)]
    pub fn receive_then<T>(
        &self,
        operation: &'static str,
        buffer: impl MessageBuffer,
        source: i32,
        tag: i32,
        comm: impl Into<u32>,
        then: impl FnOnce(Status) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock();
        let buffer = buffer.resolve(&state.objects.types)?;
        let Some(key) = state.objects.comms.receive_key(source, tag, comm.into())? else {
            drop(state);
            return then(Status::PROC_NULL);
        };
        if let Some(status) = state.engine.receive_here(&buffer, &key)? {
            drop(state);
            return then(status);
        }
        then(self.receive_later(state, operation, &buffer, key)?)
    }

    /// The continuation of [`Rank::receive_then`] for a message that has not arrived.
    #[inline(never)]
    fn receive_later(
        &self,
        mut state: Guard<State>,
        operation: &'static str,
        buffer: &Buffer,
        key: Key,
    ) -> Result<Status> {
        if !state.engine.messages.expects_long(&key) {
            let waits = state.engine.messages.probe(&key).is_none();
            if let Some(status) = self.receive_soon(&mut state, buffer, &key)? {
                return Ok(status);
            }
            if waits {
                state.engine.messages.waited_for(&key);
            }
        }
        let State { engine, objects } = &mut *state;
        let id = engine.receive_by_key(&objects.comms, buffer.clone(), key)?;
        drop(state);
        self.wait_blocked(operation, id)
    }
}
