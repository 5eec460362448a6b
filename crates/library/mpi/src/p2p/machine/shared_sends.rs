//! Shared sends: messages that their receiver may read from the sender's memory, although a send of
//! their length does not wait for its receive.
//!
//! The sender announces the message. Until the receiver claims it, the sender copies it from the
//! front into memory of its own, in passes of progress; then the receiver reads what was copied
//! from there, and the rest from the send buffer. So a receiver that is there moves the bytes once,
//! and a send to one that is not ends after the copy. A blocking send copies from its third
//! pass on. Another send copies once the receiver has claimed nothing for a while.
//!
//! The user's request and that of the library are two: the user's completes with the last copied
//! byte, the library's when the receiver has the message.
//!
//! Invariants: a send completes once each byte is copied or read; nobody waits for a receiver that
//! has not claimed; only a receiver that has proved that it can read is offered a message.

use channel::{
    Capabilities, End, Exposed, Family, LONGEST_SHARED, MappedMemory, RemoteKey, Router, ZeroCopy,
};
use datatype::Buffer;

use super::Messages;
use super::copy_out::{CopyOut, Step};
use super::cost_classes::Class;
use super::deferred::Action;
use super::fetches::{Fetch, Method};
use super::learned_costs::Measured;
use super::path_choice::PathChoice;
use super::protocol::{CopyCostSource, Protocol, Sharing};
use crate::comm::bare;
use crate::matching::Key;
use crate::packet::{Envelope, Offer, Rendezvous, RunClass, encode};
use crate::request::{Mode, Operation, RequestId, Send};
use crate::{Result, Status};

// The sender's end.
impl Messages {
    /// Announces a message as a shared one. `None`: it takes its usual path.
    pub(super) fn share(
        &mut self,
        router: &mut Router,
        mode: Mode,
        (buffer, runs): (&Buffer, RunClass),
        (peer, key): (usize, Key),
        capabilities: &Capabilities,
    ) -> Result<Option<RequestId>> {
        let len = buffer.len();
        if !self.may_share(router, (len, runs), peer, capabilities) {
            return Ok(None);
        }
        let exposure = router.expose(peer, buffer, len, Exposed::ToRead, Family::Messages)?;
        let Some(exposure) = exposure else {
            return Ok(None);
        };
        let (users, id, envelope) = match self.add_shared((buffer, runs), peer, key) {
            Ok(added) => added,
            Err(error) => {
                router.retract(exposure)?;
                return Err(error);
            }
        };
        let offer = offer_of((len, runs), exposure.key(), capabilities);
        self.transfers.share(peer, id, exposure, CopyOut::of(len));
        self.send_queue.push(peer, envelope, encode(&offer));
        if self.shared.add(id, len, mode == Mode::Blocking) {
            self.deferred.push(Action::CopyOut);
        }
        Ok(Some(users))
    }

    /// Adds the two requests of a shared message: the user's, and the library's, with the envelope
    /// of the announcement.
    fn add_shared(
        &mut self,
        (buffer, runs): (&Buffer, RunClass),
        peer: usize,
        key: Key,
    ) -> Result<(RequestId, RequestId, Envelope)> {
        let context = Some(bare(key.context));
        let users = self.requests.add(Operation::Collective { context })?;
        let kind = Rendezvous::RequestToSend.into();
        let token = 0;
        let added = self.requests.add(Operation::Send(Box::new(Send {
            buffer: buffer.clone(),
            peer,
            envelope: Envelope { kind, key, token },
            streaming: false,
            buffered: 0,
            cancelling: false,
            users: Some(users),
            runs,
        })));
        let id = match added {
            Ok(id) => id,
            Err(error) => {
                // The user gets no handle of the request, so its completion removes it.
                self.requests.detach(users)?;
                self.requests.complete(users, Status::EMPTY);
                return Err(error);
            }
        };
        self.requests.detach(id)?;
        let envelope = Envelope {
            kind,
            key,
            token: id.0,
        };
        if let Some(send) = self.requests.send_mut(id) {
            send.envelope = envelope;
        }
        Ok((users, id, envelope))
    }

    /// True if a message that leaves in pieces can and should be shared.
    fn may_share(
        &mut self,
        router: &Router,
        (len, runs): (usize, RunClass),
        peer: usize,
        capabilities: &Capabilities,
    ) -> bool {
        if !self.shared.has_room(len, self.limits.unexpected) {
            return false;
        }
        let Some(class) = Class::at_once(len, capabilities.push, runs) else {
            return false;
        };
        self.set_distance(peer, capabilities.push);
        match self.sharing_in(router, peer, (len, class), capabilities) {
            Sharing::Never => false,
            Sharing::Forced => true,
            Sharing::Preferred(preferred) => self.shared.is_next(peer, class, preferred),
        }
    }

    /// The use of shared sends for contiguous messages of `len` bytes to `peer` that leave in
    /// pieces.
    pub(crate) fn sharing(
        &self,
        router: &Router,
        peer: usize,
        len: usize,
        capabilities: &Capabilities,
    ) -> Sharing {
        let class = Class::at_once(len, capabilities.push, RunClass::ONE);
        class.map_or(Sharing::Never, |class| {
            self.sharing_in(router, peer, (len, class), capabilities)
        })
    }

