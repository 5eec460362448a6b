//! Rendezvous: messages that their sender has announced and keeps until a receive matches.
//!
//! By *read*, the announcement carries a key to the message; the receiver reads and reports the
//! end. By *write*, the receiver answers with a key to its buffer; the sender writes, and a notice
//! ends the write. By *packets*, the receiver asks for the message as packets. `protocol` chooses
//! among them, and among cooperative copies.
//!
//! Invariant: an announced message ends by exactly one of these; where one turns out to
//! be impossible, another takes its place, and packets always work.

use channel::{
    Capabilities, Done, End, Exposed, Exposure, Family, NotifiedWrite, Router, Transfer, Transport,
    ZeroCopy,
};

use super::Messages;
use super::cooperative_copy::{CooperativeCopy, Copied, STEP};
use super::deferred::Action;
use super::fetches::{Fetch, Method};
use super::learned_costs::Class;
use super::message::Announcement;
use super::protocol::{Case, CopyCostSource, Protocol};
use super::protocol_table::{applies, choose, has_copy_costs};
use super::transfers::{Stage, WriteBack};
use super::{received, token_of};
use crate::matching::Key;
use crate::packet::{Body as _, ClearToSend, Control, Offer, Rendezvous, Target, encode};
use crate::request::RequestId;
use crate::{Result, Status};

// The receiver's end.
impl Messages {
    /// An announced message has matched a receive: it will be fetched.
    pub(super) fn accept(
        &mut self,
        id: RequestId,
        peer: usize,
        sent: Key,
        announcement: Announcement,
    ) {
        self.met_otherwise(id);
        if let Some(class) = self.losses.error_of(peer).map(|error| error.class) {
            return self.fail(id, class);
        }
        let Some(receive) = self.requests.receive_mut(id) else {
            return;
        };
        receive.key = sent;
        receive.announced = announcement.offer.len as usize;
        self.fetches.queue.push_back(Fetch {
            peer,
            receive: id,
            sender: announcement.request,
            offer: announcement.offer,
            method: Method::Undecided,
            measured: None,
        });
    }

    /// Performs the deferred actions, begins the fetches that devices perform, and moves the next
    /// step of one that this rank performs. True if anything moved.
    #[inline]
    pub(super) fn advance(&mut self, router: &mut Router) -> Result<bool> {
        if self.fetches.is_empty() && self.deferred.is_empty() {
            return Ok(false);
        }
        self.act_and_fetch(router)
    }

    #[inline(never)]
    fn act_and_fetch(&mut self, router: &mut Router) -> Result<bool> {
        self.act(router)?;
        if self.fetches.is_patient() {
            std::hint::spin_loop();
            return Ok(true);
        }
        loop {
            let left = self.fetches.queue.len();
            self.fetch_next(router)?;
            let is_begun = self.fetches.queue.len() < left;
            if !is_begun || !self.devices_do_next(router) {
                return Ok(true);
            }
        }
    }

    /// Devices move the bytes of the next fetch: it only has to be begun. One that this rank itself
    /// moves takes a round.
    fn devices_do_next(&self, router: &mut Router) -> bool {
        let next = self.fetches.queue.front();
        let zero_copy = next.and_then(|next| router.capabilities(next.peer).zero_copy);
        zero_copy.is_some_and(|zero_copy| !zero_copy.synchronous)
    }

