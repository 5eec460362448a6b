//! Zero-copy transfers on the rails: starting them, posting their pieces, and handling notices.
//!
//! Transfers use a queue pair of their own, so that a short packet never waits behind one. A write
//! may end with a notice: its completion at the peer, which shows that every byte has arrived.
//!
//! Invariant: a receive is posted for every notice that is expected. A number is given to a peer
//! only after a receive is reserved for it, it covers one write, and the receive that this write
//! consumes is posted again before the number is forgotten. So no notice waits for this rank to
//! poll.

use std::ops::Range;

use device::Node;

use super::bulk::{BulkEngine, Noticed, Reserved, TransferQueue};
use super::endpoint::Endpoint;
use super::endpoints::Endpoints;
use super::flow::Flow;
use super::link::Link;
use super::local::Local;
use super::notice::NoticeWord;
use super::qp_link::Note;
use super::rail::Rail;
use super::rail_set::RailSet;
use super::registrations::Registrations;
use super::schedule::{Assignment, Schedules};
use super::transfer::{BulkTransfer, Direction, LocalMemory, RailPair, Unfinished};
use crate::{Error, Exposure, RemoteKey, Result, Token, Transfer as Started};
use knobs::QueuePairs;

/// The zero-copy transfers of a rank over its devices.
pub(super) struct Transfers {
    pub bulk: BulkEngine,
    pub registrations: Registrations,
}

/// A request of the caller for a transfer.
pub(super) struct Request<'a> {
    pub peer: usize,
    pub direction: Direction,
    pub remote: &'a RemoteKey,
    pub local: &'a Exposure,
    pub at: Range<usize>,
    pub token: Token,
}

impl Transfers {
    /// Starts a transfer between exposed memory of this rank and of a peer.
    pub(super) fn start(
        &mut self,
        local: &mut Local,
        endpoints: &mut Endpoints,
        request: Request,
    ) -> Result<Started> {
        let Request { peer, at, .. } = request;
        request.local.check(peer, &at)?;
        let part = request.remote.part_for(peer, &at)?;
        if endpoints.get(peer).is_none() {
            return Err(Error::broken(peer, "a transfer without a connection"));
        }
        let own = &request.local;
        let range = (own.key.address, own.len, own.exposed);
        let keys = *self.registrations.keys(range);
        let endpoint = endpoints.of(peer);
        let closed = |link: &&Link| request.remote.rail(link.peer_rail()).is_none();
        if let Some(link) = endpoint.links().iter().find(closed) {
            let rail = link.peer_rail();
            let what = format!("a key that opens no memory to its rail {rail}");
            return Err(Error::broken(peer, what));
        }
        let transfer = BulkTransfer {
            peer,
            direction: request.direction,
            local: LocalMemory {
                address: own.key.address + at.start as u64,
                keys,
            },
            remote: part,
            len: at.len() as u64,
            token: request.token,
        };
        let queue = endpoint.queue_of(transfer.direction.flow());
        self.bulk.start(&mut endpoint.transfers, queue, transfer);
        self.post(local, endpoint)?;
        Ok(Started::Started)
    }

    /// Posts the pieces of a peer's transfers for which its queue pairs have room.
    pub(super) fn post(&mut self, local: &mut Local, endpoint: &mut Endpoint) -> Result<()> {
        if !endpoint.connection.is_ready() {
            return Ok(());
        }
        let (links, schedules, queue) = endpoint.bulk_parts();
        let queue: &mut TransferQueue = queue;
        if queue.is_empty() {
            return Ok(());
        }
        let mut posting = Posting {
            now: schedules.as_ref().map_or(0, |_| local.node.now()),
            node: &mut *local.node,
            rails: &local.rails,
            links,
            schedules,
        };
        for of in Flow::ALL {
            while let Some(number) = queue.first(of) {
                posting.post(&mut self.bulk, number)?;
                if !self.bulk.unfinished(number).is_posted() {
                    break;
                }
                queue.advance(of);
            }
        }
        Ok(())
    }

    /// Expects a notice of `peer`. Returns its number. `None`: no receive is left for one more
    /// notice.
    pub(super) fn expect_notice(
        &mut self,
        local: &mut Local,
        endpoints: &mut Endpoints,
        (peer, token): (usize, Token),
    ) -> Result<Option<u32>> {
        let is_shared = local.config.rails.queue_pairs == QueuePairs::Shared;
        let reserved = match endpoints.get(peer) {
            // The queue pair of the notice is known once the peer's hello is.
            Some(endpoint) if is_shared && !endpoint.connection.is_ready() => None,
            None if is_shared => None,
            Some(_) => reserve(local, endpoints.of(peer))?,
            None => local.reserve_notices(local.in_use)?,
        };
        Ok(reserved.map(|reserved| self.bulk.expect(peer, reserved, token)))
    }

    /// Reserves a receive on each connected link to `peer` for every notice that this rank expects
    /// of it: a link fails, and other links may carry its shares.
    pub(super) fn reserve_notices_again(
        &mut self,
        local: &mut Local,
        endpoint: &mut Endpoint,
        peer: usize,
    ) -> Result<()> {
        let expected = self.bulk.expected_of(peer);
        for (number, _) in expected {
            // Without a free receive the peer's device waits and tries again: nothing is lost.
            if let Some(reserved) = reserve(local, endpoint)? {
                self.bulk.reserved_again(number, reserved);
            }
        }
        Ok(())
    }