    /// The use of shared sends for messages of `len` bytes and of a class.
    fn sharing_in(
        &self,
        router: &Router,
        peer: usize,
        (len, class): (usize, Class),
        capabilities: &Capabilities,
    ) -> Sharing {
        let synchronous = capabilities.zero_copy.is_some_and(|it| it.synchronous);
        let learns = self.limits.copy_costs == CopyCostSource::Learned;
        if !synchronous || !learns || len > LONGEST_SHARED {
            return Sharing::Never;
        }
        let preference = router.preference(peer, End::Sender);
        match preference.filter(|preference| preference.is_readable()) {
            None => Sharing::Never,
            Some(preference) => match self.limits.forced {
                None => {
                    let stored = || PathChoice::begin(class, &self.host_costs).preferred;
                    Sharing::Preferred(preference.of(class.shape()).or_else(stored))
                }
                Some(Protocol::ReadRendezvous) => Sharing::Forced,
                Some(_) => Sharing::Never,
            },
        }
    }

    /// Records that the core of a peer and this rank's share a cache, or do not.
    pub(super) fn set_distance(&mut self, peer: usize, is_near: bool) {
        self.learned.set_distance(peer, is_near);
    }

    /// Copies the next piece of a shared message, if one should be copied now.
    pub(super) fn copy_out(&mut self, router: &Router) {
        while let Some((id, is_at_once)) = self.shared.next() {
            if self.is_settled(router, id) {
                self.shared.pass();
                self.shared.is_claimed();
                continue;
            }
            if !is_at_once && self.shared.waits() {
                std::hint::spin_loop();
                break;
            }
            match self.copy_piece(router, id) {
                Step::Goes => break,
                Step::Ends => {
                    self.shared.pass();
                    break;
                }
                Step::Copied => {
                    self.shared.pass();
                    self.copied(id);
                    break;
                }
            }
        }
        if self.shared.goes_on() {
            self.deferred.push(Action::CopyOut);
        }
    }

    /// True if nothing of a shared message is to be copied any more: its receiver has claimed it,
    /// or has requested packets.
    fn is_settled(&mut self, router: &Router, id: RequestId) -> bool {
        let send = self.requests.send_mut(id);
        let Some(send) = send.filter(|send| !send.streaming) else {
            return true;
        };
        let transfer = self.transfers.get(id);
        transfer.is_none_or(|transfer| router.is_claimed(send.peer, &transfer.exposure))
    }

    fn copy_piece(&mut self, router: &Router, id: RequestId) -> Step {
        let (shared, send) = (self.transfers.shared_mut(id), self.requests.send_mut(id));
        let (Some((exposure, copy)), Some(send)) = (shared, send) else {
            return Step::Ends;
        };
        let record = |at, copied| router.advance_copy(send.peer, exposure, at, copied);
        copy.step(&mut self.shared.pool, &send.buffer, record)
    }

    /// Completes the user's request of a message that is copied: from now on the message is the
    /// copy.
    fn copied(&mut self, id: RequestId) {
        let shared = self.transfers.shared_mut(id);
        let copied = shared.and_then(|(_, copy)| copy.buffer());
        let (Some(copied), Some(send)) = (copied, self.requests.send_mut(id)) else {
            return;
        };
        send.buffer = copied;
        if let Some(users) = send.users.take() {
            self.requests.complete(users, Status::EMPTY);
        }
    }

    /// True if every receiver of a shared message has it, or receives nothing any more. Until then
    /// this process must not end.
    pub(crate) fn shares_nothing(&mut self, router: &Router) -> bool {
        self.transfers.shared().all(|id| {
            let send = self.requests.send_mut(id);
            send.is_none_or(|send| router.has_left(send.peer))
        })
    }
}

// The receiver's end.
impl Messages {
    /// Claims a shared message, and begins to read it into a receive's buffer, at most `wanted`
    /// bytes. True: the caller continues with the method of the fetch.
    pub(super) fn claim_shared(
        &mut self,
        router: &mut Router,
        fetch: &mut Fetch,
        buffer: &Buffer,
        wanted: usize,
    ) -> Result<bool> {
        router.claim(fetch.peer, &fetch.offer.key)?;
        let shape = (fetch.offer.len as usize, fetch.offer.runs);
        let measured = self.measure_at_once(fetch.peer, shape, true);
        let exposure = router.prepare(fetch.peer, buffer, wanted, Exposed::ToWrite)?;
        if let Some(exposure) = exposure {
            fetch.measured = measured;
            fetch.method = Method::Steps(exposure);
        }
        Ok(true)
    }

    /// Begins to measure a message of a length in bytes and of runs that leaves at once, if this
    /// rank learns costs from it. `is_read`: it arrives by a read.
    pub(super) fn measure_at_once(
        &mut self,
        peer: usize,
        (len, runs): (usize, RunClass),
        is_read: bool,
    ) -> Option<Measured> {
        let class = self.learned.class_of(peer, len, runs)?;
        self.publish(peer, class);
        let is_read_later = self.transfers.are_offered();
        self.learned
            .arrives(peer, class, len, [is_read, is_read_later])
    }

    /// Informs a sender of this receiver's preference for messages of a class, if it has changed.
    pub(super) fn publish(&mut self, peer: usize, class: Class) {
        let new = self.learned.news(peer, class).map(Action::Prefer);
        new.into_iter().for_each(|new| self.deferred.push(new));
    }
}

/// The announcement of a shared message.
fn offer_of((len, runs): (usize, RunClass), key: RemoteKey, capabilities: &Capabilities) -> Offer {
    Offer {
        len: len as u64,
        shared: true,
        push: false,
        settled: capabilities.settled,
        runs,
        key,
    }
}