    #[inline(never)]
    fn fetch_next(&mut self, router: &mut Router) -> Result<()> {
        let Some(mut fetch) = self.fetches.queue.pop_front() else {
            return Ok(());
        };
        let Some(receive) = self.requests.receive_mut(fetch.receive) else {
            return Ok(());
        };
        let wanted = receive.announced.min(receive.buffer.len());
        if wanted == 0 {
            self.fetched(&fetch, 0);
            return Ok(());
        }
        if matches!(fetch.method, Method::Undecided) && !self.decide(router, &mut fetch, wanted)? {
            return Ok(());
        }
        match &mut fetch.method {
            Method::Undecided => self.ask_for_packets(&fetch),
            Method::Steps(exposure) => {
                let arrived = self
                    .requests
                    .receive_mut(fetch.receive)
                    .map_or(0, |it| it.arrived);
                let end = wanted.min(arrived + STEP);
                let token = token_of(fetch.receive);
                let key = &fetch.offer.key;
                match router.read(fetch.peer, key, exposure, arrived..end, token)? {
                    Transfer::Done if end == wanted => {
                        fetch.end_access(router)?;
                        self.fetched(&fetch, wanted);
                    }
                    Transfer::Done | Transfer::Started => {
                        if let Some(receive) = self.requests.receive_mut(fetch.receive) {
                            receive.arrived = end;
                        }
                        self.fetches.queue.push_front(fetch);
                    }
                    Transfer::Refused => {
                        fetch.measured = None;
                        fetch.end_access(router)?;
                        self.ask_for_packets(&fetch);
                    }
                }
            }
            Method::Together(copy) => {
                let (key, token) = (&fetch.offer.key, token_of(fetch.receive));
                let copied = copy.advance(router, fetch.peer, key, token);
                if let Ok(Copied::Some) = copied {
                    self.fetches.queue.push_front(fetch);
                    return Ok(());
                }
                fetch.end_access(router)?;
                copied?;
                self.fetched(&fetch, wanted);
            }
        }
        Ok(())
    }

    /// Chooses a protocol for a fetch and begins it. False: the transfer or the sender does the
    /// rest.
    fn decide(&mut self, router: &mut Router, fetch: &mut Fetch, wanted: usize) -> Result<bool> {
        let (peer, id) = (fetch.peer, fetch.receive);
        let capabilities = router.capabilities(peer);
        let Some(receive) = self.requests.receive_mut(id) else {
            return Ok(false);
        };
        let buffer = receive.buffer.clone();
        let limits = self.limits;
        let mut case = Case {
            end: End::Receiver,
            one_run: [fetch.offer.one_run, buffer.as_dense().is_some()],
            readable: !fetch.offer.key.is_none(),
            ..Case::of_sender(wanted, &capabilities, &limits)
        };
        let alone = Capabilities {
            cooperative: false,
            ..capabilities
        };
        let synchronous = capabilities
            .zero_copy
            .is_some_and(|zero_copy| zero_copy.synchronous);
        let mut path = self.path_by_costs(fetch, &case);
        loop {
            let protocol = path.take().unwrap_or_else(|| choose(&case));
            if protocol == Protocol::CooperativeCopy {
                let begun =
                    CooperativeCopy::begin(router, peer, id, &buffer, wanted, fetch.offer.push)?;
                if let Some((copy, invitation)) = begun {
                    let head = Control::about(crate::packet::Cooperative::Invite, fetch.sender);
                    self.send_queue.push(peer, head, encode(&invitation));
                    fetch.method = Method::Together(copy);
                    self.flush(router)?;
                    // The sender begins while this rank returns here.
                    return Ok(self.put_back(fetch));
                }
                case.peer = &alone;
                fetch.measured = None;
                continue;
            }
            let exposed = Exposed::ToWrite;
            let exposure = match protocol {
                Protocol::ReadRendezvous => router.prepare(peer, &buffer, wanted, exposed)?,
                Protocol::WriteRendezvous => {
                    router.expose(peer, &buffer, wanted, exposed, Family::Messages)?
                }
                _ => return Ok(true),
            };
            let Some(exposure) = exposure else {
                case.exposable = false;
                fetch.measured = None;
                continue;
            };
            if protocol == Protocol::WriteRendezvous {
                if self.ask_for_write(router, fetch, exposure, wanted)? {
                    return Ok(false);
                }
                case.exposable = false;
                continue;
            }
            if synchronous {
                fetch.method = Method::Steps(exposure);
                return Ok(true);
            }
            let _started =
                router.read(peer, &fetch.offer.key, &exposure, 0..wanted, token_of(id))?;
            let sender = fetch.sender;
            self.transfers
                .begin(peer, id, exposure, Stage::Reading { sender });
            return Ok(false);
        }
    }

