//! Zero-copy transfers on the rails: exposing memory, posting the pieces of the bulk engine, and
//! taking notices.
//!
//! Transfers use a queue pair of their own, so that a short packet never waits behind one. A write
//! may end with a notice: its completion at the peer, which tells that every byte is there.
//!
//! Invariant: a receive is posted for every notice that is expected. A number is given
//! to a peer only after a receive is reserved for it, it covers one write, and the receive that
//! this write uses up is posted again before the number is forgotten. So no notice waits for this
//! rank to poll.

use std::ops::Range;

use device::Node;

use super::bulk::{BulkEngine, Noticed, Reserved, TransferQueue};
use super::link::Link;
use super::notice::NoticeWord;
use super::qp_link::{Note, PieceId};
use super::rail::Rail;
use super::rail_set::{RailKeys, RailSet};
use super::registrations::ExposedRange;
use super::schedule::{Assignment, Schedule};
use super::transfer::{BulkTransfer, Direction, LocalMemory, RailPair, Unfinished};
use super::{Attention, QueuePairs, Rdma};
use crate::{Error, Exposure, Head, RemoteKey, Result, Transfer as Started};

impl Rdma {
    /// Registers memory on every rail in use, unless it is registered.
    ///
    /// The caller keeps the memory until it has called `retract_range` as often.
    pub(super) fn expose_range(&mut self, range: ExposedRange) -> Result<RailKeys> {
        self.registrations.expose(&mut *self.node, range)
    }

    /// Ends one use of exposed memory.
    pub(super) fn retract_range(&mut self, range: ExposedRange) -> Result<()> {
        self.registrations.retract(&mut *self.node, range)
    }

    /// Starts a transfer between exposed memory of this rank and of a peer.
    pub(super) fn start(
        &mut self,
        peer: usize,
        direction: Direction,
        remote: &RemoteKey,
        local: &Exposure,
        at: Range<usize>,
        token: Head,
    ) -> Result<Started> {
        local.check(peer, &at)?;
        let part = remote.part_for(peer, &at)?;
        if self.endpoints.get(peer).is_none() {
            return Err(Error::broken(peer, "a transfer without a connection"));
        }
        let range = (local.key.address, local.len, local.exposed);
        let keys = *self.registrations.keys(range);
        let endpoint = self.endpoints.of(peer);
        let closed = |link: &&Link| remote.rail(link.peer_rail()).is_none();
        if let Some(link) = endpoint.links().iter().find(closed) {
            let rail = link.peer_rail();
            let what = format!("a key that opens no memory to its rail {rail}");
            return Err(Error::broken(peer, what));
        }
        let transfer = BulkTransfer {
            peer,
            direction,
            local: LocalMemory {
                address: local.key.address + at.start as u64,
                keys,
            },
            remote: part,
            len: at.len() as u64,
            token,
        };
        self.bulk.start(&mut endpoint.transfers, transfer);
        self.post_transfers(peer)?;
        Ok(Started::Started)
    }

    /// Posts the pieces of a peer's transfers for which its queue pairs have room.
    pub(super) fn post_transfers(&mut self, peer: usize) -> Result<()> {
        let Rdma {
            endpoints,
            node,
            bulk,
            rails,
            ..
        } = self;
        let endpoint = endpoints.of(peer);
        if !endpoint.connection.is_ready() {
            return Ok(());
        }
        let (links, schedule, queue) = endpoint.bulk_parts();
        let queue: &mut TransferQueue = queue;
        if queue.first().is_none() {
            return Ok(());
        }
        let mut posting = Posting {
            now: schedule.as_ref().map_or(0, |_| node.now()),
            node: &mut **node,
            rails,
            links,
            schedule,
        };
        while let Some(number) = queue.first() {
            posting.post(bulk, number)?;
            if !bulk.unfinished(number).is_posted() {
                break;
            }
            queue.advance();
        }
        Ok(())
    }

    /// A piece of a transfer that link `link` has carried is complete.
    pub(super) fn transferred(&mut self, peer: usize, link: usize, piece: &PieceId) -> Result<()> {
        self.bulk.completed(peer, piece);
        let endpoint = self.endpoints.of(peer);
        if let Some(schedule) = &mut endpoint.schedule {
            let Attention {
                polled_at, late, ..
            } = self.attention;
            schedule.completed(link, piece.len.into(), polled_at, late);
        }
        self.post_transfers(peer)
    }

