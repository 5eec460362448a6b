//! Coalescing: while the queue pair is busy, or only slots for longer packets are free, short
//! packets gather in one slot and leave in one write. The slot leaves when it is full, or when the
//! queue pair is free again; every poll checks that.

use super::Rdma;
use super::layout::{SUBHEAD, padded};
use super::qp_link::SIGNAL;
use crate::{Head, Put, Result};

/// Unfinished requests from which on a queue pair is busy.
const BUSY: u32 = 2 * SIGNAL;
/// The longest body that is coalesced.
const LONGEST: usize = 2048;

impl Rdma {
    /// The next packet to `to`, of `len` bytes, is to be coalesced.
    #[inline(always)]
    pub(super) fn should_coalesce(&mut self, to: usize, len: usize) -> Result<bool> {
        if len > LONGEST || padded(len) + SUBHEAD > self.layout.max_body() {
            return Ok(false);
        }
        let endpoint = self.endpoints.of(to);
        let held = endpoint.home().control.held();
        if !endpoint.sender.is_coalescing() && held < BUSY && endpoint.sender.fits_well(len) {
            return Ok(false);
        }
        self.find_coalescing(to, len)
    }

    /// Finds or opens a slot in which a packet can be coalesced. False: the packet takes a slot of
    /// its own, or none is free.
    #[inline(never)]
    fn find_coalescing(&mut self, to: usize, len: usize) -> Result<bool> {
        self.poll()?;
        let endpoint = self.endpoints.of(to);
        if endpoint.sender.is_coalescing() {
            let held = endpoint.home().control.held();
            let sender = &endpoint.sender;
            if sender.coalescing_has_room(len) && (held >= BUSY / 2 || !sender.fits_well(len)) {
                return Ok(true);
            }
            self.write_coalesced(to)?;
        }
        self.read_tail(to)?;
        let endpoint = self.endpoints.of(to);
        let is_free = endpoint.home().control.held() < BUSY && endpoint.sender.fits_well(len);
        if endpoint.sender.is_coalescing() || is_free {
            return Ok(false);
        }
        let most = self.layout.max_body();
        let home = self.endpoints.of(to).home().index();
        let Some(place) = self.find(to, home, most)? else {
            return Ok(false);
        };
        // Lost packets leave first: the polls may have found that a link has failed.
        if !self.endpoints.of(to).sender.is_clear() {
            return Ok(false);
        }
        self.endpoints.of(to).sender.begin_coalescing(place);
        self.attention.deferred += 1;
        Ok(true)
    }

    /// Adds a packet to the open slot of coalesced packets, which has room.
    pub(super) fn coalesce(
        &mut self,
        to: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Put {
        let sender = &mut self.endpoints.of(to).sender;
        match sender.coalesce(&mut *self.node, head, len, fill) {
            true => Put::AcceptedPollNow,
            false => Put::Accepted,
        }
    }

    /// Posts the slot of coalesced packets, if there is one, unless the send queue has no room for
    /// it now.
    pub(super) fn write_coalesced(&mut self, to: usize) -> Result<()> {
        let written = self.endpoints.of(to).write_coalesced(&mut *self.node)?;
        if written.is_some() {
            self.attention.deferred -= 1;
        }
        Ok(())
    }

    /// Posts coalesced packets whose queue pair is free again.
    #[inline(never)]
    pub(super) fn send_deferred(&mut self) -> Result<()> {
        for at in 0..self.endpoints.ringed().len() {
            let to = self.endpoints.ringed()[at];
            let endpoint = self.endpoints.of(to);
            if endpoint.sender.is_coalescing() && endpoint.home().control.held() < BUSY {
                self.write_coalesced(to)?;
            }
        }
        Ok(())
    }
}
