//! Starting receives, and meeting messages with them.

use channel::Head;
use datatype::Buffer;

use super::arrivals::{Coming, Room};
use super::{Body, Bytes, Found, Message, Messages};
use crate::comm::AGREEMENT;
use crate::matching::Key;
use crate::packet::{Contents, Envelope, Flow, Rendezvous};
use crate::request::{Operation, Receive, RequestId};
use crate::{Class, Result, Status};

impl Messages {
    /// True if a message waits for its receive.
    #[inline(always)]
    pub(crate) fn has_unexpected(&self) -> bool {
        self.unexpected.is_some()
    }

    /// True if the head is that of a whole message that `key` takes before any posted receive does.
    #[inline(always)]
    pub(crate) fn is_for(&self, head: Head, key: &Key) -> bool {
        let sent = Envelope::key(head);
        Envelope::is_whole(head) && key.takes(&sent) && !self.posted.has(&sent)
    }

    /// Starts a receive: takes the earliest unexpected message that fits, or waits for one.
    #[inline(always)]
    pub fn receive(&mut self, buffer: Buffer, key: Key) -> Result<RequestId> {
        let id = self.add_receive(buffer, key)?;
        if !self.unexpected.is_some() || !self.receive_unexpected(id, key) {
            self.posted.post(key, id.0);
        }
        Ok(id)
    }

    /// Takes the earliest unexpected message that fits; false if there is none.
    #[inline(never)]
    fn receive_unexpected(&mut self, id: RequestId, key: Key) -> bool {
        match self.unexpected.take(&key) {
            None => false,
            Some((sent, message)) => {
                self.meet_unexpected(id, sent, message);
                true
            }
        }
    }

    /// Receives a message that a probe has taken out (MPI 5.0 §3.8.2).
    pub fn receive_message(&mut self, buffer: Buffer, found: Found) -> Result<RequestId> {
        let id = self.add_receive(buffer, found.key)?;
        self.meet_unexpected(id, found.key, found.message);
        Ok(id)
    }

    #[inline(always)]
    fn add_receive(&mut self, buffer: Buffer, key: Key) -> Result<RequestId> {
        self.requests.add_with(|| {
            Operation::Receive(Receive {
                buffer,
                key,
                announced: 0,
                arrived: 0,
            })
        })
    }

    fn meet_unexpected(&mut self, id: RequestId, sent: Key, message: Message) {
        match message.body {
            Body::Here { bytes, sync } => {
                self.let_go(message.peer, bytes.len());
                if let Some(request) = sync {
                    self.send_queue
                        .push_control(message.peer, Rendezvous::Finished, request);
                }
                self.deliver(id, sent, Contents::kept(&bytes));
            }
            Body::Offered(announcement) => self.accept(id, message.peer, sent, announcement),
        }
    }

    /// A whole message has met its receive.
    #[inline(always)]
    pub(super) fn deliver(&mut self, id: RequestId, sent: Key, body: Contents) {
        self.met_otherwise(id);
        self.requests.complete_receive(
            id,
            #[inline(always)]
            |receive| {
                body.unpack(&receive.buffer, 0);
                received(&receive.buffer, sent, body.bytes.len())
            },
        );
    }

    /// The first piece of a message of `announced` bytes that comes in several packets, with nothing between them.
    pub(super) fn begin(&mut self, peer: usize, key: Key, announced: usize, piece: Contents) {
        let to = self.posted.take(&key).map(RequestId);
        if let Some(id) = to {
            self.met_otherwise(id);
            if let Some(receive) = self.requests.receive_mut(id) {
                (receive.key, receive.announced) = (key, announced);
            }
        }
        let coming = Coming {
            key,
            left: announced,
            to: to.ok_or(Vec::new()),
        };
        if !self.arrivals.set_coming(peer, coming) {
            self.nonsense(peer, "a message amid the pieces of another");
        }
        self.go_on(peer, piece);
    }