    /// Expects a notice of a peer's. Returns its number. None: as many are expected as there may be
    /// receives for.
    pub(super) fn expect_notice(&mut self, peer: usize, token: Head) -> Result<Option<u32>> {
        let is_shared = self.config.rails.queue_pairs == QueuePairs::Shared;
        let reserved = match self.endpoints.get(peer) {
            // The queue pair of the notice is known once the peer's hello is.
            Some(endpoint) if is_shared && !endpoint.connection.is_ready() => None,
            None if is_shared => None,
            Some(endpoint) if endpoint.notices_in_control() => {
                let endpoint = self.endpoints.of(peer);
                endpoint.reserve_shared_notices(&mut *self.node)?
            }
            Some(endpoint) => {
                let rails = endpoint.connected_rails();
                self.reserve_notices(rails)?
            }
            None => self.reserve_notices(self.in_use)?,
        };
        Ok(reserved.map(|reserved| self.bulk.expect(peer, reserved, token)))
    }

    /// Reserves a receive for a notice on each of `rails`. None: one of them has none.
    fn reserve_notices(&mut self, rails: RailSet) -> Result<Option<Reserved>> {
        let mut reserved = RailSet::default();
        for rail in rails.iter() {
            if !self.rails[rail].reserve_notice(&mut *self.node)? {
                for rail in reserved.iter() {
                    self.rails[rail].release_notice();
                }
                return Ok(None);
            }
            reserved = reserved.with(rail);
        }
        Ok(Some(Reserved::Rails(reserved)))
    }

    /// Frees the receives of a notice of `peer`.
    fn release_notices(&mut self, peer: usize, reserved: Reserved) {
        match reserved {
            Reserved::Rails(rails) => {
                for rail in rails.iter() {
                    self.rails[rail].release_notice();
                }
            }
            Reserved::Links(links) => {
                let endpoint = self.endpoints.of(peer);
                for link in links.iter() {
                    endpoint.links_mut()[link].release_shared_notice();
                }
            }
        }
    }

    fn release_all(&mut self, peer: usize, first: Reserved, again: Vec<Reserved>) {
        self.release_notices(peer, first);
        for reserved in again {
            self.release_notices(peer, reserved);
        }
    }

    /// Reserves a receive on each live link to `peer` for every notice that the peer owes: a link
    /// fails, and other links may carry its shares.
    pub(super) fn reserve_notices_again(&mut self, peer: usize) -> Result<()> {
        let expected = self.bulk.expected_of(peer);
        for (number, _) in expected {
            let endpoint = self.endpoints.of(peer);
            let is_shared = endpoint.notices_in_control();
            let reserved = match is_shared {
                true => endpoint.reserve_shared_notices(&mut *self.node)?,
                false => {
                    let rails = endpoint.connected_rails();
                    self.reserve_notices(rails)?
                }
            };
            // Without a free receive the peer's device waits and tries again: nothing is lost.
            if let Some(reserved) = reserved {
                self.bulk.reserved_again(number, reserved);
            }
        }
        Ok(())
    }

    /// Reserves a receive on link `index` to `peer`, which the peer may use again, for every notice
    /// that has none there.
    pub(super) fn reserve_notices_on(&mut self, peer: usize, index: usize) -> Result<()> {
        for (number, _) in self.bulk.expected_of(peer) {
            let endpoint = self.endpoints.of(peer);
            let is_shared = endpoint.notices_in_control();
            let link = &mut endpoint.links_mut()[index];
            let rail = link.rail();
            let wanted = match is_shared {
                true => Reserved::Links(RailSet::only(index)),
                false => Reserved::Rails(RailSet::only(rail)),
            };
            if self.bulk.has_reserved(number, wanted) {
                continue;
            }
            let is_reserved = match is_shared {
                true => link.reserve_shared_notice(&mut *self.node)?,
                false => self.rails[rail].reserve_notice(&mut *self.node)?,
            };
            if is_reserved {
                self.bulk.reserved_again(number, wanted);
            }
        }
        Ok(())
    }

    /// Stops expecting a notice.
    pub(super) fn forget_notice(&mut self, notice: u32) {
        if let Some((peer, reserved, again)) = self.bulk.forget(notice) {
            self.release_all(peer, reserved, again);
        }
    }

