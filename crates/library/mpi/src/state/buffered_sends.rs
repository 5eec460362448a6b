//! Buffered sends (MPI 5.0 §3.6): they complete at once, because a copy of the message is sent.

use datatype::local_work::LocalWork;
use datatype::{Buffer, Predefined};

use super::{Engine, Objects};
use crate::p2p::buffered::{AUTOMATIC, OVERHEAD, Owner};
use crate::request::Mode;
use crate::{Class, Error, Result};

/// Passes of progress before a buffered send fails because the buffer is full: a few milliseconds.
const PATIENCE: usize = 100_000;

impl Engine {
    /// `MPI_Bsend`: the send is complete when this returns.
    #[inline(never)]
    pub(crate) fn buffered_send(
        &mut self,
        objects: &Objects,
        buffer: &Buffer,
        (dest, tag, comm): (i32, i32, u32),
    ) -> Result<()> {
        if objects.comms.get(comm)?.core.peer(dest)?.is_none() {
            return Ok(());
        }
        let owner = Some(comm).filter(|_| self.attached.get(Some(comm)).is_some());
        let needed = buffer.len() + OVERHEAD;
        // Copies for a receiver that makes progress leave soon, so a full buffer is retried for a
        // while.
        for _ in 0..PATIENCE {
            if self.drop_sent_copies(owner)? || self.has_room(owner, needed) {
                break;
            }
            if !self.progress(&objects.comms)? {
                std::hint::spin_loop();
            }
        }
        let Some(attached) = self.attached.get(owner) else {
            let detail = "no buffer is attached for buffered sends: call MPI_Buffer_attach first";
            return Err(Error::new(Class::BUFFER, detail));
        };
        if attached.address != AUTOMATIC && needed > attached.free() {
            let detail = format!(
                "the message needs {needed} bytes of the attached buffer, and {} of its {} are free: attach a larger one",
                attached.free(),
                attached.size
            );
            return Err(Error::new(Class::BUFFER, detail));
        }
        let copy = self
            .scratch
            .elements(buffer.len(), &Predefined::BYTE.into())?
            .buffer();
        let copied = buffer.copy_to(&copy);
        if let Some(meter) = objects.types.meter() {
            meter.add(LocalWork::Copy, copied, copied);
        }
        let id = self.send(objects, Mode::Standard, &copy, (dest, tag, comm))?;
        if id != self.messages.requests.done() {
            let attached = self.attached.get_mut(owner)?;
            attached.in_flight.push((id, needed));
        }
        Ok(())
    }

    fn has_room(&self, owner: Owner, needed: usize) -> bool {
        self.attached
            .get(owner)
            .is_some_and(|attached| attached.has_room(needed))
    }

    /// Removes the copies that have been sent. True if no copy remains.
    pub(crate) fn drop_sent_copies(&mut self, owner: Owner) -> Result<bool> {
        let Ok(attached) = self.attached.get_mut(owner) else {
            return Ok(true);
        };
        let mut kept = Vec::new();
        for (id, bytes) in std::mem::take(&mut attached.in_flight) {
            if self.messages.requests.take(id)?.is_none() {
                kept.push((id, bytes));
            }
        }
        attached.in_flight = kept;
        Ok(attached.in_flight.is_empty())
    }

    /// True if all copies of all attached buffers have been sent.
    pub(crate) fn buffered_sends_are_done(&mut self) -> bool {
        let owners = self.attached.owners();
        owners
            .into_iter()
            .all(|owner| self.drop_sent_copies(owner).unwrap_or(true))
    }
}
