//! Packets: the kinds, their heads, and their bodies.
//!
//! A head has three words. The head of a message is its envelope: kind and tag; context; token and
//! source. The head of a control packet names a request: kind; argument; token. A token is the
//! number of a request, of the receiver of the packet in an answer, and of its sender where an
//! answer is expected.
//!
//! Invariant: each kind has one layout, whatever the values in it; a body that does not
//! decode is an error of the peer, and is reported as one.

mod announcements;
mod bodies;
mod codec;
mod heads;
mod kinds;

pub(crate) use announcements::{AnnouncementPacket, Progress, Run, decode_runs};
pub(crate) use bodies::{ClearToSend, Invitation, Offer, Started, Target};
pub(crate) use codec::{Body, encode};
use heads::BACKWARD;
pub(crate) use heads::{Control, Envelope, copied_out};
pub(crate) use kinds::{
    Cancellation, Cooperative, Eager, Flow, Kind, Loss, ReadyToReceive, Rendezvous,
};

use channel::Head;
use datatype::{Buffer, Direction};

/// The body of a packet, as it is copied to a receive.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a> {
    pub(crate) bytes: &'a [u8],
    copy_out: Direction,
}

impl<'a> Contents<'a> {
    #[inline(always)]
    pub(crate) fn of(head: Head, bytes: &'a [u8]) -> Contents<'a> {
        let copy_out = match head[0] & BACKWARD != 0 {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        Contents { bytes, copy_out }
    }

    /// Bytes that have been taken out of their packets.
    pub(crate) fn kept(bytes: &'a [u8]) -> Contents<'a> {
        Contents {
            bytes,
            copy_out: Direction::Forward,
        }
    }

    /// Copies the bytes to `position` of a receive's buffer.
    #[inline(always)]
    pub(crate) fn unpack(self, buffer: &Buffer, position: usize) {
        buffer.unpack_in(self.copy_out, position, self.bytes);
    }
}