    /// A peer's write with a notice is whole, on `rail`.
    pub(super) fn notice(
        &mut self,
        peer: usize,
        rail: usize,
        immediate: Option<u32>,
    ) -> Result<()> {
        self.rails[rail].post_notice_receive(&mut *self.node)?;
        self.noticed(peer, immediate)
    }

    /// A notice of a peer has arrived. The receive that it used up is posted again.
    pub(super) fn noticed(&mut self, peer: usize, immediate: Option<u32>) -> Result<()> {
        let Some(word) = immediate.map(NoticeWord::decode) else {
            return Err(Error::broken(
                peer,
                "it has written with a notice without a number",
            ));
        };
        match self.bulk.notice(peer, word) {
            Noticed::Part => (),
            Noticed::Whole(reserved, again) => self.release_all(peer, reserved, again),
            Noticed::Unexpected => {
                let what = format!("it has written with {word:?}, which it was not given");
                return Err(Error::broken(peer, what));
            }
        }
        Ok(())
    }
}

/// The means to post pieces of transfers to one peer.
struct Posting<'a> {
    node: &'a mut dyn Node,
    rails: &'a [Rail],
    links: &'a mut [Link],
    /// None: there is one link.
    schedule: Option<&'a mut Schedule>,
    now: u64,
}

impl Posting<'_> {
    /// Posts as much as there is room for of a transfer.
    fn post(&mut self, bulk: &mut BulkEngine, number: usize) -> Result<()> {
        let transfer = bulk.unfinished(number);
        loop {
            while transfer.is_undecided() && self.assign(transfer) {}
            let mut posted = false;
            for share in 0..self.links.len() {
                posted |= self.post_share(transfer, share)?;
            }
            if !posted || transfer.is_posted() {
                return Ok(());
            }
        }
    }

    /// Assigns further bytes. False: no more can be assigned now.
    fn assign(&mut self, transfer: &mut Unfinished) -> bool {
        let left = transfer.unassigned();
        let Some(schedule) = &mut self.schedule else {
            transfer.assign(0, left);
            transfer.decide(0);
            return false;
        };
        if left == 0 {
            transfer.decide(schedule.home());
            return false;
        }
        match schedule.assign(left, self.now) {
            Assignment::Wait => false,
            Assignment::Piece { link, len } => {
                if transfer.has_share(link) {
                    return false;
                }
                transfer.assign(link, len);
                // The link takes the piece before another is assigned.
                false
            }
            Assignment::Final(shares) => {
                for (link, bytes) in shares.into_iter().enumerate() {
                    if bytes > 0 && transfer.has_share(link) {
                        return false;
                    }
                }
                for (link, bytes) in shares.into_iter().enumerate() {
                    if bytes > 0 {
                        transfer.assign(link, bytes);
                    }
                }
                true
            }
        }
    }

    /// Posts the pieces of a share for which its link has room. True: some were posted.
    fn post_share(&mut self, transfer: &mut Unfinished, share: usize) -> Result<bool> {
        let carrier = transfer.carrier(share);
        let link = &mut self.links[carrier];
        if !link.life.is_live() {
            return Ok(false);
        }
        let rails = RailPair {
            ours: link.rail(),
            theirs: link.peer_rail(),
        };
        let longest = self.rails[rails.ours].longest() as u64;
        let mut posted = false;
        while link.transfers().has_room() {
            let left = transfer.left_of(share);
            let room = match &self.schedule {
                None => longest,
                Some(schedule) => schedule.piece(carrier, left).min(longest),
            };
            if room == 0 && left > 0 {
                break;
            }
            let Some(piece) = transfer.next_piece(share, rails, room) else {
                break;
            };
            let (note, local) = (Note::Piece(piece.id), [piece.local]);
            let signaled = piece.id.last || self.schedule.is_some();
            let queue_pair = link.transfers();
            let reported =
                queue_pair.post(self.node, piece.operation, &local, false, signaled, note)?;
            transfer.posted(&piece.id, reported);
            if let Some(schedule) = &mut self.schedule {
                schedule.posted(carrier, piece.id.len.into(), self.now);
            }
            posted = true;
        }
        Ok(posted)
    }
}
