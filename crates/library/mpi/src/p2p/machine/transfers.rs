//! Transfers: the buffers that transports may access, by request.
//!
//! Invariant: a buffer is exposed while a transfer needs it and no longer; the access
//! ends before the call that completes the buffer's last request returns to the user.

use std::collections::HashMap;

use channel::Exposure;

use crate::packet::Target;
use crate::request::RequestId;

/// The exposed buffers of this rank's requests.
#[derive(Default)]
pub(super) struct Transfers {
    by_request: HashMap<u32, ExposedBuffer>,
}

/// An exposed buffer.
pub(super) struct ExposedBuffer {
    /// World rank of the other end.
    pub(super) peer: usize,
    pub(super) exposure: Exposure,
    pub(super) stage: Stage,
}

/// The state of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A message of this rank's that the receiver may read.
    Offered,
    /// A message of this rank's on its way into the receiver's buffer.
    Writing,
    /// A read into this rank's buffer; its end is reported to the sender's request.
    Reading { sender: u32 },
    /// An access to memory of the peer, in which the peer has no part.
    Accessing,
    /// The peer writes to this rank's buffer.
    Expecting,
    /// The peer may write to this rank's buffer, which was announced (RTR).
    Announced {
        /// The number that ends the write.
        notice: u32,
        /// The write has ended.
        written: bool,
        /// The announcement is being revoked.
        revoking: bool,
    },
}

/// The answer to an access to memory of a peer.
pub(crate) enum Accessed {
    /// The bytes have been moved.
    Done,
    /// A device moves the bytes, and completes this request.
    Started(RequestId),
    /// The buffer cannot be used for an access: it is not one run, or its device or the system
    /// refuses it.
    Refused,
}

/// A message of this rank's, and the receiver's buffer for it.
pub(super) struct WriteBack {
    pub(super) peer: usize,
    pub(super) request: RequestId,
    pub(super) target: Target,
}

impl Transfers {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_request.is_empty()
    }

    pub(super) fn begin(&mut self, peer: usize, id: RequestId, exposure: Exposure, stage: Stage) {
        let transfer = ExposedBuffer {
            peer,
            exposure,
            stage,
        };
        self.by_request.insert(id.0, transfer);
    }

    pub(super) fn get(&self, id: RequestId) -> Option<&ExposedBuffer> {
        self.by_request.get(&id.0)
    }

    /// The state of a request's transfer with `peer`, if there is one.
    pub(super) fn stage_mut(&mut self, peer: usize, id: RequestId) -> Option<&mut Stage> {
        let transfer = self.by_request.get_mut(&id.0)?;
        (transfer.peer == peer).then_some(&mut transfer.stage)
    }

    /// The buffer of a request was announced, and no write to it has started.
    pub(super) fn is_announced(&self, id: RequestId) -> bool {
        let stage = self.get(id).map(|transfer| &transfer.stage);
        matches!(stage, Some(Stage::Announced { .. }))
    }

    /// True if the buffer of a request was announced and the receive is not being cancelled: the
    /// sender will write to the buffer, or a message on its usual path will match the receive.
    pub(super) fn awaits_write(&self, id: RequestId) -> bool {
        let stage = self.get(id).map(|transfer| &transfer.stage);
        matches!(
            stage,
            Some(Stage::Announced {
                revoking: false,
                ..
            })
        )
    }

    /// This rank reads messages of a peer's.
    pub(super) fn reads_from(&self, peer: usize) -> bool {
        let reads = |of: &ExposedBuffer| matches!(of.stage, Stage::Reading { .. });
        (self.by_request.values()).any(|transfer| transfer.peer == peer && reads(transfer))
    }

    /// The requests with a transfer to or from a peer.
    pub(super) fn of_peer(&self, peer: usize) -> Vec<RequestId> {
        let all = self.by_request.iter();
        let its = all.filter(|(_, transfer)| transfer.peer == peer);
        let mut ids: Vec<RequestId> = its.map(|(id, _)| RequestId(*id)).collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids
    }

    /// Takes the transfer out.
    pub(super) fn end(&mut self, id: RequestId) -> Option<ExposedBuffer> {
        self.by_request.remove(&id.0)
    }
}
