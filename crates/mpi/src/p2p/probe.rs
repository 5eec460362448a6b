//! Looking at messages before they are received (MPI 5.0 §3.8), and taking operations back.

use channel::Channels;

use super::{Message, Messages};
use crate::matching::Key;
use crate::request::{Operation, RequestId};
use crate::{Class, Result, Status};

/// A message taken out by `MPI_Mprobe`, to be received by `MPI_Mrecv` and nobody else.
pub struct Found {
    pub key: Key,
    pub message: Message,
}

impl Found {
    pub fn status(&self) -> Status {
        status_of(&self.key, &self.message)
    }
}

impl Messages {
    /// The status that a receive with this key would have now.
    pub fn probe(&self, key: &Key) -> Option<Status> {
        self.unexpected.peek(key).map(|(sent, message)| status_of(&sent, message))
    }

    /// Takes out the message that a receive with this key would get now.
    pub fn claim(&mut self, key: &Key) -> Option<Found> {
        self.unexpected.take(key).map(|(key, message)| Found { key, message })
    }

    /// Begins to cancel a send or a receive; it then completes, cancelled or not (MPI 5.0 §3.8.4).
    pub fn cancel(&mut self, channels: &mut Channels, id: RequestId) -> Result<()> {
        let request = self.requests.valid(id)?;
        if request.status.is_some() {
            return Ok(());
        }
        match &request.operation {
            Operation::Send(_) => self.cancel_send(channels, id)?,
            Operation::Receive(_) => self.cancel_receive(id),
            Operation::Persistent(persistent) => {
                if let Some(active) = persistent.active {
                    self.cancel(channels, active)?;
                }
            }
            Operation::Collective | Operation::Generalized => {}
        }
        Ok(())
    }
}

fn status_of(sent: &Key, message: &Message) -> Status {
    Status {
        source: sent.source,
        tag: sent.tag,
        error: Class::SUCCESS,
        bytes: message.body.len() as u64,
        cancelled: false,
    }
}
