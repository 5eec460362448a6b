//! Sending packets: the path of `put`, from the state of the connection to the post.

use super::Rdma;
use super::outbound::SlotPlace;
use super::ring_sender::TOO_MANY;
use crate::{Error, Head, Put, Result};

/// Polls in vain after which earlier packets to a peer are no longer on their way.
pub(super) const IDLE: u32 = 8;

impl Rdma {
    /// Sends a packet with a body of `len` bytes, which `fill` writes.
    ///
    /// `Full` means that there is no room for the packet now, or that the connection is not ready:
    /// the first call for a peer begins to connect, and each later one goes on with it. In both
    /// cases nothing was taken, and the caller tries again after a poll.
    #[inline(always)]
    pub(super) fn put_packet(
        &mut self,
        to: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        let endpoint = self.endpoints.get(to);
        if !endpoint.is_some_and(|endpoint| endpoint.connection.is_ready()) {
            self.connect(to)?;
            return Ok(Put::Full);
        }
        if !self.endpoints.of(to).has_rings() {
            return self.send_message(to, head, len, fill);
        }
        if self.config.coalesces() && self.should_coalesce(to, len)? {
            return Ok(self.coalesce(to, head, len, fill));
        }
        if !self.is_clear(to)? {
            return Ok(Put::Full);
        }
        let on = self.choose(to, len);
        let Some(place) = self.find(to, on, len)? else {
            return Ok(Put::Full);
        };
        let endpoint = self.endpoints.of(to);
        let posted = endpoint.write_packet(&mut *self.node, (on, place), head, len, fill)?;
        self.attention.deferred += usize::from(posted.head_pointer_due);
        if self.attention.receives_due > 0 {
            self.post_due()?;
        }
        Ok(match posted.lap {
            _ if self.needs_polls && self.is_corked(to, on) => Put::Corked,
            true => Put::AcceptedPollNow,
            false => Put::Accepted,
        })
    }

    /// The last packet to `to` waits on link `on` to leave together with others.
    #[inline(never)]
    pub(super) fn is_corked(&mut self, to: usize, on: usize) -> bool {
        let control = &self.endpoints.of(to).links()[on].control;
        control.is_corked(&mut *self.node)
    }

    /// Posts what was put to `to` earlier and waits. False: something still waits.
    #[inline(always)]
    fn is_clear(&mut self, to: usize) -> Result<bool> {
        if self.endpoints.of(to).sender.is_clear() {
            return Ok(true);
        }
        self.poll()?;
        self.write_coalesced(to)?;
        Ok(self.endpoints.of(to).sender.is_clear())
    }

    /// The position of the link for the next packet to `to`, of `len` bytes.
    #[inline(always)]
    fn choose(&mut self, to: usize, len: usize) -> usize {
        let endpoint = self.endpoints.of(to);
        if let Some(schedule) = &mut endpoint.schedule {
            let polls = self.attention.idle_polls.wrapping_sub(endpoint.idle_polls);
            // A packet that had no room is behind others, however long the rank has polled.
            if polls >= IDLE && endpoint.chosen.is_none() {
                schedule.idle();
            }
            endpoint.idle_polls = self.attention.idle_polls;
        }
        endpoint.choose(&mut *self.node, len)
    }

    /// A free slot for a body of `len` bytes, and room for its write on link `on`.
    #[inline(always)]
    pub(super) fn find(&mut self, to: usize, on: usize, len: usize) -> Result<Option<SlotPlace>> {
        match self.endpoints.of(to).find(on, len) {
            Some(place) => Ok(Some(place)),
            None => self.find_again(to, on, len),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_again(&mut self, to: usize, on: usize, len: usize) -> Result<Option<SlotPlace>> {
        self.poll()?;
        self.read_tail(to)?;
        let endpoint = self.endpoints.of(to);
        // The poll may have found that the link has failed.
        if !endpoint.links()[on].life.is_live() {
            return Ok(None);
        }
        let place = endpoint.find(on, len);
        if place.is_none() && endpoint.schedule.is_some() {
            endpoint.ask_for_reports(&mut *self.node)?;
        }
        Ok(place)
    }

    /// Reads the tail that a peer has written to memory.
    pub(super) fn read_tail(&mut self, of: usize) -> Result<()> {
        match self.endpoints.of(of).read_tail() {
            true => Ok(()),
            false => Err(Error::broken(of, TOO_MANY)),
        }
    }

    /// A peer reports its tail by an immediate.
    pub(super) fn heard_tail(&mut self, of: usize, lower: u32) -> Result<()> {
        match self.endpoints.of(of).sender.heard_tail(lower) {
            true => Ok(()),
            false => Err(Error::broken(of, TOO_MANY)),
        }
    }
}
