//! Straight puts and gets: a device of this rank moves the bytes to or from the target's memory, or
//! the kernel copies them between two processes of a host. The target's process has no part in
//! them.
//!
//! Invariants:
//! - no access starts before the target has granted the lock of its epoch;
//! - a get is straight only if no put or accumulate has left by messages since the last flush: it
//!   would overtake them. MPI requires order only at a flush, but programs read back what they have
//!   put after a local flush;
//! - an access is complete at its target when its request is, so the message that ends an epoch is
//!   sent after the requests of all accesses have completed (`origin`).

use channel::{Exposed, RemoteKey, Transport, ZeroCopy};
use datatype::Buffer;

use super::keys::Shortest;
use super::operation::{Access, Place};
use super::{Ports, Window};
use crate::p2p::Accessed;
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// The greatest number of contiguous ranges of bytes at a target that one straight operation
/// accesses.
const MOST_RUNS: usize = 16;

/// The result of an attempt to start a straight operation.
pub(super) enum Way {
    /// The operation cannot be straight, or messages are faster: send it as messages.
    Messages,
    /// The put or get is complete already.
    Done,
    /// Devices move the bytes of the operation, and complete these requests.
    Started(Vec<(RequestId, u64)>),
}

impl Window {
    /// Starts a put or a get without the target's process, if that is possible and faster.
    pub(super) fn start_remote(
        &mut self,
        ports: &mut Ports,
        access: &Access,
        place: &Place,
        (target, at, bytes): (u32, i64, usize),
    ) -> Result<Way> {
        let (origin, is_put) = match access {
            Access::Put(origin) => (origin, true),
            Access::Get(origin) => (origin, false),
            _ => return Ok(Way::Messages),
        };
        let Some(remote) = self.remote.as_deref() else {
            return Ok(Way::Messages);
        };
        if target == self.core.rank as u32 && ports.router.machine().abilities().maps_memory {
            return self.copy_here(access, place, at);
        }
        let known = self.targets.get(&target);
        let overtakes = !is_put && known.is_some_and(|known| known.has_messages);
        let Some(key) = remote.key(target).copied().filter(|_| !overtakes) else {
            return Ok(Way::Messages);
        };
        let peer = self.world(target)?;
        let shortest = self.shortest(ports, target, peer);
        let least = if is_put { shortest.put } else { shortest.get };
        if bytes < least || !self.may_start(target) || !ports.router.can_start(peer) {
            return Ok(Way::Messages);
        }
        let runs = place.ty.runs(place.count, MOST_RUNS + 1);
        let is_short = runs.len() > 1 && bytes / runs.len() < shortest.run;
        if runs.len() > MOST_RUNS || is_short {
            return Ok(Way::Messages);
        }
        let exposed = match is_put {
            true => Exposed::ToRead,
            false => Exposed::ToWrite,
        };
        let mut started = Vec::new();
        let here = (&origin.slice(0, bytes), exposed);
        let moved = move_runs(ports, (peer, &key), (at, &runs), here, &mut started);
        if matches!(moved, Ok(true)) {
            self.counts.straight += 1;
            return Ok(match started.is_empty() {
                true => Way::Done,
                false => Way::Started(started),
            });
        }
        // Transfers that have started use the program's memory until they end.
        if !started.is_empty() {
            self.keep_straight(target, started, None);
        }
        moved.map(|_| Way::Messages)
    }

    /// Carries out a put or get on this rank's own part of the window.
    fn copy_here(&mut self, access: &Access, place: &Place, at: i64) -> Result<Way> {
        if !self.may_start(self.core.rank as u32) {
            return Ok(Way::Messages);
        }
        let here = self.memory.find(at, place.count, &place.ty)?;
        match access {
            Access::Put(origin) => origin.copy_to(&here),
            Access::Get(origin) => here.copy_to(origin),
            _ => return Ok(Way::Messages),
        };
        self.counts.straight += 1;
        Ok(Way::Done)
    }

