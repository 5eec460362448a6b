//! Gathering: while the way is busy, or only slots are free that are meant for longer ones, short packets gather in one
//! slot and leave in one write. It leaves when it is full, or when the way is free again, which every `get` looks for.

use device::Effort;

use super::Rdma;
use super::layout::{self, Content, SUBHEAD, padded};
use super::outbound::Gathering;
use super::qp_link::{DEPTH, SIGNAL};
use crate::{Head, Put, Result};

/// The way is busy from so many writes on that have not completed.
const BUSY: u32 = 2 * SIGNAL;
/// The longest body that is gathered with others.
const GATHERED: usize = 2048;

impl Rdma {
    /// Does this packet go with others?
    #[inline(always)]
    pub(super) fn should_gather(&mut self, to: usize, len: usize) -> Result<bool> {
        if len > GATHERED || padded(len) + SUBHEAD > self.layout.max_body() {
            return Ok(false);
        }
        let peer = self.peer(to);
        if peer.out.gathering.is_none() && peer.control.held() < BUSY && peer.out.fits_well(len) {
            return Ok(false);
        }
        self.begin_gathering(to, len)
    }

    /// Is there a slot in which this packet can gather with others?
    #[inline(never)]
    fn begin_gathering(&mut self, to: usize, len: usize) -> Result<bool> {
        self.poll()?;
        let most = self.layout.max_body();
        if let Some(gathering) = self.peer(to).out.gathering {
            let room = self.layout.lanes()[gathering.place.lane].body();
            let fits = gathering.len + SUBHEAD + padded(len) <= room;
            let peer = self.peer(to);
            if fits && (peer.control.held() >= BUSY / 2 || !peer.out.fits_well(len)) {
                return Ok(true);
            }
            self.close_gathering(to)?;
        }
        self.hear_tail(to)?;
        let peer = self.peer(to);
        let is_free = peer.control.held() < BUSY && peer.out.fits_well(len);
        if peer.out.gathering.is_some() || is_free {
            return Ok(false);
        }
        let Some(place) = self.find(to, most)? else {
            return Ok(false);
        };
        self.peer(to).out.gathering = Some(Gathering { place, len: 0 });
        self.attention.deferred += 1;
        Ok(true)
    }

    /// Adds a packet to those that are gathered already; there is room.
    pub(super) fn gather(
        &mut self,
        to: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Put {
        let Rdma {
            peers,
            node,
            layout,
            ..
        } = self;
        let Some((peer, mut gathering)) = peers[to]
            .as_mut()
            .and_then(|peer| peer.out.gathering.map(|gathering| (peer, gathering)))
        else {
            return Put::Full;
        };
        let place = gathering.place;
        let start = layout.lanes()[place.lane].start(place.slot);
        let at = start + gathering.len;
        let subhead = layout::subhead(head, len);
        let block = &mut peer.staging().block;
        block.bytes_mut(at, SUBHEAD).copy_from_slice(&subhead);
        fill(block.bytes_mut(at + SUBHEAD, len));
        node.charge(Effort::Send);
        node.charge(Effort::Copy(SUBHEAD + len));
        gathering.len += SUBHEAD + padded(len);
        peer.out.gathering = Some(gathering);
        match std::mem::take(&mut peer.out.lapped) {
            true => Put::AcceptedPollNow,
            false => Put::Accepted,
        }
    }

    /// Posts what has been gathered, unless there is no room for it now.
    pub(super) fn close_gathering(&mut self, to: usize) -> Result<()> {
        let layout = self.layout;
        let peer = self.peer(to);
        if peer.control.held() + 1 >= DEPTH {
            return Ok(());
        }
        let Some(Gathering { place, len }) = peer.out.gathering.take() else {
            return Ok(());
        };
        let lane = &layout.lanes()[place.lane];
        let start = lane.start(place.slot);
        let end = lane.end(place.slot);
        let taken = peer.out.take(place);
        peer.out.lapped |= taken.lap;
        peer.finish_slot(end, [0; 3], Content::Packets, len, taken);
        self.attention.deferred -= 1;
        self.post(to, start..start + len, end, taken)
    }

    /// Sends what waited for the way to become free.
    #[inline(never)]
    pub(super) fn send_deferred(&mut self) -> Result<()> {
        for at in 0..self.ringed.len() {
            let to = self.ringed[at];
            let peer = self.peer(to);
            if peer.out.gathering.is_some() && peer.control.held() < BUSY {
                self.close_gathering(to)?;
            }
        }
        Ok(())
    }
}