    /// The path that learned or given costs choose for a fetch, if they do; a learning rank begins
    /// to measure the fetch.
    fn path_by_costs(&mut self, fetch: &mut Fetch, case: &Case) -> Option<Protocol> {
        if !has_copy_costs(case) {
            return None;
        }
        let (len, is_near) = (case.len, case.peer.push);
        let is_followed = !self.fetches.is_empty();
        let possible = |protocol| applies(protocol, case);
        if case.limits.copy_costs == CopyCostSource::Given {
            return self.given.choose(len, is_near, is_followed, possible);
        }
        let class = Class::of(len, is_near, is_followed);
        let measured = self
            .learned
            .choose(class, len, fetch.offer.settled, possible);
        fetch.measured = Some(measured);
        Some(measured.path())
    }

    /// Continues a fetch at the next progress. The answer is false, for `decide`.
    fn put_back(&mut self, fetch: &mut Fetch) -> bool {
        let fetch = Fetch {
            method: std::mem::replace(&mut fetch.method, Method::Undecided),
            ..*fetch
        };
        self.fetches.queue.push_front(fetch);
        false
    }

    /// Asks the sender to write to the exposed buffer. False: no further write can be awaited now.
    fn ask_for_write(
        &mut self,
        router: &mut Router,
        fetch: &Fetch,
        exposure: Exposure,
        wanted: usize,
    ) -> Result<bool> {
        let (peer, id) = (fetch.peer, fetch.receive);
        let Some(notice) = router.expect(peer, token_of(id))? else {
            router.retract(exposure)?;
            return Ok(false);
        };
        let target = Target {
            len: wanted as u64,
            notice,
            receive: id.0,
            key: exposure.key(),
        };
        self.transfers.begin(peer, id, exposure, Stage::Expecting);
        let head = Control::about(Rendezvous::ClearToWrite, fetch.sender);
        self.send_queue.push(peer, head, encode(&target));
        Ok(true)
    }

    fn ask_for_packets(&mut self, fetch: &Fetch) {
        if let Some(receive) = self.requests.receive_mut(fetch.receive) {
            receive.arrived = 0;
        }
        let body = ClearToSend {
            receive: fetch.receive.0,
        };
        if let Some(measured) = fetch.measured {
            self.learned.by_packets(fetch.receive.0, measured);
        }
        let head = Control::about(Rendezvous::ClearToSend, fetch.sender);
        self.send_queue.push(fetch.peer, head, encode(&body));
    }

    /// The message is here.
    fn fetched(&mut self, fetch: &Fetch, bytes: usize) {
        let Some(receive) = self.requests.receive_mut(fetch.receive) else {
            return;
        };
        receive.arrived = bytes;
        if let Some(measured) = fetch.measured {
            self.learned.ended(measured);
        }
        let Some(receive) = self.requests.receive_mut(fetch.receive) else {
            return;
        };
        let status = received(&receive.buffer, receive.key, receive.announced);
        self.send_queue
            .push_control(fetch.peer, Rendezvous::Finished, fetch.sender);
        self.requests.complete(fetch.receive, status);
    }
}

