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

use device::Remote;

use super::bulk::{BulkTransfer, Direction, LocalMemory};
use super::qp_link::{Note, PieceId};
use super::rail_set::RailKeys;
use super::registrations::ExposedRange;
use super::{Rdma, broken};
use crate::{Exposure, Head, RemoteKey, Result, Transfer as Started};

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

    /// Starts a transfer between exposed memory of this rank and of a peer, over the rail of the
    /// endpoint.
    pub(super) fn start(
        &mut self,
        peer: usize,
        direction: Direction,
        remote: &RemoteKey,
        local: &Exposure,
        len: usize,
        token: Head,
    ) -> Result<Started> {
        if self.endpoints.get(peer).is_none() {
            return Err(broken(peer, "a transfer without a connection"));
        }
        let endpoint = self.endpoints.of(peer);
        let rail = endpoint.link().rail();
        let Some(rkey) = remote.rail(rail) else {
            return Err(broken(
                peer,
                format!("a key that opens no memory to rail {rail}"),
            ));
        };
        let range = (local.key.address, local.len, local.exposed);
        let keys = self.registrations.keys(range).on(rail);
        let transfer = BulkTransfer {
            peer,
            rail,
            direction,
            local: LocalMemory {
                address: local.key.address,
                lkey: keys.lkey,
            },
            remote: Remote {
                address: remote.address,
                rkey,
            },
            len,
            token,
        };
        self.bulk.start(&mut endpoint.transfers, transfer);
        self.post_transfers(peer)?;
        Ok(Started::Started)
    }

    /// Posts the pieces of a peer's transfers for which its queue pair has room.
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
        let (link, queue) = endpoint.bulk_parts();
        let longest = rails[link.rail()].longest();
        while link.bulk.has_room()
            && let Some(piece) = bulk.next_piece(queue, longest)
        {
            debug_assert_eq!(piece.id.rail, link.rail());
            let note = Note::Piece(piece.id);
            let local = [piece.local];
            let operation = piece.operation;
            link.bulk
                .post(&mut **node, operation, &local, false, piece.id.last, note)?;
            bulk.posted(queue, &piece);
        }
        Ok(())
    }

    /// A piece of a transfer is complete.
    pub(super) fn transferred(&mut self, peer: usize, piece: PieceId) -> Result<()> {
        self.bulk.completed(peer, piece);
        self.post_transfers(peer)
    }

    /// Expects a notice of a peer's. Returns its number. None: as many are expected as there may be
    /// receives for.
    pub(super) fn expect_notice(&mut self, peer: usize, token: Head) -> Result<Option<u32>> {
        let rail = match self.endpoints.get(peer) {
            Some(endpoint) => endpoint.link().rail(),
            None => self.rail_for(peer),
        };
        match self.rails[rail].reserve_notice(&mut *self.node)? {
            true => Ok(Some(self.bulk.expect(rail, peer, token))),
            false => Ok(None),
        }
    }

    /// Stops expecting a notice.
    pub(super) fn forget_notice(&mut self, notice: u32) {
        if let Some(rail) = self.bulk.forget(notice) {
            self.rails[rail].release_notice();
        }
    }

    /// A peer's write with a notice is whole.
    pub(super) fn notice(
        &mut self,
        peer: usize,
        rail: usize,
        immediate: Option<u32>,
    ) -> Result<()> {
        self.rails[rail].post_notice_receive(&mut *self.node)?;
        match immediate {
            Some(notice) if self.bulk.notice(rail, peer, notice) => {
                self.rails[rail].release_notice();
                Ok(())
            }
            Some(notice) => {
                let what = format!("it has written with notice {notice}, which it was not given");
                Err(broken(peer, what))
            }
            None => Err(broken(
                peer,
                "it has written with a notice without a number",
            )),
        }
    }
}