    /// Reserves a receive on link `index` to `peer`, which the peer may use again, for every notice
    /// that has none on it.
    pub(super) fn reserve_notices_on(
        &mut self,
        local: &mut Local,
        endpoint: &mut Endpoint,
        (peer, index): (usize, usize),
    ) -> Result<()> {
        let is_shared = endpoint.notices_in_control();
        let link = &mut endpoint.links_mut()[index];
        let rail = link.rail();
        for (number, _) in self.bulk.expected_of(peer) {
            let wanted = match is_shared {
                true => Reserved::Links(RailSet::only(index)),
                false => Reserved::Rails(RailSet::only(rail)),
            };
            if self.bulk.has_reserved(number, wanted) {
                continue;
            }
            let is_reserved = match is_shared {
                true => link.reserve_shared_notice(&mut *local.node)?,
                false => local.rails[rail].reserve_notice(&mut *local.node)?,
            };
            if is_reserved {
                self.bulk.reserved_again(number, wanted);
            }
        }
        Ok(())
    }

    /// Stops expecting a notice.
    pub(super) fn forget_notice(
        &mut self,
        local: &mut Local,
        endpoints: &mut Endpoints,
        notice: u32,
    ) {
        if let Some((peer, reserved, again)) = self.bulk.forget(notice) {
            // A notice of a peer without a connection has its receives on rails.
            release_all(local, endpoints.get_mut(peer), reserved, again);
        }
    }

    /// Handles a notice of a peer. The receive that it consumed has been posted again.
    pub(super) fn noticed(
        &mut self,
        local: &mut Local,
        endpoint: &mut Endpoint,
        (peer, immediate): (usize, Option<u32>),
    ) -> Result<()> {
        let Some(word) = immediate.map(NoticeWord::decode) else {
            return Err(Error::broken(
                peer,
                "it has written with a notice without a number",
            ));
        };
        match self.bulk.notice(peer, word) {
            Noticed::Part => (),
            Noticed::Whole(reserved, again) => {
                release_all(local, Some(endpoint), reserved, again);
            }
            Noticed::Unexpected => {
                let what = format!("it has written with {word:?}, which it was not given");
                return Err(Error::broken(peer, what));
            }
        }
        Ok(())
    }
}

/// Reserves a receive for a notice on each link that the peer may use. `None`: some link has no
/// receive left.
fn reserve(local: &mut Local, endpoint: &mut Endpoint) -> Result<Option<Reserved>> {
    match endpoint.notices_in_control() {
        true => endpoint.reserve_shared_notices(&mut *local.node),
        false => local.reserve_notices(endpoint.connected_rails()),
    }
}

/// Frees the receives of a notice. Those on links belong to `endpoint`.
fn release_all(
    local: &mut Local,
    mut endpoint: Option<&mut Endpoint>,
    first: Reserved,
    again: Vec<Reserved>,
) {
    for reserved in [first].into_iter().chain(again) {
        match reserved {
            Reserved::Rails(rails) => local.release_notices(rails),
            Reserved::Links(links) => {
                let endpoint = endpoint.as_deref_mut();
                let endpoint = endpoint.expect("links are an endpoint's");
                for link in links.iter() {
                    endpoint.links_mut()[link].release_shared_notice();
                }
            }
        }
    }
}

/// The links and schedules of one peer, by which pieces of transfers are posted.
struct Posting<'a> {
    node: &'a mut dyn Node,
    rails: &'a [Rail],
    links: &'a mut [Link],
    /// The schedules of the endpoint. `None`: there is one link.
    schedules: Option<&'a mut Schedules>,
    now: u64,
}

impl Posting<'_> {
    /// Posts as many pieces of a transfer as there is room for.
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

    /// Assigns further bytes of a transfer to links. False: no more can be assigned now.
    fn assign(&mut self, transfer: &mut Unfinished) -> bool {
        let left = transfer.unassigned();
        let Some(schedules) = &mut self.schedules else {
            transfer.assign(0, left);
            transfer.decide(0);
            return false;
        };
        let schedule = schedules.of(transfer.flow());
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
        let queue_pair = link.transfers(transfer.flow());
        let mut schedule = (self.schedules.as_mut()).map(|all| all.of(transfer.flow()));
        let mut posted = false;
        while queue_pair.has_room() {
            let left = transfer.left_of(share);
            let room = match &schedule {
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
            let signaled = piece.id.last || schedule.is_some();
            let written = transfer.unnoticed_write();
            let inline = written.is_some_and(|len| queue_pair.takes_inline(len));
            let reported =
                queue_pair.post(self.node, piece.operation, &local, inline, signaled, note)?;
            transfer.posted(&piece.id, reported);
            if let Some(schedule) = &mut schedule {
                schedule.posted(carrier, piece.id.len.into(), self.now);
            }
            posted = true;
        }
        Ok(posted)
    }
}
