//! Packets: the kinds, their heads, and their bodies.
//!
//! A head has three words of 64 bits. The head of a message is its envelope: kind and tag; context;
//! token and source. The head of a control packet names a request: kind; argument; token. A token
//! is the number of a request. In an answer it is a request of the receiver of the packet; where an
//! answer is expected, it is a request of the sender.
//!
//! Invariant: each kind has one layout, whatever the values in it; a body that does not
//! decode is an error of the peer, and is reported as one.

mod announcements;
mod bodies;
mod codec;
mod heads;
mod kinds;
mod run_class;

pub(crate) use announcements::{AnnouncementPacket, Progress, Run, decode_runs};
pub(crate) use bodies::{ClearToSend, Invitation, Offer, Started, Target};
pub(crate) use codec::{Body, encode};
use heads::BACKWARD;
pub(crate) use heads::{Control, Envelope, copied_out, in_runs, runs_in};
pub(crate) use kinds::{
    Cancellation, Cooperative, Eager, Flow, Kind, Loss, ReadyToReceive, Rendezvous,
};

pub(crate) use run_class::RunClass;

use channel::Head;
use datatype::{Buffer, Direction};

/// The body of a packet, and the direction in which it is copied to a receive buffer.
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

    /// The contents of packets whose bytes have been copied out and kept.
    pub(crate) fn kept(bytes: &'a [u8]) -> Contents<'a> {
        Contents {
            bytes,
            copy_out: Direction::Forward,
        }
    }

    /// Copies the bytes to `position` in the buffer of a receive.
    #[inline(always)]
    pub(crate) fn unpack(self, buffer: &Buffer, position: usize) {
        buffer.unpack_in(self.copy_out, position, self.bytes);
    }
}
