//! Probes of unexpected messages (MPI 5.0 §3.8), and cancellation.

use channel::Router;

use super::message::status_of;
use super::{Found, Messages};
use crate::comm::bare;
use crate::matching::Key;
use crate::request::{Operation, RequestId};
use crate::{Result, Status};

impl Messages {
    /// The status that a receive with this envelope would have now. `None`: no message matches.
    #[inline(always)]
    pub(crate) fn probe(&self, key: &Key) -> Option<Status> {
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

    /// Removes the unexpected message that a receive with this envelope would get now, and returns
    /// it.
    pub(crate) fn claim(&mut self, key: &Key) -> Option<Found> {
        self.unexpected
            .take(key)
            .map(|(key, message)| Found { key, message })
    }

    /// Begins to cancel a send or a receive, which then completes, cancelled or not (MPI 5.0
    /// §3.8.4).
    pub(crate) fn cancel(&mut self, router: &mut Router, id: RequestId) -> Result<()> {
        if self.batches.is_gathering() {
            self.send_batches(router);
        }
        let request = self.requests.valid(id)?;
        if !request.is_open() {
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
            // A shared send among them completes without its receiver, cancelled or not.
            Operation::Collective { .. } | Operation::Access { .. } | Operation::Generalized => {}
        }
        Ok(())
    }

    /// True if sends or receives on the communicator with this context are in progress.
    pub(crate) fn communicate(&self, context: u64) -> bool {
        self.requests.iter().any(|(_, request)| {
            let of = match &request.operation {
                Operation::Send(send) => send.envelope.key.context,
                Operation::Receive(receive) => receive.key.context,
                _ => return false,
            };
            request.is_open() && bare(of) == context
        })
    }
}
