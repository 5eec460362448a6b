//! The start of sends and receives.

use datatype::Buffer;

use crate::comm::Comms;
use crate::matching::Key;
use crate::request::{Mode, Operation, Persistent, RequestId, Template};
use crate::state::{Engine, Objects};
use crate::{Class, Error, Result};

impl Engine {
    /// Starts a send to a rank, with a tag, on a communicator. The result is
    /// [`Requests::done`](crate::request::Requests::done) if the send is complete at once.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        objects: &Objects,
        mode: Mode,
        buffer: &Buffer,
        (dest, tag, comm): (i32, i32, u32),
    ) -> Result<RequestId> {
        if mode == Mode::Buffered {
            self.buffered_send(objects, buffer, (dest, tag, comm))?;
            return Ok(self.messages.requests.done());
        }
        let Some((peer, key)) = objects.comms.send_key(dest, tag, comm)? else {
            return Ok(self.messages.requests.done());
        };
        self.messages
            .send(&mut self.router, mode, buffer, peer, key)
    }

    /// Starts the receive of a message with this envelope.
    ///
    /// # Errors
    /// There are too many requests, or progress failed.
    #[inline(always)]
    pub(crate) fn receive_by_key(
        &mut self,
        comms: &Comms,
        buffer: Buffer,
        key: Key,
    ) -> Result<RequestId> {
        let id = self.messages.receive(buffer, key)?;
        if self.messages.announces() {
            self.announce(comms, id, key)?;
        }
        // A synchronous sender waits for the report of the match.
        self.messages.flush(&mut self.router)?;
        Ok(id)
    }

    #[inline(never)]
    fn announce(&mut self, comms: &Comms, id: RequestId, key: Key) -> Result<()> {
        if self.has_losses() {
            self.check_posted(comms, id, &key);
        }
        let sender = match self.messages.announces_short() {
            true => comms.sender_of(&key),
            false => None,
        };
        self.messages.announce(&mut self.router, id, key, sender)
    }

    /// Begins to cancel an operation, which then completes, cancelled or not.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    pub(crate) fn cancel(&mut self, comms: &Comms, id: RequestId) -> Result<()> {
        self.messages.cancel(&mut self.router, id)?;
        // The cancellation of a message to this rank itself takes three packets, which only this
        // rank moves.
        for _ in 0..3 {
            if !self.progress(comms)? {
                break;
            }
        }
        Ok(())
    }

    /// Adds an inactive persistent request.
    pub(crate) fn init(&mut self, template: Template) -> Result<RequestId> {
        let persistent = Persistent {
            template,
            active: None,
        };
        let operation = Operation::Persistent(Box::new(persistent));
        self.messages.requests.add(operation)
    }

    /// The template of an inactive persistent request. Any other request is an error.
    pub(crate) fn startable(&mut self, id: RequestId) -> Result<Template> {
        self.messages.requests.valid(id)?;
        let bad = |detail| Err(Error::new(Class::REQUEST, detail));
        match self.messages.requests.persistent_mut(id) {
            None => bad("only a request of a persistent operation can be started"),
            Some(persistent) if persistent.active.is_some() => {
                bad("the operation is active: complete it before it is started again")
            }
            Some(persistent) => Ok(persistent.template.clone()),
        }
    }
}
