//! Looking at messages before they are received (MPI 5.0 §3.8), and taking operations back.

use channel::Router;

use super::{Message, Messages};
use crate::matching::Key;
use datatype::Buffer;

use crate::rank::State;
use crate::request::{Operation, RequestId};
use crate::{Class, Error, Result, Status};

/// A message taken out by `MPI_Mprobe`, to be received by `MPI_Mrecv` and nobody else.
pub struct Found {
    pub key: Key,
    pub message: Message,
}

/// What `MPI_Mprobe` gives: the message's handle ([`NO_PROCESS`] from no one), and its status.
#[derive(Clone, Copy, Debug)]
pub struct Claimed {
    pub handle: u32,
    pub status: Status,
}

/// `MPI_MESSAGE_NO_PROC`, by the ABI's value.
pub const NO_PROCESS: u32 = 0x129;

impl State {
    /// The status that a receive with these arguments would have now.
    #[inline(always)]
    pub fn probe(&self, source: i32, tag: i32, comm: u32) -> Result<Option<Status>> {
        Ok(match self.receive_key(source, tag, comm)? {
            None => Some(Status::PROC_NULL),
            Some(key) => self.messages.probe(&key),
        })
    }

    /// Takes out the message that a receive with these arguments would get now.
    pub fn claim(&mut self, source: i32, tag: i32, comm: u32) -> Result<Option<Claimed>> {
        let Some(key) = self.receive_key(source, tag, comm)? else {
            return Ok(Some(Claimed {
                handle: NO_PROCESS,
                status: Status::PROC_NULL,
            }));
        };
        let Some(found) = self.messages.claim(&key) else {
            return Ok(None);
        };
        let status = status_of(&found.key, &found.message);
        let full = || {
            Error::new(
                Class::NO_MEM,
                "more than a million messages have been probed and not received",
            )
        };
        let handle = self.claimed.insert(found).ok_or_else(full)?;
        Ok(Some(Claimed { handle, status }))
    }

    /// The context of the communicator that the message came on.
    pub fn claimed_context(&self, handle: u32) -> Option<u64> {
        Some(self.claimed.get(handle)?.key.context)
    }

    /// Starts the receive of a message that has been taken out.
    pub fn receive_claimed(&mut self, buffer: Buffer, handle: u32) -> Result<RequestId> {
        if handle == NO_PROCESS {
            return self.messages.requests.add_complete(Status::PROC_NULL);
        }
        let unknown = || {
            let detail =
                format!("{handle:#x} is not a message: it was never one, or it has been received");
            Error::new(Class::REQUEST, detail)
        };
        let found = self.claimed.remove(handle).ok_or_else(unknown)?;
        let id = self
            .messages
            .receive_message(buffer, found.key, found.message)?;
        self.messages.flush(&mut self.router)?;
        Ok(id)
    }
}

impl Messages {
    /// The status that a receive with this key would have now.
    #[inline(always)]
    pub fn probe(&self, key: &Key) -> Option<Status> {
        if self.unexpected.is_some() {
            self.probe_unexpected(key)
        } else {
            None
        }
    }

    #[inline(never)]
    fn probe_unexpected(&self, key: &Key) -> Option<Status> {
        let (sent, message) = self.unexpected.peek(key)?;
        Some(status_of(&sent, message))
    }

    /// Takes out the message that a receive with this key would get now.
    pub fn claim(&mut self, key: &Key) -> Option<Found> {
        self.unexpected
            .take(key)
            .map(|(key, message)| Found { key, message })
    }

    /// Begins to cancel a send or a receive; it then completes, cancelled or not (MPI 5.0 §3.8.4).
    pub fn cancel(&mut self, router: &mut Router, id: RequestId) -> Result<()> {
        let request = self.requests.valid(id)?;
        if request.status.is_some() {
            return Ok(());
        }
        match &request.operation {
            Operation::Send(_) => self.cancel_send(router, id)?,
            Operation::Receive(_) => self.cancel_receive(id),
            Operation::Persistent(persistent) => {
                if let Some(active) = persistent.active {
                    self.cancel(router, active)?;
                }
            }
            Operation::Collective { .. } | Operation::Generalized => {}
        }
        Ok(())
    }
}

fn status_of(sent: &Key, message: &Message) -> Status {
    Status {
        source: sent.source,
        tag: sent.tag,
        error: Class::SUCCESS,
        bytes: message.body.bytes() as u64,
        dropped: 0,
        cancelled: false,
    }
}
