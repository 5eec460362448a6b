//! Cooperative copy: sender and receiver copy one long message together; each claims the next
//! pieces from a shared counter.
//!
//! Where cores share a cache the sender pushes its pieces through the ring, which two cores do
//! faster than one can copy, and the receiver copies only while none arrive. Otherwise the sender
//! writes to the receiver's memory.
//!
//! A rank to which the system refuses the copy of a piece cannot put the piece back into the
//! counter. The sender returns its piece to the receiver by a packet. The receiver gives up: it
//! claims all pieces that are left, waits for those that the sender has claimed, and asks for the
//! message in packets.
//!
//! Invariants: each piece is claimed once, and copied, returned or given up by the rank that
//! claimed it; packets are asked for once the sender copies no further piece.

use std::ops::Range;

use channel::{
    End, Exposed, Exposure, Family, MappedMemory, PieceCounter, RemoteKey, Router, Token, Transfer,
    Transport, ZeroCopy,
};
use datatype::Buffer;

use crate::Result;
use crate::packet::{Contents, Invitation};
use crate::request::RequestId;

/// Number of bytes that a rank claims at a time of a message up to eight times as long.
const STEP: usize = 128 << 10;
/// Length of the shortest piece, and of every piece that is pushed, in bytes.
const LEAST_PIECE: usize = 32 << 10;
/// Number of pieces that a sender claims at once to push them.
pub(super) const PUSHED_AT_ONCE: u32 = 8;
/// Number of polls of a receiver for the next pushed piece before it copies one itself: some tens
/// of microseconds.
const PATIENCE: u32 = 512;

/// The receiver's end of a cooperative copy, which both ranks of a message make.
pub(super) struct CooperativeCopy {
    exposure: Exposure,
    wanted: usize,
    generation: u32,
    pieces: u32,
    piece: usize,
    /// The number of pieces that the receiver claims at once.
    at_once: u32,
    /// Number of pieces that have been copied, if the sender pushes, so that only the receiver
    /// counts them. `None`: both ranks count them in the shared counter.
    here: Option<u32>,
    /// Number of polls before the receiver claims further pieces.
    patience: u32,
    /// The piece that the sender has claimed and could not copy, until the receiver copies it.
    returned: Option<u32>,
    /// Number of pieces that nobody copies, because the system has refused the receiver's copy of
    /// one of them.
    given_up: u32,
}

/// The progress of a cooperative copy after a step.
pub(super) enum Copied {
    All,
    Some,
    /// The system has refused a copy, and the sender copies no further piece. The message must be
    /// sent in packets.
    Refused,
}

/// The sender's end of a cooperative copy, to which the receiver has invited it.
pub(super) struct Help {
    pub(super) peer: usize,
    pub(super) request: RequestId,
    pub(super) invitation: Invitation,
    /// The send buffer, prepared for the copy. `None`: it has not been prepared yet.
    pub(super) exposure: Option<Exposure>,
    /// Claimed pieces that have not been copied. Those to be pushed may have found no room in the
    /// ring.
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
    /// share no counter, or the buffer cannot be exposed. `most`: the greatest length of a piece in
    /// bytes.
    pub(super) fn begin(
        router: &mut Router,
        peer: usize,
        receive: RequestId,
        buffer: &Buffer,
        wanted: usize,
        push: bool,
        most: usize,
    ) -> Result<Option<(CooperativeCopy, Invitation)>> {
        let push = push && LEAST_PIECE <= router.longest_packet(peer);
        // A sender that pushes needs no remote key of the buffer.
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
                // From 1 MiB on an eighth: then the two ends finish within an eighth of each other.
                let piece = (wanted / 4).min(STEP).max((wanted / 8).min(most));
                (piece.next_multiple_of(4096).max(LEAST_PIECE), 1)
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
            returned: None,
            given_up: 0,
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

    /// The exposure of the receive buffer for the copy.
    pub(super) fn into_exposure(self) -> Exposure {
        self.exposure
    }

    /// True if the receiver should still wait for the sender's next piece. Each call uses up one
    /// poll.
    pub(super) fn waits(&mut self) -> bool {
        let waits = self.patience > 0;
        self.patience -= u32::from(waits);
        waits
    }

    /// Copies the piece that the sender has returned, or claims the next free pieces and copies
    /// them.
    pub(super) fn advance(
        &mut self,
        router: &mut Router,
        peer: usize,
        from: &RemoteKey,
        token: Token,
    ) -> Result<Copied> {
        let counter = router.cooperation(peer, End::Receiver);
        let wanted = self.pieces - self.given_up;
        let is_complete = match self.here {
            Some(here) => here == wanted,
            None => counter.is_some_and(|counter| counter.is_complete(wanted)),
        };
        if is_complete && self.given_up > 0 {
            return Ok(Copied::Refused);
        }
        if is_complete {
            return Ok(Copied::All);
        }
        let returned = self.returned.take().map(|piece| piece..piece + 1);
        let claim = || {
            counter.and_then(|counter| counter.claim(self.generation, self.pieces, self.at_once))
        };
        let Some(run) = returned.or_else(claim) else {
            return Ok(Copied::Some);
        };
        let start = run.start as usize * self.piece;
        let end = self.wanted.min(start + run.len() * self.piece);
        let read = router.read(peer, from, &self.exposure, start..end, token)?;
        let counter = router.cooperation(peer, End::Receiver);
        if read != Transfer::Done {
            let rest =
                |counter: &PieceCounter| counter.claim(self.generation, self.pieces, u32::MAX);
            let rest = counter.and_then(rest).unwrap_or_default();
            self.given_up += (run.len() + rest.len()) as u32;
            return Ok(Copied::Some);
        }
        match (&mut self.here, counter) {
            (Some(here), _) => *here += run.len() as u32,
            (None, Some(counter)) => counter.moved(run.len() as u32),
            (None, None) => {}
        }
        Ok(Copied::Some)
    }

    /// Takes back a piece that the sender has claimed and could not copy. The error describes the
    /// fault of the piece.
    pub(super) fn take_back(&mut self, piece: u64) -> std::result::Result<(), &'static str> {
        let is_possible = self.here.is_none() && self.returned.is_none();
        match u32::try_from(piece) {
            Ok(piece) if is_possible && piece < self.pieces => self.returned = Some(piece),
            _ => return Err("a piece back that its message does not have"),
        }
        Ok(())
    }

    /// Receives the pushed piece with number `at`. The error describes the fault of the piece.
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