    /// The next piece of it. A receive that meets it before it is whole waits for the rest.
    pub(super) fn go_on(&mut self, peer: usize, piece: Contents) {
        let Some(mut coming) = self.arrivals.take_coming(peer) else {
            return self.nonsense(peer, "a piece of no message");
        };
        let Some(left) = coming.left.checked_sub(piece.bytes.len()) else {
            return self.nonsense(peer, "more bytes than it announced");
        };
        coming.left = left;
        match &mut coming.to {
            Ok(id) => {
                if let Err(what) = self.take_piece(*id, piece) {
                    return self.nonsense(peer, what);
                }
            }
            Err(bytes) => bytes.extend_from_slice(piece.bytes),
        }
        match coming {
            Coming { left: 0, key, to } => {
                if let Err(bytes) = to {
                    self.meet(peer, key, bytes);
                }
            }
            coming => _ = self.arrivals.set_coming(peer, coming),
        }
    }

    /// A message that came when no receive was there for it is whole.
    fn meet(&mut self, peer: usize, key: Key, bytes: Vec<u8>) {
        match self.posted.take(&key) {
            Some(receive) => self.deliver(RequestId(receive), key, Contents::kept(&bytes)),
            None => {
                let bytes = Bytes::Long(bytes.into());
                self.keep(peer, key, Body::Here { bytes, sync: None });
            }
        }
    }

    /// The next piece of a message that comes in packets.
    pub(super) fn take_piece(
        &mut self,
        id: RequestId,
        body: Contents,
    ) -> std::result::Result<(), &'static str> {
        let Some(receive) = self.requests.receive_mut(id) else {
            return Err("a piece for a receive that is not there");
        };
        let len = body.bytes.len();
        if len > receive.announced - receive.arrived.min(receive.announced) {
            return Err("more bytes than it announced");
        }
        if receive.arrived < receive.buffer.len() {
            body.unpack(&receive.buffer, receive.arrived);
        }
        receive.arrived += len;
        if receive.arrived == receive.announced {
            let status = received(&receive.buffer, receive.key, receive.announced);
            self.release(id);
            self.requests.complete(id, status);
        }
        Ok(())
    }

    /// Keeps a message without a receive, and bounds the bytes of its peer.
    pub(super) fn keep(&mut self, peer: usize, key: Key, body: Body) {
        if let Body::Here { bytes, .. } = &body {
            let room = self
                .arrivals
                .hold(peer, bytes.len(), self.limits.unexpected);
            self.report_room(peer, room);
        }
        if key.context & AGREEMENT != 0 {
            // The task that waits for it has posted no receive that could complete.
            self.requests.completions += 1;
        }
        self.unexpected.add(key, Message { peer, body });
    }

    /// An unexpected message of a peer has been received.
    pub(super) fn let_go(&mut self, peer: usize, bytes: usize) {
        let room = self.arrivals.let_go(peer, bytes, self.limits.unexpected);
        self.report_room(peer, room);
    }

    fn report_room(&mut self, peer: usize, room: Option<Room>) {
        let kind = match room {
            None => return,
            Some(Room::Exhausted) => Flow::HeadersOnly,
            Some(Room::Regained) => Flow::BodiesAllowed,
        };
        self.send_queue.push_control(peer, kind, 0);
    }

    /// Takes back a receive that has not been matched.
    pub(super) fn cancel_receive(&mut self, id: RequestId) {
        let Some(receive) = self.requests.receive_mut(id) else {
            return;
        };
        let key = receive.key;
        if self.revoke(id, key) {
            return;
        }
        if self.posted.withdraw(&key, id.0) {
            self.requests.complete(id, Status::CANCELLED);
        }
    }
}

/// The status of a receive; a message longer than the buffer is an error that the status carries.
#[inline(always)]
pub(crate) fn received(buffer: &Buffer, sent: Key, len: usize) -> Status {
    let dropped = len.saturating_sub(buffer.len());
    let mut status = Status {
        source: sent.source,
        tag: sent.tag,
        error: Class::SUCCESS,
        bytes: len as u64,
        dropped: 0,
        cancelled: false,
    };
    if dropped > 0 {
        status.error = Class::TRUNCATE;
        status.bytes = buffer.len() as u64;
        status.dropped = dropped as u64;
    }
    status
}
