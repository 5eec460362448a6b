//! The consequences of a lost peer for messages: those with that peer end.
//!
//! Invariant: no machine keeps anything for a lost peer, except messages of it that have arrived.

use super::Messages;
use super::deferred::Action;
use crate::comm::bare;
use crate::error::Cause;
use crate::matching::Key;
use crate::packet::{Contents, Eager, Envelope, Kind, Loss};
use crate::request::{Operation, RequestId};
use crate::{Class, Error, Result, Status};

/// The longest text of an error that is sent to a peer, in bytes.
const TEXT: usize = 1024;

impl Messages {
    /// True if operations have to check for lost peers.
    #[inline(always)]
    pub(crate) fn watches_losses(&self) -> bool {
        self.watches_losses
    }

    /// Makes operations check for lost peers from now on, also where a receive is posted.
    pub(crate) fn watch_losses(&mut self) {
        self.watches_losses = true;
        self.announcer.activate();
    }

    /// Keeps an error that concerns a single peer until the next progress raises it, so that it
    /// does not end an operation with another peer, and returns true. Returns any other error.
    #[cold]
    pub(super) fn postpone(&mut self, error: Error) -> Result<bool> {
        if !error.is_loss() {
            return Err(error);
        }
        self.deferred.push(Action::Raise(error));
        Ok(true)
    }

    /// Keeps an error until the next progress within an MPI call, which raises it.
    #[cold]
    pub(crate) fn raise_later(&mut self, error: &Error) {
        self.deferred.push(Action::Raise(error.clone()));
    }

    /// Ends all transfers with a lost peer. The caller fails the user's requests that need it.
    pub(crate) fn forget_peer(&mut self, peer: usize, class: Class) {
        self.watch_losses();
        for request in self.send_queue.lose(peer) {
            self.fail(request, class);
        }
        self.batches.take(peer);
        self.announced.forget_peer(peer);
        self.arrivals.forget_peer(peer);
        self.learned.forget_open();
        let steps = self.fetches.forget_peer(peer);
        steps
            .into_iter()
            .for_each(|exposure| self.deferred.retract(exposure));
        for id in self.transfers.of_peer(peer) {
            self.release(id);
        }
        self.deferred.forget_peer(peer);
    }

    /// Completes a request with an error of this class. Withdraws it if it is a posted receive, and
    /// ends the transports' access to its buffer.
    pub(crate) fn fail(&mut self, id: RequestId, class: Class) {
        let mut status = Status {
            error: class,
            ..Status::EMPTY
        };
        let request = self.requests.get(id);
        if let Some(Operation::Receive(receive)) = request.map(|request| &request.operation) {
            let key = receive.key;
            (status.source, status.tag) = (key.source, key.tag);
            self.posted.withdraw(&key, id.0);
        }
        self.release(id);
        self.requests.complete(id, status);
    }

    /// A request for a send to a lost peer: it is complete, with the error of the loss. `None`: the
    /// peer is not lost.
    #[cold]
    pub(super) fn lost_send(&mut self, peer: usize, key: Key) -> Option<Result<RequestId>> {
        let class = self.losses.error_of(peer)?.class;
        let context = Some(bare(key.context));
        let id = match self.requests.add(Operation::Collective { context }) {
            Ok(id) => id,
            Err(error) => return Some(Err(error)),
        };
        let status = Status {
            error: class,
            ..Status::EMPTY
        };
        self.requests.complete(id, status);
        Some(Ok(id))
    }

    /// True if a packet of this kind is to be handled: the peer is not lost, or the packet has a
    /// whole message, sent before the loss.
    pub(super) fn takes_late(&self, peer: usize, kind: Kind) -> bool {
        let is_whole = matches!(kind, Kind::Eager(Eager::Whole | Eager::Synchronous));
        is_whole || self.losses.error_of(peer).is_none()
    }

    /// Notifies a member of a communicator that this rank has left a collective operation on it.
    pub(crate) fn notify_left(&mut self, peer: usize, key: Key, error: &Error) {
        let envelope = Envelope {
            kind: Loss::LeftCollective.into(),
            key,
            token: error.class.0 as u32,
        };
        let text = error.detail.as_bytes();
        let text = text[..text.len().min(TEXT)].to_vec();
        self.send_queue.push(peer, envelope, text);
    }

    /// Handles the notification that a member of a communicator has left a collective operation.
    pub(super) fn on_left(&mut self, peer: usize, key: Key, class: u32, text: Contents) {
        let text = String::from_utf8_lossy(text.bytes);
        let detail = format!(
            "rank {peer} has left a collective operation on this communicator: {text}; no collective operation works \
             on it any more"
        );
        let context = bare(key.context);
        let error = Error::new(class as i32, detail).because(Cause::LeftCollective { context });
        self.deferred.push(Action::Raise(error));
    }
}