    /// True if the epoch allows accesses without the target's process: its lock has been granted,
    /// if it has one.
    fn may_start(&self, target: u32) -> bool {
        let needs_lock = self
            .epochs
            .lock_of(target)
            .is_some_and(|held| !held.nocheck);
        let known = self.targets.get(&target);
        !needs_lock || known.is_some_and(|known| known.is_locked && known.is_granted)
    }

    /// True if further accesses of this length to a target may be straight, so that it is worth a
    /// message to learn of the grant of its lock.
    pub(super) fn wants_grant(&self, target: u32, bytes: usize) -> bool {
        let remote = self.remote.as_deref();
        bytes > super::messages::PIECE && remote.is_some_and(|remote| remote.key(target).is_some())
    }

    /// Requests the lock of the epoch, if this access begins the epoch and this rank's processor
    /// will copy the bytes once the lock is granted. Returns the target, for whose grant it is then
    /// worth waiting: it has to answer only two short messages, rather than copy between other
    /// work. Invalid arguments and other accesses are left to [`Window::start`].
    ///
    /// # Errors
    /// The target is lost.
    pub(crate) fn ask_for_grant(
        &mut self,
        ports: &mut Ports,
        access: &Access,
        place: &Place,
    ) -> Result<Option<u32>> {
        let is_put = match access {
            Access::Put(_) => true,
            Access::Get(_) => false,
            _ => return Ok(None),
        };
        let Ok(target) = self.member(place.rank) else {
            return Ok(None);
        };
        let known = self.targets.get(&target);
        let is_asked = known.is_some_and(|known| known.is_locked);
        if is_asked || !self.epochs.awaits_lock(target) || target == self.core.rank as u32 {
            return Ok(None);
        }
        let bytes = access.check(place).unwrap_or_default();
        if !self.wants_grant(target, bytes) || self.offset(target, place).is_err() {
            return Ok(None);
        }
        let peer = self.world(target)?;
        let zero_copy = ports.router.capabilities(peer).zero_copy;
        let shortest = self.shortest(ports, target, peer);
        let least = if is_put { shortest.put } else { shortest.get };
        if bytes < least || !zero_copy.is_some_and(|zero_copy| zero_copy.synchronous) {
            return Ok(None);
        }
        self.ask_for_lock(ports, target, true)?;
        Ok(Some(target))
    }

    fn shortest(&mut self, ports: &mut Ports, target: u32, peer: usize) -> Shortest {
        let known = self.targets.entry(target).or_default();
        *known.shortest.get_or_insert_with(|| {
            let capabilities = ports.router.capabilities(peer);
            Shortest::of(&capabilities, ports.messages.limits())
        })
    }
}

/// Moves contiguous ranges of bytes between a buffer and a peer's part, `at` bytes from the part's
/// start. Returns false if the buffer cannot be used for that.
fn move_runs(
    ports: &mut Ports,
    (peer, key): (usize, &RemoteKey),
    (at, runs): (i64, &[(isize, usize)]),
    (buffer, exposed): (&Buffer, Exposed),
    started: &mut Vec<(RequestId, u64)>,
) -> Result<bool> {
    let mut position = 0;
    for (offset, len) in runs {
        let here = buffer.slice(position, *len);
        let len = here.len();
        if len == 0 {
            break;
        }
        let first = usize::try_from(at + *offset as i64).ok();
        let part = first.and_then(|first| key.part(first..first.checked_add(len)?));
        let part = part.ok_or_else(|| {
            Error::new(Class::RMA_RANGE, "an access outside of the target's window")
        })?;
        let messages = &mut *ports.messages;
        match messages.access(ports.router, peer, (&here, exposed), &part)? {
            Accessed::Done => {}
            Accessed::Started(id) => started.push((id, 0)),
            Accessed::Refused => return Ok(false),
        }
        position += len;
    }
    Ok(true)
}
