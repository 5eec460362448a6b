//! Long messages over RDMA: the device moves them between the users' buffers, and neither rank copies.
//!
//! By *read*, the sender's offer says where the bytes lie; the receiver reads them and tells the sender that it has them.
//! By *write*, the receiver answers the offer with where its buffer lies; the sender writes, and with the last byte the
//! receiver's device tells of it. Where a buffer is not one run of memory, or cannot be registered, the message goes in
//! packets. For a receive that is posted before its message the receiver may say so beforehand (`ahead`).
//!
//! What must always hold: a buffer is registered while a transfer needs it and no longer: access to it is taken back before
//! the call that completes the last request for it returns to the user.

use channel::rdma::{Design, Rdma};
use channel::{Channels, Exposed, Exposure, Fault, OneSided, Place};
use datatype::Buffer;
use knobs::Rendezvous;

use super::Messages;
use super::receive::received;
use super::rendezvous::{Chore, Fetch};
use crate::packet::{Envelope, Kind, Offer, Target};
use crate::request::RequestId;
use crate::{Result, Status};

/// A buffer that the device has access to, by its request.
pub(super) struct Transfer {
    pub peer: usize,
    exposure: Exposure,
    pub stage: Stage,
}

pub(super) enum Stage {
    /// Ours, for the peer to read.
    Offered,
    /// Ours, on its way to the peer.
    Writing,
    /// A read is under way; the sender's request hears of its end.
    Reading { sender: u32 },
    /// The peer writes to it.
    Expecting,
    /// The peer may write to it (see `ahead`): the number by which it tells, whether it has told, whether it has been asked
    /// not to.
    Ahead {
        notice: u32,
        written: bool,
        revoking: bool,
    },
}

/// Where the message of a request of ours is to be written.
pub(super) struct Write {
    pub peer: usize,
    pub request: RequestId,
    pub target: Target,
}

impl Messages {
    /// The offer of a message: how long it is, and where the peer can fetch it.
    pub(super) fn offer(
        &mut self,
        channels: &mut Channels,
        peer: usize,
        request: RequestId,
        buffer: &Buffer,
    ) -> Result<Offer> {
        let mut offer = Offer::of(buffer);
        offer.near = buffer.len() >= self.limits.together && channels.offers_near(peer);
        if let Some(rdma) = channels.rdma_to(peer)
            && moves(rdma)
            && self.limits.rendezvous != Rendezvous::Write
        {
            if let Some(transfer) = self.transfers.get(&request.0) {
                offer.key = Some(transfer.exposure.place().key);
            } else if let Some(exposure) = expose(rdma, buffer, buffer.len(), Exposed::ToRead)? {
                offer.key = Some(exposure.place().key);
                self.begin_transfer(peer, request, exposure, Stage::Offered);
            }
        }
        Ok(offer)
    }

    /// Fetches an offered message by RDMA, or says that it cannot be.
    pub(super) fn fetch_by_rdma(
        &mut self,
        channels: &mut Channels,
        fetch: &Fetch,
        buffer: &Buffer,
        wanted: usize,
    ) -> Result<bool> {
        let (peer, id) = (fetch.peer, fetch.receive);
        let Some(rdma) = channels.rdma_to(peer).filter(|rdma| moves(rdma)) else {
            return Ok(false);
        };
        if fetch.offer.address == 0 {
            return Ok(false);
        }
        let Some(exposure) = expose(rdma, buffer, wanted, Exposed::ToWrite)? else {
            return Ok(false);
        };
        let moved = Envelope::about(Kind::Moved, id.0).encode();
        match fetch.offer.key {
            Some(key) => {
                let from = Place {
                    address: fetch.offer.address,
                    key,
                };
                rdma.start_read(peer, from, &exposure, wanted, moved)?;
                let sender = fetch.sender;
                self.begin_transfer(peer, id, exposure, Stage::Reading { sender });
            }
            None => {
                let Some(notice) = rdma.expect(peer, moved)? else {
                    rdma.retract(exposure)?;
                    return Ok(false);
                };
                let target = Target {
                    place: exposure.place(),
                    len: wanted as u64,
                    notice,
                    receive: id.0,
                };
                self.begin_transfer(peer, id, exposure, Stage::Expecting);
                let envelope = Envelope::about(Kind::ClearToWrite, fetch.sender);
                self.queue_short(peer, envelope, &target.encode());
            }
        }
        Ok(true)
    }

    /// Writes a message of ours to where its receiver wants it.
    pub(super) fn write_by_rdma(&mut self, channels: &mut Channels, write: &Write) -> Result<()> {
        let Write {
            peer,
            request,
            target,
        } = *write;
        let len = target.len as usize;
        let (Some(send), Some(rdma)) = (self.requests.send_mut(request), channels.rdma_to(peer))
        else {
            return Ok(());
        };
        let buffer = send.buffer.clone();
        match expose(rdma, &buffer, len, Exposed::ToRead)? {
            Some(exposure) => {
                let moved = Envelope::about(Kind::Moved, request.0).encode();
                rdma.start_write(peer, &exposure, target.place, len, moved, target.notice)?;
                self.begin_transfer(peer, request, exposure, Stage::Writing);
            }
            None => self.queue_stream(peer, request, target.receive),
        }
        Ok(())
    }

    /// A transfer of this request's is done. False: there is none with this peer.
    pub(super) fn moved(&mut self, peer: usize, id: RequestId) -> bool {
        match self.transfers.remove(&id.0) {
            Some(transfer) if transfer.peer == peer => {
                if let Stage::Reading { sender } = transfer.stage {
                    self.queue_short(peer, Envelope::about(Kind::Finished, sender), &[]);
                }
                self.chores.push_back(Chore::Retract(transfer.exposure));
            }
            _ => return false,
        }
        let status = match self.requests.receive_mut(id) {
            Some(receive) => received(&receive.buffer, receive.key, receive.announced),
            None => Status::EMPTY,
        };
        self.requests.complete(id, status);
        true
    }

    /// This request is complete, or no longer goes by RDMA: its buffer is its owner's again.
    pub(super) fn release(&mut self, id: RequestId) {
        if !self.transfers.is_empty()
            && let Some(transfer) = self.transfers.remove(&id.0)
        {
            if let Stage::Ahead { notice, .. } = transfer.stage {
                self.close_target(notice);
            }
            self.chores.push_back(Chore::Retract(transfer.exposure));
        }
    }

    pub(super) fn begin_transfer(
        &mut self,
        peer: usize,
        id: RequestId,
        exposure: Exposure,
        stage: Stage,
    ) {
        let transfer = Transfer {
            peer,
            exposure,
            stage,
        };
        self.transfers.insert(id.0, transfer);
    }
}

/// Do long messages go by RDMA at all?
pub(super) fn moves(rdma: &Rdma) -> bool {
    rdma.config().design == Design::ZeroCopy
}

/// Registers the beginning of a buffer, if it is one run of memory and the device takes it.
pub(super) fn expose(
    rdma: &mut Rdma,
    buffer: &Buffer,
    len: usize,
    exposed: Exposed,
) -> Result<Option<Exposure>> {
    let Some((address, whole)) = buffer.as_dense() else {
        return Ok(None);
    };
    if len == 0 || len > whole {
        return Ok(None);
    }
    match rdma.expose(address as u64, len, exposed) {
        Ok(exposure) => Ok(Some(exposure)),
        // What cannot be registered (too much locked memory, a mapped file) can be copied.
        Err(error) if matches!(error.fault(), Fault::Device(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
