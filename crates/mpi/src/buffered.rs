//! Buffered sends (MPI 5.0 §3.6): complete at once, because what cannot leave is copied.
//!
//! The user attaches memory to say how much may be under way. The copies lie in memory of the library's own, so the
//! attached memory is only counted, never written; a program that stays within what the standard lets it rely on sees no
//! difference.

use std::collections::BTreeMap;
use std::sync::Arc;

use datatype::{Buffer, Predefined};

use crate::p2p::Mode;
use crate::rank::{Rank, State};
use crate::request::RequestId;
use crate::task::Completion;
use crate::{Class, Error, Result, Waiting};

/// What a message costs beside its bytes; at most `MPI_BSEND_OVERHEAD`.
const OVERHEAD: usize = 64;
/// Looks before a buffered send is refused for want of room: a few milliseconds.
const PATIENCE: usize = 100_000;
/// `MPI_BUFFER_AUTOMATIC`: as much as there is need for.
pub const AUTOMATIC: usize = 2;

/// Whose room: the process's, or a communicator's own.
pub type Owner = Option<u32>;

#[derive(Default)]
pub(crate) struct Rooms(BTreeMap<Owner, Room>);

struct Room {
    address: usize,
    size: usize,
    /// Copies that have not left yet, and what each takes of the room.
    under_way: Vec<(RequestId, usize)>,
}

impl State {
    pub fn attach_room(&mut self, owner: Owner, address: usize, size: usize) -> Result<()> {
        if let Some(comm) = owner {
            self.comms.get(comm)?;
        }
        if self.rooms.0.contains_key(&owner) {
            let detail = "a buffer is attached already: detach it first";
            return Err(Error::new(Class::BUFFER, detail));
        }
        let room = Room {
            address,
            size,
            under_way: Vec::new(),
        };
        self.rooms.0.insert(owner, room);
        Ok(())
    }

    /// `MPI_Bsend`: complete when this returns.
    #[inline(never)]
    pub fn buffered_send(&mut self, buffer: &Buffer, dest: i32, tag: i32, comm: u32) -> Result<()> {
        if self.comms.get(comm)?.core.peer(dest)?.is_none() {
            return Ok(());
        }
        let own = Some(comm);
        let owner = if self.rooms.0.contains_key(&own) {
            own
        } else {
            None
        };
        let needed = buffer.len() + OVERHEAD;
        // Copies on their way to a receiver that is there leave within moments; only then is there no room.
        for _ in 0..PATIENCE {
            if self.tidy_room(owner)? || self.has_room(owner, needed) {
                break;
            }
            if !self.progress()? {
                std::hint::spin_loop();
            }
        }
        let Some(room) = self.rooms.0.get(&owner) else {
            let detail = "no buffer is attached for buffered sends: call MPI_Buffer_attach first";
            return Err(Error::new(Class::BUFFER, detail));
        };
        let used: usize = room.under_way.iter().map(|(_, bytes)| bytes).sum();
        if room.address != AUTOMATIC && needed > room.size.saturating_sub(used) {
            let detail = format!(
                "the message needs {needed} bytes of the attached buffer, and {} of its {} are free: attach a larger one",
                room.size.saturating_sub(used),
                room.size
            );
            return Err(Error::new(Class::BUFFER, detail));
        }
        let copy = self
            .scratch
            .elements(buffer.len(), &Predefined::BYTE.into())?
            .buffer();
        buffer.copy_to(&copy);
        let id = self.send(Mode::Standard, &copy, dest, tag, comm)?;
        if id != self.messages.requests.done()
            && let Some(room) = self.rooms.0.get_mut(&owner)
        {
            room.under_way.push((id, needed));
        }
        Ok(())
    }

    fn has_room(&self, owner: Owner, needed: usize) -> bool {
        self.rooms.0.get(&owner).is_some_and(|room| {
            let used: usize = room.under_way.iter().map(|(_, bytes)| bytes).sum();
            room.address == AUTOMATIC || needed <= room.size.saturating_sub(used)
        })
    }

    /// Forgets the copies that have left. True if none is left.
    fn tidy_room(&mut self, owner: Owner) -> Result<bool> {
        let Some(room) = self.rooms.0.get_mut(&owner) else {
            return Ok(true);
        };
        let mut kept = Vec::new();
        for (id, bytes) in std::mem::take(&mut room.under_way) {
            if self.messages.requests.take(id)?.is_none() {
                kept.push((id, bytes));
            }
        }
        room.under_way = kept;
        Ok(room.under_way.is_empty())
    }

    /// Every copy has left, whoever attached its room.
    pub(crate) fn rooms_are_empty(&mut self) -> bool {
        let owners: Vec<Owner> = self.rooms.0.keys().copied().collect();
        owners
            .into_iter()
            .all(|owner| self.tidy_room(owner).unwrap_or(true))
    }

    fn no_room(owner: Owner) -> Error {
        let whose = if owner.is_some() {
            "to this communicator"
        } else {
            "for buffered sends"
        };
        Error::new(Class::BUFFER, format!("no buffer is attached {whose}"))
    }
}

impl Rank {
    /// Waits until every copy has left, and gives the attached memory back.
    pub fn detach_room(&self, operation: &'static str, owner: Owner) -> Result<(usize, usize)> {
        self.flush_room(operation, owner)?;
        let room = self.lock().rooms.0.remove(&owner);
        room.map(|room| (room.address, room.size))
            .ok_or_else(|| State::no_room(owner))
    }

    /// Waits until every copy has left.
    pub fn flush_room(&self, operation: &'static str, owner: Owner) -> Result<()> {
        if !self.lock().rooms.0.contains_key(&owner) {
            return Err(State::no_room(owner));
        }
        let waiting = Waiting::in_call(operation);
        self.wait_until(&waiting, |state| Ok(state.tidy_room(owner)?.then_some(())))
    }

    /// The same as a request.
    pub fn start_flush_room(self: &Arc<Rank>, owner: Owner) -> Result<RequestId> {
        let under_way = match self.lock().rooms.0.get_mut(&owner) {
            Some(room) => std::mem::take(&mut room.under_way),
            None => return Err(State::no_room(owner)),
        };
        let rank = self.clone();
        self.spawn(None, async move {
            for (request, _) in under_way {
                Completion {
                    rank: rank.clone(),
                    request,
                }
                .await?;
            }
            Ok(())
        })
    }
}
