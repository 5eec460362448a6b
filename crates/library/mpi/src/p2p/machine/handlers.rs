//! The handlers of packets, by family. A handler never waits and never sends: it queues packets and
//! defers actions.

use channel::{Head, More};

use super::Messages;
use super::deferred::{Action, RtrMessage};
use super::message::{Body, Message};
use super::peer_queue::PeerState;
use crate::matching::Key;
use crate::packet::{
    Cancellation, Contents, Control, Eager, Envelope, Flow, Kind, Loss, ReadyToReceive, Rendezvous,
    decode_runs, runs_in,
};
use crate::request::RequestId;
use crate::{Class, Error, Status};

/// The result of handling a packet. The error describes the fault of the packet.
type Handled = std::result::Result<(), &'static str>;

impl Messages {
    /// Handles a packet. The result says whether further packets are wanted now.
    #[inline(always)]
    pub(crate) fn on_packet(&mut self, peer: usize, head: Head, body: &[u8]) -> More {
        let receive = match Envelope::is_whole(head) {
            true => self.posted.take(&Envelope::key(head)),
            false => None,
        };
        match receive {
            Some(receive) => self.deliver(
                RequestId(receive),
                Envelope::key(head),
                Contents::of(head, body),
            ),
            None => {
                self.on_other_packet(peer, head, body);
                if self.arrivals.is_coming(peer) {
                    return More::Wanted;
                }
            }
        }
        // A message without a receive may stay in the ring until there is one: it is copied only
        // once then.
        if self.posted.is_empty() {
            More::Enough
        } else {
            More::Wanted
        }
    }

    #[inline(never)]
    fn on_other_packet(&mut self, peer: usize, head: Head, body: &[u8]) {
        let Some(Envelope { kind, key, token }) = Envelope::decode(head) else {
            return self.nonsense(peer, "a packet of no known kind");
        };
        if self.watches_losses() && !self.takes_late(peer, kind) {
            return;
        }
        let request = RequestId(token);
        let body = Contents::of(head, body);
        let handled = match kind {
            Kind::Eager(kind) => self.on_eager(kind, peer, key, token, head, body),
            Kind::Rendezvous(kind) => self.on_rendezvous(kind, peer, key, request, body),
            Kind::Cooperative(kind) => {
                self.on_cooperative(kind, peer, request, Control::argument(head), body)
            }
            Kind::ReadyToReceive(kind) => self.on_rtr(kind, peer, key, request, body.bytes),
            Kind::Flow(kind) => {
                let stopped = kind == Flow::HeadersOnly;
                self.send_queue.set(peer, PeerState::HeadersOnly, stopped);
                Ok(())
            }
            Kind::Cancellation(kind) => {
                self.on_cancellation(kind, peer, key, request);
                Ok(())
            }
            Kind::Loss(Loss::LeftCollective) => {
                self.on_left(peer, key, token, body);
                Ok(())
            }
        };
        if let Err(what) = handled {
            self.nonsense(peer, what);
        }
    }

    fn on_eager(
        &mut self,
        kind: Eager,
        peer: usize,
        key: Key,
        token: u32,
        head: Head,
        body: Contents,
    ) -> Handled {
        let bytes = || body.bytes.into();
        match kind {
            Eager::Whole => {
                let (bytes, sync) = (bytes(), None);
                self.keep(peer, key, Body::Here { bytes, sync });
            }
            Eager::Synchronous => match self.posted.take(&key) {
                Some(receive) => {
                    self.send_queue
                        .push_control(peer, Rendezvous::Finished, token);
                    self.deliver(RequestId(receive), key, body);
                }
                None => {
                    let (bytes, sync) = (bytes(), Some(token));
                    self.keep(peer, key, Body::Here { bytes, sync });
                }
            },
            Eager::FirstPiece => self.begin(peer, key, (token as usize, runs_in(head)), body),
            Eager::NextPiece => self.go_on(peer, body),
        }
        Ok(())
    }

    fn on_rtr(
        &mut self,
        kind: ReadyToReceive,
        peer: usize,
        key: Key,
        request: RequestId,
        body: &[u8],
    ) -> Handled {
        match kind {
            ReadyToReceive::Announce => {
                let announced = decode_runs(key, request.0, body);
                let (progress, runs) =
                    announced.ok_or("announcements of receives that cannot be read")?;
                let message = RtrMessage::Announced { progress, runs };
                self.deferred.push(Action::Rtr(peer, message));
            }
            ReadyToReceive::Start => self.started(peer, key, request, body)?,
            ReadyToReceive::Revoke => {
                let receive = request.0;
                let message = RtrMessage::Revoked { key, receive };
                self.deferred.push(Action::Rtr(peer, message));
            }
            ReadyToReceive::Revoked => self.revoked(peer, request),
        }
        Ok(())
    }

    fn on_cancellation(&mut self, kind: Cancellation, peer: usize, key: Key, request: RequestId) {
        match kind {
            Cancellation::Cancel => self.answer_cancel(peer, key, request.0),
            Cancellation::Cancelled => {
                let send = self.requests.send_mut(request);
                if send.is_some_and(|send| send.peer == peer && send.cancelling) {
                    self.release(request);
                    self.requests.complete(request, Status::CANCELLED);
                } else {
                    self.nonsense(
                        peer,
                        "the cancellation of a message that was not taken back",
                    );
                }
            }
            // The message has been matched, and its completion is on the way.
            Cancellation::TooLate => {}
        }
    }

    fn answer_cancel(&mut self, peer: usize, key: Key, token: u32) {
        let taken = self.unexpected.take_if(&key, |message| {
            message.peer == peer
                && match &message.body {
                    Body::Here { sync, .. } => *sync == Some(token),
                    Body::Offered(announcement) => announcement.request == token,
                }
        });
        if let Some((
            _,
            Message {
                body: Body::Here { bytes, .. },
                ..
            },
        )) = &taken
        {
            self.let_go(peer, bytes.len());
        }
        let kind = match taken {
            Some(_) => Cancellation::Cancelled,
            None => Cancellation::TooLate,
        };
        self.send_queue.push_control(peer, kind, token);
    }

    #[cold]
    pub(super) fn nonsense(&mut self, peer: usize, what: &str) {
        let detail = format!(
            "rank {peer} broke the protocol: it sent {what}. Do all ranks use the same version of the library?"
        );
        self.broken.get_or_insert(Error::new(Class::INTERN, detail));
    }
}
