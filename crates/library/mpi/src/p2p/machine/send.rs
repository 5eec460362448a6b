//! The start of sends.

use channel::{ALIKE_UP_TO, BodyStores, Put, Router, ShortPath, Transport};
use datatype::Buffer;

use super::Messages;
use super::deferred::Action;
use super::peer_queue::PeerState;
use super::protocol::{Case, CopyCostSource, Protocol};
use super::protocol_table::choose;
use super::send_queue::Step;
use crate::Result;
use crate::matching::Key;
use crate::packet::{
    Cancellation, Eager, Envelope, Kind, Rendezvous, RunClass, copied_out, encode,
};
use crate::request::{Mode, Operation, RequestId, Send};

/// Shortest message, in bytes, whose store instructions are chosen by its peer's cache distance.
const NOT_SHORT: usize = 512;

impl Messages {
    /// Starts a send. The result is `requests.done()` if the send is complete at once.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        router: &mut Router,
        mode: Mode,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<RequestId> {
        if mode != Mode::Synchronous
            && self.send_queue.is_one_put(peer, buffer.len())
            && let Some(sent) = self.send_in_one_put(router, buffer, peer, key)?
        {
            return Ok(sent);
        }
        self.send_otherwise(router, mode, buffer, peer, key)
    }

    /// Sends a message in one put. `None`: the peer has no room.
    #[inline(always)]
    fn send_in_one_put(
        &mut self,
        router: &mut Router,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<Option<RequestId>> {
        match self.put_eager(router, buffer, peer, key)? {
            Put::Accepted => Ok(Some(self.requests.done())),
            put => self.answered(router, put),
        }
    }

    /// The request of a message, by the result of its put. `None`: the peer has no room.
    #[cold]
    #[inline(never)]
    pub(super) fn answered(&mut self, router: &mut Router, put: Put) -> Result<Option<RequestId>> {
        match put {
            Put::Corked => {
                let id = self.requests.add(Operation::NOBODYS)?;
                self.deferred.push(Action::Complete(id));
                return Ok(Some(id));
            }
            Put::Full => return Ok(None),
            Put::AcceptedPollNow => self.listen(router)?,
            Put::Accepted => {}
        }
        Ok(Some(self.requests.done()))
    }

    /// Puts a whole eager message, which needs no answer.
    #[inline(always)]
    pub(super) fn put_eager(
        &self,
        router: &mut Router,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<Put> {
        if buffer.len() >= NOT_SHORT {
            return put_long(router, &key, buffer, peer);
        }
        Ok(router.put(
            peer,
            Envelope::whole(&key),
            buffer.len(),
            #[inline(always)]
            |room| {
                buffer.pack(0, room);
            },
        )?)
    }

    /// Makes a pass of progress: a program may send for long without any other call that does,
    /// while its peers wait for it.
    #[cold]
    #[inline(never)]
    pub(super) fn listen(&mut self, router: &mut Router) -> Result<()> {
        let moved = match self.round(router) {
            Err(error) => self.postpone(error)?,
            Ok(moved) => moved,
        };
        if moved {
            router.wake_threads();
        }
        Ok(())
    }

    /// Handles arrived packets and deferred actions, but begins no fetch: the message that this
    /// rank is about to send leaves before. Otherwise the peer's direction would begin so much
    /// earlier than this rank's that it keeps more than its half of the adapter's bandwidth.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_arrivals(&mut self, router: &mut Router) -> Result<()> {
        let heard = self.take_arrivals(router).and_then(|_| self.act(router));
        match heard {
            Err(error) => self.postpone(error).map(|_| ()),
            Ok(()) => Ok(()),
        }
    }

    /// Starts a send that needs more than one put, or that is counted.
    #[inline(never)]
    fn send_otherwise(
        &mut self,
        router: &mut Router,
        mode: Mode,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<RequestId> {
        let step = self.send_queue.next_step(peer, buffer.len());
        if self.tells_messages {
            router
                .machine()
                .begin_send(buffer.len(), mode == Mode::Blocking);
        }
        if let Some(profile) = &self.profile
            && step != Step::Fail
        {
            profile.sent(peer, buffer.len());
        }
        match step {
            Step::Put if mode != Mode::Synchronous => {
                if let Some(sent) = self.send_in_one_put(router, buffer, peer, key)? {
                    return Ok(sent);
                }
            }
            Step::Fail => {
                if let Some(lost) = self.lost_send(peer, key) {
                    return lost;
                }
            }
            Step::SendGathered => {
                self.send_batch(router, peer);
                self.flush(router)?;
            }
            Step::Put | Step::Choose => {}
        }
        let is_tracked = self.send_queue.is(peer, PeerState::HasRtrs);
        let sent = self.send_by_table(router, mode, buffer, peer, key, is_tracked);
        if is_tracked && !self.fetches.is_empty() {
            self.listen(router)?;
        }
        if is_tracked && sent.is_err() {
            self.announced.forget(peer, &key);
        }
        sent
    }

    /// Starts a send by the protocol that the protocol table chooses.
    fn send_by_table(
        &mut self,
        router: &mut Router,
        mode: Mode,
        buffer: &Buffer,
        peer: usize,
        key: Key,
        is_tracked: bool,
    ) -> Result<RequestId> {
        self.tally.all += 1;
        let target = match is_tracked {
            true => self.target(router, peer, &key, buffer.len())?,
            false => None,
        };
        let (capabilities, limits) = (router.capabilities(peer), self.limits);
        let mut case = Case {
            synchronous: mode == Mode::Synchronous,
            blocking: mode == Mode::Blocking,
            headers_only: self.send_queue.is(peer, PeerState::HeadersOnly),
            has_rtr: target.is_some(),
            ..Case::of_sender(buffer.len(), &capabilities, &limits)
        };
        let mut protocol = choose(&case);
        let crossed = Case {
            crossed: true,
            ..case
        };
        if protocol == Protocol::ReadyToReceive
            && capabilities.rails > 1
            && choose(&crossed) == Protocol::ReadRendezvous
            && self.reads_from(peer)
        {
            protocol = Protocol::ReadRendezvous;
        }
        if protocol == Protocol::ReadyToReceive
            && let Some(target) = target
        {
            if let Some(id) = self.write_announced(router, buffer, peer, key, target)? {
                return Ok(id);
            }
            case.has_rtr = false;
            protocol = choose(&case);
        }
        if protocol == Protocol::Eager
            && is_tracked
            && mode != Mode::Synchronous
            && self.send_queue.is_clear(peer)
            && let Some(sent) = self.put_tracked(router, buffer, peer, key)?
        {
            return Ok(sent);
        }
        let mut runs = RunClass::ONE;
        let mut shared = None;
        let mut own = None;
        if protocol == Protocol::EagerPieces {
            own = self.begin_own();
            runs = RunClass::of(buffer);
            shared = self.share(router, mode, (buffer, runs), (peer, key), &capabilities)?;
        }
        let id = match shared {
            Some(id) => id,
            None => self.queue_send(router, (protocol, mode), (buffer, runs), peer, key)?,
        };
        self.send_queued(router)?;
        if let Some(timed) = own {
            let is_copied = shared.is_none() && self.send_queue.is_clear(peer);
            let timed = timed.map(|begun| (begun, channel::now()));
            let piece = router.piece(peer);
            let own = &mut self.learned.own;
            own.ends((buffer.len(), piece), timed, is_copied);
        }
        if !self.send_queue.is_clear(peer) {
            self.listen(router)?;
        }
        Ok(id)
    }

    /// Begins a send in pieces, where costs are learned: the time of its beginning, if it is timed.
    fn begin_own(&mut self) -> Option<Option<u64>> {
        let learns = self.limits.copy_costs == CopyCostSource::Learned;
        learns.then(|| self.learned.own.begins().then(channel::now))
    }

    /// True if this rank reads messages of the peer, or has queued their fetches.
    fn reads_from(&self, peer: usize) -> bool {
        let mut fetches = self.fetches.queue.iter();
        self.transfers.reads_from(peer) || fetches.any(|fetch| fetch.peer == peer)
    }

    /// Queues a message that leaves by this protocol, or its announcement.
    fn queue_send(
        &mut self,
        router: &mut Router,
        by: (Protocol, Mode),
        (buffer, runs): (&Buffer, RunClass),
        peer: usize,
        key: Key,
    ) -> Result<RequestId> {
        let kind: Kind = match by {
            (Protocol::Eager, Mode::Synchronous) => Eager::Synchronous.into(),
            (Protocol::Eager, _) => Eager::Whole.into(),
            (Protocol::EagerPieces, _) => Eager::FirstPiece.into(),
            _ => Rendezvous::RequestToSend.into(),
        };
        let send = Send {
            buffer: buffer.clone(),
            peer,
            envelope: Envelope {
                kind,
                key,
                token: 0,
            },
            streaming: false,
            buffered: 0,
            cancelling: false,
            users: None,
            runs,
        };
        let id = self.requests.add(Operation::Send(Box::new(send)))?;
        let Some(send) = self.requests.send_mut(id) else {
            unreachable!("added above")
        };
        send.envelope.token = id.0;
        let envelope = send.envelope;
        match kind {
            Kind::Eager(_) => self.send_queue.push_message(peer, id),
            _ => {
                let offer = self.parts().1.offer(router, peer, id)?;
                self.send_queue.push(peer, envelope, encode(&offer));
            }
        }
        Ok(id)
    }

    /// Begins to cancel a send (MPI 5.0 §3.8.4). On completion its status says whether it was
    /// cancelled.
    pub(super) fn cancel_send(&mut self, router: &mut Router, id: RequestId) -> Result<()> {
        let Some(send) = self.requests.send_mut(id) else {
            return Ok(());
        };
        if send.streaming || send.cancelling {
            return Ok(());
        }
        send.cancelling = true;
        let (peer, envelope) = (send.peer, send.envelope);
        if self.send_queue.withdraw(peer, id) {
            self.announced.forget(peer, &envelope.key);
            self.requests.complete(id, crate::Status::CANCELLED);
            return Ok(());
        }
        let envelope = Envelope {
            kind: Cancellation::Cancel.into(),
            ..envelope
        };
        self.send_queue.push(peer, envelope, Vec::new());
        self.flush(router)?;
        Ok(())
    }
}

/// Puts a whole eager message of at least [`NOT_SHORT`] bytes.
#[inline(never)]
fn put_long(router: &mut Router, key: &Key, buffer: &Buffer, peer: usize) -> Result<Put> {
    match buffer.len() > ALIKE_UP_TO {
        true => put_longer(router, key, buffer, peer),
        false => put_by(router.stores(peer, buffer.len()), router, key, buffer, peer),
    }
}

/// Puts a whole message for which several kinds of stores are compared.
#[inline(never)]
fn put_longer(router: &mut Router, key: &Key, buffer: &Buffer, peer: usize) -> Result<Put> {
    let stores = router.stores(peer, buffer.len());
    let begun = stores.begin();
    let put = put_by(stores, router, key, buffer, peer)?;
    router.stored((peer, buffer.len()), begun, put);
    Ok(put)
}

#[inline(always)]
fn put_by(
    stores: BodyStores,
    router: &mut Router,
    key: &Key,
    buffer: &Buffer,
    peer: usize,
) -> Result<Put> {
    Ok(router.put(
        peer,
        copied_out(Envelope::whole(key), stores.copy_out()),
        buffer.len(),
        #[inline(always)]
        |room| stores.fill(buffer, 0, room),
    )?)
}
