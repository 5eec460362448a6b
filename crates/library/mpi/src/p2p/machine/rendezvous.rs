//! Rendezvous: messages that their sender has announced and keeps until a receive matches.
//!
//! *Read*: the announcement carries a remote key of the send buffer; the receiver reads and reports
//! the end. *Write*: the receiver answers with a remote key of its buffer; the sender writes, and a
//! notice ends the write. *Packets*: the receiver asks for the message as packets. `protocol`
//! chooses among them, and among cooperative copies.
//!
//! Invariant: an announced message ends by exactly one of these; if one turns out to be impossible,
//! another replaces it, and packets always work.

use channel::{
    Capabilities, Done, End, Exposed, Exposure, Family, MappedMemory, NotifiedWrite, Router,
    Transfer, Transport, ZeroCopy,
};

use super::Messages;
use super::cooperative_copy::{CooperativeCopy, Copied};
use super::cost_classes::Class;
use super::deferred::Action;
use super::fetches::{Fetch, Method};
use super::learned_costs::Ring;
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
    /// Queues the fetch of an announced message that has matched a receive.
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

    /// True if a device moves the bytes of the next fetch, so that this rank only has to begin it.
    /// A step of a fetch that this rank copies itself takes a pass of progress.
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
                let end = wanted.min(arrived + self.fetches.pace.step());
                let token = token_of(fetch.receive);
                let key = &fetch.offer.key;
                self.learned.step_begins(&mut fetch.measured);
                let mut read = || router.read(fetch.peer, key, exposure, arrived..end, token);
                // Where nothing is learned from time, equal messages move in equal steps.
                let read = match self.limits.copy_costs {
                    CopyCostSource::Learned => self.fetches.pace.measure(end - arrived, read),
                    CopyCostSource::Estimated => read(),
                };
                match read? {
                    Transfer::Done if end == wanted => {
                        fetch.end_access(router)?;
                        self.fetched(&fetch, wanted);
                    }
                    Transfer::Done | Transfer::Started => {
                        if let Some(receive) = self.requests.receive_mut(fetch.receive) {
                            receive.arrived = end;
                        }
                        self.learned.step_ends(&mut fetch.measured);
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
                if let Copied::All = copied? {
                    self.fetched(&fetch, wanted);
                } else {
                    fetch.measured = None;
                    self.ask_for_packets(&fetch);
                }
            }
        }
        Ok(())
    }

    /// Chooses a protocol for a fetch and begins it. False: the transfer, the sender or the next
    /// progress continues the fetch.
    fn decide(&mut self, router: &mut Router, fetch: &mut Fetch, wanted: usize) -> Result<bool> {
        let (peer, id) = (fetch.peer, fetch.receive);
        let capabilities = router.capabilities(peer);
        let Some(receive) = self.requests.receive_mut(id) else {
            return Ok(false);
        };
        let buffer = receive.buffer.clone();
        if fetch.offer.shared {
            self.set_distance(peer, capabilities.push);
            return self.claim_shared(router, fetch, &buffer, wanted);
        }
        let limits = self.limits;
        let mut case = Case {
            end: End::Receiver,
            one_run: [fetch.offer.runs.is_one(), buffer.as_dense().is_some()],
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
                let (push, most) = (fetch.offer.push, self.fetches.pace.step());
                let begun = CooperativeCopy::begin(router, peer, id, &buffer, wanted, push, most)?;
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

    /// The path that learned costs choose for a fetch, if they do; then the fetch is measured.
    fn path_by_costs(&mut self, fetch: &mut Fetch, case: &Case) -> Option<Protocol> {
        if !has_copy_costs(case) {
            return None;
        }
        let (len, is_near) = (case.len, case.peer.push);
        let is_followed = !self.fetches.is_empty();
        let class = Class::of(len, is_near, is_followed).in_runs(fetch.offer.runs);
        // Messages in runs settle no ring: packets are the exception for them.
        let settles = case.one_run[0] && !fetch.offer.settled;
        let grows = settles && self.learned.packets_may_win(fetch.peer);
        let ring = if grows { Ring::Grows } else { Ring::Settled };
        let mut measured = self
            .learned
            .choose(class, len, ring, choose(case), |it| applies(it, case));
        let is_both = self.transfers.are_offered();
        self.learned.pair(&mut measured, is_both);
        fetch.measured = Some(measured);
        Some(measured.path())
    }

    /// Puts a fetch back to the front of the queue, so that the next progress continues it. Returns
    /// false, the result of `decide`.
    fn put_back(&mut self, fetch: &mut Fetch) -> bool {
        let fetch = Fetch {
            method: std::mem::replace(&mut fetch.method, Method::Undecided),
            ..*fetch
        };
        self.fetches.queue.push_front(fetch);
        false
    }

    /// Requests that the sender writes to the exposed buffer. False: this rank cannot await a
    /// further write now.
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

    /// Completes a receive whose message has been fetched, `bytes` bytes of it, and reports that to
    /// the sender.
    fn fetched(&mut self, fetch: &Fetch, bytes: usize) {
        let Some(receive) = self.requests.receive_mut(fetch.receive) else {
            return;
        };
        receive.arrived = bytes;
        if let Some(measured) = fetch.measured {
            self.learned.ended(measured);
            if fetch.offer.shared {
                self.publish(fetch.peer, measured.class());
            }
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
    /// Performs the deferred actions up to the first cooperative copy, of which it performs one
    /// step.
    ///
    /// A rank that has messages to fetch does not help others to fetch theirs. Otherwise, with
    /// messages in both directions, each rank would choose cooperative copies for the help alone,
    /// and lose as much to the help that it gives.
    pub(super) fn act(&mut self, router: &mut Router) -> Result<()> {
        while let Some(action) = self.deferred.next(!self.fetches.is_empty()) {
            match action {
                Action::Help(help) => return self.help(router, help),
                Action::Write(write) => self.write(router, &write)?,
                Action::Rtr(peer, message) => self.act_on_rtr(router, peer, &message),
                Action::Forget { peer, notice } => router.forget(peer, notice),
                Action::Retract(exposure) => router.retract(exposure)?,
                Action::Complete(request) => self.requests.complete(request, Status::EMPTY),
                Action::CopyOut => {
                    self.copy_out(router);
                    return Ok(());
                }
                Action::Prefer(new) => {
                    if let Some(word) = router.preference(new.sender, End::Receiver) {
                        word.prefer(new.shape, new.preferred);
                    }
                }
                Action::Raise(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the accesses to the buffers of requests that have failed. Must be called before the
    /// user learns of the failures: from then on the buffers are the user's.
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

    /// Writes a message that this rank sends to its receiver's buffer.
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

    /// Handles the end of a device's transfer, or of a peer's write.
    pub(crate) fn transfer_done(&mut self, done: &Done) {
        let id = RequestId(done.token.id as u32);
        if !self.written_early(done.peer, id) && !self.transferred(done.peer, id) {
            self.nonsense(done.peer, "the end of a transfer that was not begun");
        }
    }

    /// Ends the transfer of a request and completes the request. False: it has no transfer with
    /// this peer.
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

    /// Handles a packet about an announced message.
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
