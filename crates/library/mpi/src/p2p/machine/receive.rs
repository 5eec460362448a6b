//! The start of receives, and their match with messages.

use channel::Head;
use datatype::Buffer;

use super::arrivals::{Coming, Room};
use super::protocol::CopyCostSource;
use super::{Body, Bytes, Found, Message, Messages, received};
use crate::comm::{AGREEMENT, WINDOW, bare};
use crate::matching::Key;
use crate::packet::{Contents, Envelope, Flow, Rendezvous, RunClass};
use crate::request::{Operation, Receive, RequestId};
use crate::{Result, Status};

impl Messages {
    /// True if a message waits for its receive.
    #[inline(always)]
    pub(crate) fn has_unexpected(&self) -> bool {
        self.unexpected.is_some()
    }

    /// True if the head is that of a whole message that a receive with the envelope `key` matches
    /// and no posted receive does.
    #[inline(always)]
    pub(crate) fn is_for(&self, head: Head, key: &Key) -> bool {
        let sent = Envelope::key(head);
        Envelope::is_whole(head) && key.takes(&sent) && !self.posted.has(&sent)
    }

    /// Starts a receive: it takes the earliest unexpected message that matches, or is posted.
    #[inline(always)]
    pub(crate) fn receive(&mut self, buffer: Buffer, key: Key) -> Result<RequestId> {
        let id = self.add_receive(buffer, key)?;
        if !self.unexpected.is_some() || !self.receive_unexpected(id, key) {
            self.posted.post(key, id.0);
        }
        Ok(id)
    }

    /// Matches a receive with the earliest unexpected message that fits it. False: there is none.
    #[inline(never)]
    fn receive_unexpected(&mut self, id: RequestId, key: Key) -> bool {
        match self.unexpected.take(&key) {
            None => false,
            Some((sent, message)) => {
                self.match_unexpected(id, sent, message);
                true
            }
        }
    }

    /// Receives a message that a matched probe has claimed (MPI 5.0 §3.8.2).
    pub(crate) fn receive_message(&mut self, buffer: Buffer, found: Found) -> Result<RequestId> {
        let id = self.add_receive(buffer, found.key)?;
        self.match_unexpected(id, found.key, found.message);
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

    /// Matches a receive with an unexpected message.
    fn match_unexpected(&mut self, id: RequestId, sent: Key, message: Message) {
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

    /// Completes a receive with a whole message.
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

    /// Handles the first eager piece of a message of `announced` bytes, in runs of this class.
    pub(super) fn begin(
        &mut self,
        peer: usize,
        key: Key,
        (announced, runs): (usize, RunClass),
        piece: Contents,
    ) {
        let to = self.posted.take(&key).map(RequestId);
        if let Some(id) = to {
            self.met_otherwise(id);
            if let Some(receive) = self.requests.receive_mut(id) {
                (receive.key, receive.announced) = (key, announced);
            }
        }
        let learns = to.is_some() && self.limits.copy_costs == CopyCostSource::Learned;
        let coming = Coming {
            key,
            left: announced,
            to: to.ok_or(Vec::new()),
            measured: match learns {
                true => self.measure_at_once(peer, (announced, runs), false),
                false => None,
            },
        };
        if !self.arrivals.set_coming(peer, coming) {
            self.nonsense(peer, "a message amid the pieces of another");
        }
        self.go_on(peer, piece);
    }

    /// Handles the next eager piece of the message that is arriving from `peer`.
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
            Coming {
                left: 0,
                key,
                to,
                measured,
            } => {
                if let Err(bytes) = to {
                    self.match_or_keep(peer, key, bytes);
                }
                if let Some(measured) = measured {
                    // Other pieces are at least as long as the last one.
                    let pieces = measured.len().div_ceil(piece.bytes.len().max(1));
                    self.learned.ended_in_pieces(measured, pieces);
                    self.publish(peer, measured.class());
                }
            }
            coming => _ = self.arrivals.set_coming(peer, coming),
        }
    }

    /// Matches or keeps a message whose first piece arrived without a receive and whose last piece
    /// has arrived now.
    fn match_or_keep(&mut self, peer: usize, key: Key, bytes: Vec<u8>) {
        match self.posted.take(&key) {
            Some(receive) => self.deliver(RequestId(receive), key, Contents::kept(&bytes)),
            None => {
                let bytes = Bytes::Long(bytes.into());
                self.keep(peer, key, Body::Here { bytes, sync: None });
            }
        }
    }

    /// Handles the next piece of a message that arrives in packets. The error describes the fault
    /// of the piece.
    pub(super) fn take_piece(
        &mut self,
        id: RequestId,
        body: Contents,
    ) -> std::result::Result<(), &'static str> {
        let Some(receive) = self.requests.receive_mut(id) else {
            return Err("a piece for a receive that does not exist");
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
            if self.learned.measures_packets() {
                self.learned.packets_ended(id.0);
            }
            self.requests.complete(id, status);
        }
        Ok(())
    }

    /// Keeps an unexpected message, and notifies its sender when its unexpected bytes exceed their
    /// limit.
    pub(super) fn keep(&mut self, peer: usize, key: Key, body: Body) {
        if let Body::Here { bytes, .. } = &body {
            let room = self
                .arrivals
                .hold(peer, bytes.len(), self.limits.unexpected);
            self.report_room(peer, room);
        }
        if key.context & AGREEMENT != 0 {
            // A task waits for such a message without a posted receive, so no request completes.
            self.requests.completions += 1;
            let window = bare(key.context);
            if key.context & WINDOW != 0 && self.of_windows.last() != Some(&window) {
                self.of_windows.push(window);
            }
        }
        self.unexpected.add(key, Message { peer, body });
    }

    /// Subtracts a received message from the count of its sender's unexpected bytes.
    pub(super) fn let_go(&mut self, peer: usize, bytes: usize) {
        let room = self.arrivals.let_go(peer, bytes, self.limits.unexpected);
        self.report_room(peer, room);
    }

    /// Notifies a peer of a change in the room for its unexpected bytes.
    fn report_room(&mut self, peer: usize, room: Option<Room>) {
        let kind = match room {
            None => return,
            Some(Room::Exhausted) => Flow::HeadersOnly,
            Some(Room::Regained) => Flow::BodiesAllowed,
        };
        self.send_queue.push_control(peer, kind, 0);
    }

    /// Cancels a receive, unless it has been matched.
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
