//! Transfers: the buffers that transports may access, by request.
//!
//! Invariant: a buffer is exposed while a transfer needs it and no longer; the access
//! ends before the call that completes the buffer's last request returns to the user.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use channel::Exposure;

use super::copy_out::CopyOut;
use crate::packet::Target;
use crate::request::RequestId;

/// The exposed buffers of this rank's requests.
#[derive(Default)]
pub(super) struct Transfers {
    by_request: HashMap<u32, ExposedBuffer, BuildHasherDefault<Spread>>,
}

/// A hash of a request's number. Handles come from this rank, so no other rank can make them
/// collide.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        /// 2^64 divided by the golden ratio.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(FACTOR);
    }
}

/// An exposed buffer, and the state of its transfer.
pub(super) struct ExposedBuffer {
    /// World rank of the peer.
    pub(super) peer: usize,
    pub(super) exposure: Exposure,
    pub(super) stage: Stage,
    /// The sender's copy of the message, if it is a shared send.
    pub(super) copy: Option<CopyOut>,
}

/// The state of the transfer of a request's exposed buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A message of this rank that the receiver is allowed to read.
    Offered,
    /// A message of this rank that is being written into the receiver's buffer.
    Writing,
    /// A read into this rank's buffer; its end is reported to the sender's request.
    Reading { sender: u32 },
    /// An access to the peer's memory by a device or the kernel, without the peer's process.
    Accessing,
    /// The peer writes to this rank's buffer.
    Expecting,
    /// The peer may write to this rank's buffer, which was announced (RTR).
    Announced {
        /// The number of the notice that ends the write.
        notice: u32,
        /// True if the write has ended.
        written: bool,
        /// True while the announcement is being revoked.
        revoking: bool,
    },
}

/// The outcome of starting an access to memory of a peer.
pub(crate) enum Accessed {
    /// The bytes have been moved already.
    Done,
    /// A device moves the bytes, and completes this request.
    Started(RequestId),
    /// The access is impossible: the buffer is not contiguous, or its device or the system refuses
    /// it.
    Refused,
}

/// A message that this rank sends, and the receive buffer to which it is to be written.
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
            copy: None,
        };
        self.by_request.insert(id.0, transfer);
    }

    /// Adds the buffer of a message that its receiver may read while it is copied.
    pub(super) fn share(&mut self, peer: usize, id: RequestId, exposure: Exposure, copy: CopyOut) {
        let transfer = ExposedBuffer {
            peer,
            exposure,
            stage: Stage::Offered,
            copy: Some(copy),
        };
        self.by_request.insert(id.0, transfer);
    }

    /// The exposure and the copy of a request's shared message.
    pub(super) fn shared_mut(&mut self, id: RequestId) -> Option<(&Exposure, &mut CopyOut)> {
        let transfer = self.by_request.get_mut(&id.0)?;
        Some((&transfer.exposure, transfer.copy.as_mut()?))
    }

    /// The requests of all shared sends.
    pub(super) fn shared(&self) -> impl Iterator<Item = RequestId> {
        let all = self.by_request.iter();
        let shared = all.filter(|(_, transfer)| transfer.copy.is_some());
        shared.map(|(id, _)| RequestId(*id))
    }

    /// True if a message of this rank waits until its receiver reads it.
    pub(super) fn are_offered(&self) -> bool {
        let mut all = self.by_request.values();
        all.any(|transfer| transfer.stage == Stage::Offered)
    }

    pub(super) fn get(&self, id: RequestId) -> Option<&ExposedBuffer> {
        self.by_request.get(&id.0)
    }

    /// The state of a request's transfer with `peer`, if there is one.
    pub(super) fn stage_mut(&mut self, peer: usize, id: RequestId) -> Option<&mut Stage> {
        let transfer = self.by_request.get_mut(&id.0)?;
        (transfer.peer == peer).then_some(&mut transfer.stage)
    }

    /// True if the buffer of a request was announced and no write to it is known to have started.
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

    /// True if a device reads messages of the peer for this rank.
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

    /// Removes the transfer of a request, and returns it.
    pub(super) fn end(&mut self, id: RequestId) -> Option<ExposedBuffer> {
        self.by_request.remove(&id.0)
    }
}
