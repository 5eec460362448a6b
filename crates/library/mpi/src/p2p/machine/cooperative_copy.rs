//! Cooperative copy: sender and receiver copy one long message together; each claims the next
//! pieces from a shared counter.
//!
//! Where cores share a cache the sender pushes its pieces through the ring, which two cores do
//! faster than one can copy, and the receiver copies only while none arrive. Otherwise the sender
//! writes to the receiver's memory.
//!
//! Invariant: a claimed piece is copied by the rank that claimed it; a system that
//! refuses that copy breaks the message.

use std::ops::Range;

use channel::{
    End, Exposed, Exposure, Family, MappedMemory, RemoteKey, Router, Token, Transfer, Transport,
    ZeroCopy,
};
use datatype::Buffer;

use crate::packet::{Contents, Invitation};
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// Bytes that a synchronous copy moves before packets are polled again.
pub(super) const STEP: usize = 128 << 10;
/// Length of the shortest piece, and of every piece that is pushed, in bytes.
const LEAST_PIECE: usize = 32 << 10;
/// Pieces that a sender claims at once to push them.
pub(super) const PUSHED_AT_ONCE: u32 = 8;
/// Polls of a receiver for the next pushed piece before it copies one itself: some tens of
/// microseconds.
const PATIENCE: u32 = 512;

/// The receiver's end of a cooperative copy.
pub(super) struct CooperativeCopy {
    exposure: Exposure,
    wanted: usize,
    generation: u32,
    pieces: u32,
    piece: usize,
    /// Pieces that the receiver claims at once.
    at_once: u32,
    /// Number of pieces that are here, if the sender pushes and only the receiver knows.
    here: Option<u32>,
    /// Polls before the receiver claims pieces.
    patience: u32,
}

/// The state of a cooperative copy.
pub(super) enum Copied {
    All,
    Some,
}

/// The sender's end: an invitation that was accepted.
pub(super) struct Help {
    pub(super) peer: usize,
    pub(super) request: RequestId,
    pub(super) invitation: Invitation,
    /// The message, exposed to this end.
    pub(super) exposure: Option<Exposure>,
    /// Claimed pieces that found no room in the ring.
    pub(super) claimed: Range<u32>,
}

impl Help {
    /// World rank of the receiver.
    pub(super) fn peer(&self) -> usize {
        self.peer
    }
}

impl CooperativeCopy {
    /// Begins the copy of the first `wanted` bytes of a message into `buffer`. `None`: the ranks
    /// share no counter, or the buffer cannot be exposed.
    pub(super) fn begin(
        router: &mut Router,
        peer: usize,
        receive: RequestId,
        buffer: &Buffer,
        wanted: usize,
        push: bool,
    ) -> Result<Option<(CooperativeCopy, Invitation)>> {
        let push = push && LEAST_PIECE <= router.longest_packet(peer);
        // A sender that pushes needs no key.
        let exposure = match push {
            true => router.prepare(peer, buffer, wanted, Exposed::ToWrite)?,
            false => router.expose(peer, buffer, wanted, Exposed::ToWrite, Family::Messages)?,
        };
        let Some(exposure) = exposure else {
            return Ok(None);
        };
        let Some(counter) = router.cooperation(peer, End::Receiver) else {
            router.retract(exposure)?;
            return Ok(None);
        };
        let (piece, at_once) = match push {
            true => (LEAST_PIECE, (STEP / LEAST_PIECE) as u32),
            false => {
                let quarter = (wanted / 4).next_multiple_of(4096);
                (quarter.clamp(LEAST_PIECE, STEP), 1)
            }
        };
        let copy = CooperativeCopy {
            generation: counter.open(),
            wanted,
            pieces: wanted.div_ceil(piece) as u32,
            piece,
            at_once,
            here: push.then_some(0),
            patience: if push { PATIENCE } else { 0 },
            exposure,
        };
        let invitation = Invitation {
            len: wanted as u64,
            generation: copy.generation,
            piece: piece as u32,
            push: push.then_some(receive.0),
            key: copy.exposure.key(),
        };
        Ok(Some((copy, invitation)))
    }

    /// The receiver's buffer, as it was exposed for the copy.
    pub(super) fn into_exposure(self) -> Exposure {
        self.exposure
    }

    /// The receiver still waits for the sender's next piece.
    pub(super) fn waits(&mut self) -> bool {
        let waits = self.patience > 0;
        self.patience -= u32::from(waits);
        waits
    }

    /// Copies the next pieces that nobody has claimed.
    pub(super) fn advance(
        &mut self,
        router: &mut Router,
        peer: usize,
        from: &RemoteKey,
        token: Token,
    ) -> Result<Copied> {
        let counter = router.cooperation(peer, End::Receiver);
        let is_complete = match self.here {
            Some(here) => here == self.pieces,
            None => counter.is_some_and(|counter| counter.is_complete(self.pieces)),
        };
        if is_complete {
            return Ok(Copied::All);
        }
        let claimed =
            counter.and_then(|counter| counter.claim(self.generation, self.pieces, self.at_once));
        let Some(run) = claimed else {
            return Ok(Copied::Some);
        };
        let start = run.start as usize * self.piece;
        let end = self.wanted.min(start + run.len() * self.piece);
        let read = router.read(peer, from, &self.exposure, start..end, token)?;
        if read != Transfer::Done {
            return Err(lost(peer, end - start));
        }
        match (&mut self.here, router.cooperation(peer, End::Receiver)) {
            (Some(here), _) => *here += run.len() as u32,
            (None, Some(counter)) => counter.moved(run.len() as u32),
            (None, None) => {}
        }
        Ok(Copied::Some)
    }

    /// Takes a pushed piece. The error says what is wrong with it.
    pub(super) fn take(
        &mut self,
        at: usize,
        buffer: &Buffer,
        body: Contents,
    ) -> std::result::Result<(), &'static str> {
        if self.here.is_none()
            || at >= self.pieces as usize
            || body.bytes.len() != self.piece.min(self.wanted - at * self.piece)
        {
            return Err("a piece that its message does not have");
        }
        body.unpack(buffer, at * self.piece);
        let here = self.here.map_or(0, |here| here + 1);
        self.here = Some(here);
        self.patience = if here < self.pieces { PATIENCE } else { 0 };
        Ok(())
    }
}

/// A claimed piece cannot be given back, so a system that changes its mind breaks the message.
#[cold]
pub(super) fn lost(peer: usize, bytes: usize) -> Error {
    let detail = format!(
        "{bytes} bytes of a message exchanged with rank {peer} could not be copied between the two processes, though \
         the system allowed it before: set FISHPLATE_SINGLE_COPY=off"
    );
    Error::new(Class::OTHER, detail)
}