// Both ends.
impl Messages {
    /// Performs the deferred actions: all that take no time, and one step of a cooperative copy.
    pub(super) fn act(&mut self, router: &mut Router) -> Result<()> {
        while let Some(action) = self.deferred.next() {
            match action {
                Action::Help(help) => return self.help(router, help),
                Action::Write(write) => self.write(router, &write)?,
                Action::Rtr(peer, message) => self.hear_rtr(router, peer, &message),
                Action::Forget { peer, notice } => router.forget(peer, notice),
                Action::Retract(exposure) => router.retract(exposure)?,
                Action::Complete(request) => self.requests.complete(request, Status::EMPTY),
                Action::Raise(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the accesses to the buffers of requests that have failed. To be called before their
    /// calls return: then the buffers are the user's again.
    #[cold]
    pub(crate) fn end_accesses(&mut self, router: &mut Router) -> Result<()> {
        while let Some(action) = self.deferred.next_end() {
            match action {
                Action::Forget { peer, notice } => router.forget(peer, notice),
                Action::Retract(exposure) => router.retract(exposure)?,
                _ => (),
            }
        }
        Ok(())
    }

    /// Writes a message of this rank's to its receiver's buffer.
    fn write(&mut self, router: &mut Router, write: &WriteBack) -> Result<()> {
        let WriteBack {
            peer,
            request,
            target,
        } = *write;
        let len = target.len as usize;
        let Some(send) = self.requests.send_mut(request) else {
            return Ok(());
        };
        let buffer = send.buffer.clone();
        match router.prepare(peer, &buffer, len, Exposed::ToRead)? {
            Some(exposure) => {
                let (key, notice) = (&target.key, target.notice);
                let token = token_of(request);
                let _started = router.write_notified(peer, &exposure, key, len, notice, token)?;
                self.transfers
                    .begin(peer, request, exposure, Stage::Writing);
            }
            None => self.send_queue.push_stream(peer, request, target.receive),
        }
        Ok(())
    }

    /// A device has completed a transfer, or a peer's write has ended.
    pub(crate) fn transfer_done(&mut self, done: &Done) {
        let id = RequestId(done.token.id as u32);
        if !self.written_early(done.peer, id) && !self.transferred(done.peer, id) {
            self.nonsense(done.peer, "the end of a transfer that was not begun");
        }
    }

    /// The transfer of a request is complete. False: there is none with this peer.
    pub(super) fn transferred(&mut self, peer: usize, id: RequestId) -> bool {
        match self.transfers.end(id) {
            Some(transfer) if transfer.peer == peer => {
                if let Stage::Reading { sender } = transfer.stage {
                    self.send_queue
                        .push_control(peer, Rendezvous::Finished, sender);
                }
                self.deferred.retract(transfer.exposure);
            }
            _ => return false,
        }
        let status = match self.requests.receive_mut(id) {
            Some(receive) => received(&receive.buffer, receive.key, receive.announced),
            None => Status::EMPTY,
        };
        self.requests.complete(id, status);
        true
    }

    /// A packet about an announced message.
    pub(super) fn on_rendezvous(
        &mut self,
        kind: Rendezvous,
        peer: usize,
        key: Key,
        request: RequestId,
        body: crate::packet::Contents,
    ) -> std::result::Result<(), &'static str> {
        match kind {
            Rendezvous::RequestToSend => {
                let offer =
                    Offer::decode(body.bytes).ok_or("an announcement that cannot be read")?;
                let request = request.0;
                let announcement = Announcement { request, offer };
                match self.posted.take(&key) {
                    Some(receive) => {
                        self.was_early(peer, key, &offer);
                        self.accept(RequestId(receive), peer, key, announcement);
                    }
                    None => self.keep(peer, key, super::Body::Offered(announcement)),
                }
            }
            Rendezvous::ClearToSend => {
                let clear = ClearToSend::decode(body.bytes);
                match (clear, self.requests.send_mut(request)) {
                    (Some(ClearToSend { receive }), Some(send)) if send.peer == peer => {
                        send.streaming = true;
                        self.send_queue.push_stream(peer, request, receive);
                    }
                    _ => return Err("a clear-to-send for a message that was not announced"),
                }
            }
            Rendezvous::ClearToWrite => {
                let target = Target::decode(body.bytes);
                match (target, self.requests.send_mut(request)) {
                    (Some(target), Some(send))
                        if send.peer == peer && target.len <= send.buffer.len() as u64 =>
                    {
                        send.streaming = true;
                        self.deferred.push(Action::Write(WriteBack {
                            peer,
                            request,
                            target,
                        }));
                    }
                    _ => return Err("a clear-to-write for a message that was not announced"),
                }
            }
            Rendezvous::Data => self.take_piece(request, body)?,
            Rendezvous::Finished => match self.requests.send_mut(request) {
                Some(send) if send.peer == peer => {
                    self.release(request);
                    self.requests.complete(request, Status::EMPTY);
                }
                _ => return Err("the end of a message that was not sent to it"),
            },
        }
        Ok(())
    }
}
