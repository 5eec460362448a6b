//! Windows whose memory all members map: the short path of an access, and window locks.

use channel::{MappedMemory, Ticket, WindowMemory};

use super::direct::near_place::NearPlace;
use super::locks::LockKind;
use super::{Ports, Window};

impl Window {
    /// The bytes at a displacement of a target. `None`: this rank does not map them, or the access
    /// is an error, which [`start`](Window::start) reports.
    #[inline(always)]
    pub(super) fn near(&mut self, rank: i32, disp: isize, bytes: usize) -> Option<NearPlace<'_>> {
        let direct = self.direct.as_deref_mut()?;
        let target = usize::try_from(rank).ok()?;
        if target >= direct.memory.members() || bytes == 0 {
            return None;
        }
        let part = self.parts.get(target).or(self.parts.first())?;
        let at = (disp as i64).checked_mul(part.disp_unit)?;
        let offset = usize::try_from(at).ok()?;
        let size = part.size as usize;
        if offset > size || bytes > size - offset || self.epochs.access(rank as u32).is_err() {
            return None;
        }
        Some(direct.near(target, offset, bytes))
    }
}

impl Window {
    /// Requests the window lock of a target in mapped memory. `None`: this rank has it at once, or
    /// the members do not map the window.
    pub(crate) fn request_lock(
        &self,
        ports: &Ports,
        target: u32,
        kind: LockKind,
    ) -> Option<Ticket> {
        let direct = self.direct.as_ref()?;
        let ticket = direct.memory.request(target as usize, kind.into());
        (!self.is_granted(ports, target, &ticket)).then_some(ticket)
    }

    /// True if the lock has been granted. Not to be called again after that.
    pub(crate) fn is_granted(&self, ports: &Ports, target: u32, ticket: &Ticket) -> bool {
        let Some(direct) = &self.direct else {
            return true;
        };
        let is_granted = direct.memory.is_granted(ticket);
        if is_granted {
            // A shared lock admits the next request.
            self.wake(ports, &direct.memory, target);
        }
        is_granted
    }

    /// Releases the window lock of a target in mapped memory.
    pub(crate) fn release_lock(&self, ports: &Ports, target: u32, kind: LockKind) {
        if let Some(direct) = &self.direct {
            direct.memory.release(target as usize, kind.into());
            self.wake(ports, &direct.memory, target);
        }
    }

    /// Wakes the members that wait for the window lock of a target.
    fn wake(&self, ports: &Ports, memory: &WindowMemory, target: u32) {
        for member in memory.waiting(target as usize) {
            if let Ok(world) = self.world(member as u32) {
                ports.router.ring(world);
            }
        }
    }
}
