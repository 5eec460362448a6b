//! Probes, and receives of probed messages (MPI 5.0 §3.8).

use datatype::Buffer;

use crate::p2p::calls::awaited::Awaited;
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
use crate::state::State;
use crate::{Class, Error, Result, Status};

/// The result of `MPI_Mprobe`: the handle of a claimed message, and the message's status.
#[derive(Clone, Copy, Debug)]
pub struct Claimed {
    /// The handle of the message, or [`NO_PROCESS`] for one from `MPI_PROC_NULL`.
    pub handle: u32,
    /// The status that the receive of the message will have.
    pub status: Status,
}

/// `MPI_MESSAGE_NO_PROC`, with the ABI's value.
const NO_PROCESS: u32 = 0x129;

impl Rank {
    /// `MPI_Probe`: the status that a receive with these arguments will have.
    ///
    /// # Errors
    /// An argument is invalid, the sender is lost, or progress failed.
    pub fn probe(
        &self,
        operation: &'static str,
        source: i32,
        tag: i32,
        comm: u32,
    ) -> Result<Status> {
        self.search_for(operation, (source, tag, comm), |state| {
            state.probe(source, tag, comm)
        })
    }

    /// `MPI_Mprobe`: claims the message that a receive with these arguments would get.
    ///
    /// # Errors
    /// An argument is invalid, too many messages are claimed, the sender is lost, or progress
    /// failed.
    pub fn claim(
        &self,
        operation: &'static str,
        source: i32,
        tag: i32,
        comm: u32,
    ) -> Result<Claimed> {
        self.search_for(operation, (source, tag, comm), |state| {
            state.claim(source, tag, comm)
        })
    }

    /// Waits until `search`, a search for a message with these arguments, finds one.
    fn search_for<T>(
        &self,
        operation: &'static str,
        (source, tag, comm): (i32, i32, u32),
        mut search: impl FnMut(&mut State) -> Result<Option<T>>,
    ) -> Result<T> {
        let key = {
            let mut state = self.lock();
            if let Some(found) = search(&mut state)? {
                return Ok(found);
            }
            state.objects.comms.receive_key(source, tag, comm)?
        };
        let _awaited = key.map(|key| Awaited::new(self, key));
        self.wait_until(&Waiting::in_call(operation), search)
    }
}

impl State {
    /// The status that a receive with these arguments would have now. `None`: no message matches.
    ///
    /// # Errors
    /// An argument is invalid, or the sender is lost.
    #[inline(always)]
    pub fn probe(&mut self, source: i32, tag: i32, comm: u32) -> Result<Option<Status>> {
        Ok(match self.objects.comms.receive_key(source, tag, comm)? {
            None => Some(Status::PROC_NULL),
            Some(key) => {
                let found = self.engine.messages.probe(&key);
                if found.is_none() && self.engine.has_losses() {
                    self.engine.check_probed(&self.objects.comms, &key)?;
                }
                found
            }
        })
    }

    /// Claims the message that a receive with these arguments would get now: only
    /// [`State::receive_claimed`] receives it. `None`: no message matches.
    ///
    /// # Errors
    /// An argument is invalid, too many messages are claimed, or the sender is lost.
    pub fn claim(&mut self, source: i32, tag: i32, comm: u32) -> Result<Option<Claimed>> {
        let Some(key) = self.objects.comms.receive_key(source, tag, comm)? else {
            return Ok(Some(Claimed {
                handle: NO_PROCESS,
                status: Status::PROC_NULL,
            }));
        };
        let Some(found) = self.engine.messages.claim(&key) else {
            if self.engine.has_losses() {
                self.engine.check_probed(&self.objects.comms, &key)?;
            }
            return Ok(None);
        };
        let status = found.status();
        let full = || {
            Error::new(
                Class::NO_MEM,
                "more than a million messages have been probed and not received: receive some of \
                 them first",
            )
        };
        let handle = self.engine.claimed.insert(found).ok_or_else(full)?;
        Ok(Some(Claimed { handle, status }))
    }

    /// The context of the communicator on which a claimed message was sent.
    pub fn claimed_context(&self, handle: u32) -> Option<u64> {
        Some(self.engine.claimed.get(handle)?.key.context)
    }

    /// Starts the receive of a claimed message.
    ///
    /// # Errors
    /// The handle names no claimed message.
    pub fn receive_claimed(&mut self, buffer: Buffer, handle: u32) -> Result<RequestId> {
        if handle == NO_PROCESS {
            return self
                .engine
                .messages
                .requests
                .add_complete(Status::PROC_NULL);
        }
        let unknown = || {
            let detail =
                format!("{handle:#x} is not a message: it was never one, or it has been received");
            Error::new(Class::REQUEST, detail)
        };
        let found = self.engine.claimed.remove(handle).ok_or_else(unknown)?;
        let id = self.engine.messages.receive_message(buffer, found)?;
        self.engine.messages.flush(&mut self.engine.router)?;
        Ok(id)
    }
}
