//! What every kind of packet does when it arrives. Nothing here waits or sends: answers are queued.

use channel::{Head, More};

use super::rdma::Write;
use super::ready_to_receive::Word;
use super::rendezvous::Chore;
use super::send_queue::Mark;
use super::{Body, Message, Messages};
use crate::comm::AGREEMENT;
use crate::packet::{Ahead, Contents, Envelope, Invitation, Kind, Offer, Target};
use crate::request::RequestId;
use crate::{Class, Error, Status};

impl Messages {
    #[inline(always)]
    pub fn on_packet(&mut self, peer: usize, head: Head, body: &[u8]) -> More {
        let receive = match Envelope::is_eager(head) {
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
                if self.is_coming(peer) {
                    return More::Wanted;
                }
            }
        }
        // What nobody waits for may as well stay in the ring until somebody does: it is copied only once then.
        if self.posted.is_empty() {
            More::Enough
        } else {
            More::Wanted
        }
    }

    #[inline(never)]
    fn on_other_packet(&mut self, peer: usize, head: Head, body: &[u8]) {
        let Some(envelope) = Envelope::decode(head) else {
            return self.nonsense(peer, "a packet of no known kind");
        };
        let Envelope { kind, key, token } = envelope;
        let request = RequestId(token);
        match kind {
            Kind::Eager => self.keep(
                peer,
                key,
                Body::Here {
                    bytes: body.into(),
                    sync: None,
                },
            ),
            Kind::EagerSync => match self.posted.take(&key) {
                Some(receive) => {
                    self.queue_short(peer, Envelope::about(Kind::Finished, token), &[]);
                    self.deliver(RequestId(receive), key, Contents::of(head, body));
                }
                None => self.keep(
                    peer,
                    key,
                    Body::Here {
                        bytes: body.into(),
                        sync: Some(token),
                    },
                ),
            },
            Kind::RequestToSend => match (Offer::decode(body), self.posted.take(&key)) {
                (None, _) => self.nonsense(peer, "an offer that cannot be read"),
                (Some(offer), Some(receive)) => {
                    self.was_early(peer, key, &offer);
                    self.accept(RequestId(receive), peer, key, token, offer)
                }
                (Some(offer), None) => self.keep(
                    peer,
                    key,
                    Body::Offered {
                        request: token,
                        offer,
                    },
                ),
            },
            Kind::ClearToSend => {
                let receive = body.try_into().map(u32::from_ne_bytes);
                match (receive, self.requests.send_mut(request)) {
                    (Ok(receive), Some(send)) if send.peer == peer => {
                        send.streaming = true;
                        self.queue_stream(peer, request, receive);
                    }
                    _ => self.nonsense(peer, "a clear-to-send for a message that was not offered"),
                }
            }
            Kind::Data => {
                if let Err(what) = self.take_piece(request, Contents::of(head, body)) {
                    self.nonsense(peer, what);
                }
            }
            Kind::Finished => match self.requests.send_mut(request) {
                Some(send) if send.peer == peer => {
                    self.release(request);
                    self.requests.complete(request, Status::EMPTY);
                }
                _ => self.nonsense(peer, "the end of a message that was not sent to it"),
            },
            Kind::Cancel => self.answer_cancel(peer, envelope),
            Kind::Cancelled if key.tag == 1 => {
                self.release(request);
                self.requests.complete(request, Status::CANCELLED);
            }
            // Too late: the message has been matched, and its own end is on the way.
            Kind::Cancelled => {}
            Kind::Invite => match Invitation::decode(body) {
                Some(invitation) => self.accept_invitation(peer, request, invitation),
                None => self.nonsense(peer, "an invitation that cannot be read"),
            },
            Kind::ClearToWrite => {
                let target = Target::decode(body);
                match (target, self.requests.send_mut(request)) {
                    (Some(target), Some(send))
                        if send.peer == peer && target.len <= send.buffer.len() as u64 =>
                    {
                        send.streaming = true;
                        self.chores.push_back(Chore::Write(Write {
                            peer,
                            request,
                            target,
                        }));
                    }
                    _ => self.nonsense(peer, "a clear-to-write for a message that was not offered"),
                }
            }
            Kind::Moved => {
                if !self.moved_ahead(peer, request) && !self.moved(peer, request) {
                    self.nonsense(peer, "the end of a transfer that was not begun");
                }
            }
            Kind::Ahead => match Ahead::decode(body) {
                Some(ahead) => {
                    let word = Word::Told { key, ahead };
                    self.chores.push_back(Chore::Hear(peer, word));
                }
                None => self.nonsense(peer, "a place for a message that cannot be read"),
            },
            Kind::Started => {
                if let Err(what) = self.started(peer, key, request, body) {
                    self.nonsense(peer, what);
                }
            }
            Kind::Revoke => {
                let receive = token;
                let word = Word::Revoked { key, receive };
                self.chores.push_back(Chore::Hear(peer, word));
            }
            Kind::Revoked => self.revoked(peer, request),
            Kind::EagerPieces => self.begin(peer, key, token as usize, Contents::of(head, body)),
            Kind::Piece => self.go_on(peer, Contents::of(head, body)),
            Kind::Pushed => {
                if let Err(what) =
                    self.take_pushed(request, key.tag as usize, Contents::of(head, body))
                {
                    self.nonsense(peer, what);
                }
            }
            Kind::HeadersOnly => self.peer(peer).mark(Mark::HeadersOnly, key.tag == 1),
        }
    }

    /// Keeps a message that nobody has asked for, and stops a flood of them.
    pub(super) fn keep(&mut self, peer: usize, key: crate::matching::Key, body: Body) {
        if let Body::Here { bytes, .. } = &body {
            let limit = self.limits.unexpected;
            let from = self.peer(peer);
            from.held += bytes.len() + size_of::<Message>();
            if from.held > limit && !from.told {
                from.told = true;
                self.tell_headers_only(peer, true);
            }
        }
        if key.context & AGREEMENT != 0 {
            // Who waits for it has posted no receive that could complete.
            self.requests.completions += 1;
        }
        self.unexpected.add(key, Message { peer, body });
    }

    /// Unexpected bytes of a peer have been received.
    pub(super) fn let_go(&mut self, peer: usize, bytes: usize) {
        let limit = self.limits.unexpected;
        let from = self.peer(peer);
        from.held = from.held.saturating_sub(bytes + size_of::<Message>());
        if from.told && from.held <= limit / 2 {
            from.told = false;
            self.tell_headers_only(peer, false);
        }
    }

    fn tell_headers_only(&mut self, peer: usize, only: bool) {
        let mut envelope = Envelope::about(Kind::HeadersOnly, 0);
        envelope.key.tag = only.into();
        self.queue_short(peer, envelope, &[]);
    }

    fn answer_cancel(&mut self, peer: usize, envelope: Envelope) {
        let taken = self.unexpected.take_if(&envelope.key, |message| {
            message.peer == peer
                && match message.body {
                    Body::Here { sync, .. } => sync == Some(envelope.token),
                    Body::Offered { request, .. } => request == envelope.token,
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
        let mut answer = Envelope::about(Kind::Cancelled, envelope.token);
        answer.key.tag = taken.is_some().into();
        self.queue_short(peer, answer, &[]);
    }

    #[cold]
    pub(super) fn nonsense(&mut self, peer: usize, what: &str) {
        let detail = format!(
            "rank {peer} broke the protocol: it sent {what}. Do all ranks use the same version of the library?"
        );
        self.broken.get_or_insert(Error::new(Class::INTERN, detail));
    }
}
