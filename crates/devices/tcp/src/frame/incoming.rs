//! The frame of the peer that is being received: the state between two bytes.

use device::{Completed, Status};

use super::header::{HEADER, Header, Kind};
use super::host::{Done, Host, Receive};

/// The state of the frame of the peer that is being received.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub stage: Stage,
    pub header: [u8; HEADER],
    /// The number of bytes of the header that have arrived.
    pub have: usize,
    /// True if the header of a frame has arrived over this connection.
    pub has_heard: bool,
    /// The length of the last payload in bytes.
    pub last_len: u32,
}

#[derive(Debug, Default)]
pub(super) enum Stage {
    /// The header of the next frame has not arrived.
    #[default]
    Header,
    /// This frame needs a receive, and none is posted.
    Stalled(Header),
    /// The payload of a frame has not arrived completely.
    Payload(Payload),
}

#[derive(Debug)]
pub(super) struct Payload {
    pub header: Header,
    /// The number of bytes of the payload that have arrived.
    pub done: u32,
    /// The receive that the frame consumes.
    pub receive: Option<Receive>,
    /// The operands of an atomic.
    pub operands: [u8; 16],
}

impl Incoming {
    /// Completes with an error the receive that an unfinished frame was using.
    pub(super) fn abandon(&mut self, status: Status, host: &mut impl Host) {
        if let Stage::Payload(payload) = std::mem::take(&mut self.stage)
            && let Some(receive) = payload.receive
        {
            let of = payload.header.received_as();
            host.complete(
                Done::of_receive(&receive, of, status, 0, None),
                receive.is_shared,
            );
        }
    }
}

impl Header {
    /// The kind of completion of a receive that this frame consumes.
    pub(super) fn received_as(&self) -> Completed {
        match self.kind {
            Kind::Send => Completed::Receive,
            _ => Completed::ReceiveWrite,
        }
    }
}
