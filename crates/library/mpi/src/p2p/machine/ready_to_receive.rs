//! Ready to receive (RTR): for a receive that is posted before its message, the receiver announces
//! its buffer, and the sender writes the message there without asking. Two one-way latencies are
//! saved. Announcements leave several in a packet (`announcement_batch`); `announcer` chooses the
//! receives, and `announced_receives` finds the message of each at the sender.
//!
//! Invariants:
//! - A receive is announced only if every earlier posted receive that could match the same message
//!   has been announced too and is not being cancelled. So the messages with its envelope match
//!   exactly these receives, in order.
//! - An announcement states the number of packets that the receiver has processed, and the number
//!   of receives before its own, both at the moment when it leaves. It leaves only if no message
//!   has matched the receive by then.
//! - Every message takes its number among the messages with its envelope, even a message that is
//!   sent whole.
//! - A written message is preceded, in the order of packets, by its start, so its receive is no
//!   longer posted when later messages arrive.
//! - An announced receive is cancelled only after the sender has confirmed that it holds no RTR for
//!   it.

use channel::{Exposed, Family, NotifiedWrite, Put, Router, Transport, ZeroCopy};
use datatype::Buffer;

use super::announced_receives::Departures;
use super::announcement_batch::Announced;
use super::announcer::Topic;
use super::deferred::RtrMessage;
use super::peer_queue::PeerState;
use super::protocol::{Case, Protocol};
use super::protocol_table::choose;
use super::transfers::Stage;
use super::{Body, Messages, token_of};
use crate::comm::{AGREEMENT, COLLECTIVE};
use crate::matching::Key;
use crate::packet::{
    AnnouncementPacket, Body as _, Envelope, Offer, Progress, ReadyToReceive, RunClass, Started,
    Target, encode,
};
use crate::request::{Operation, RequestId, Send};
use crate::{Result, Status};

// The receiver's end.
impl Messages {
    /// True if long messages with this envelope usually arrive for receives that wait.
    #[inline(always)]
    pub(crate) fn expects_long(&self, key: &Key) -> bool {
        self.announcer.is_active() && self.announcer.expects(key)
    }

    /// True if receives may have to be announced before their messages.
    #[inline(always)]
    pub(crate) fn announces(&self) -> bool {
        self.announcer.is_active()
    }

    /// True if receives of short messages may have to be announced.
    pub(crate) fn announces_short(&self) -> bool {
        self.announcer.tries_short()
    }

    /// Announces a posted receive, if its message may be written to it. `sender`: the peer that the
    /// receive names, where short receives may be announced.
    #[inline(never)]
    pub(crate) fn announce(
        &mut self,
        router: &mut Router,
        id: RequestId,
        key: Key,
        sender: Option<usize>,
    ) -> Result<()> {
        let expected = sender.or(self.announcer.expected_from(&key));
        let Some(peer) = expected.filter(|_| self.announcer.has_room()) else {
            return Ok(());
        };
        let is_announced = |receive: u32| self.transfers.awaits_write(RequestId(receive));
        let is_next = self.posted.is_only_behind(&key, id.0, is_announced);
        let Some(receive) = self.requests.receive_mut(id) else {
            return Ok(());
        };
        let len = receive.buffer.len();
        let capabilities = router.capabilities(peer);
        let can_write = capabilities.zero_copy;
        let can_write = can_write.is_some_and(|zero_copy| zero_copy.notified_write);
        let case = Case {
            has_rtr: true,
            ..Case::of_sender(len, &capabilities, &self.limits)
        };
        if !is_next || !can_write || choose(&case) != Protocol::ReadyToReceive {
            return Ok(());
        }
        let short = case.whole();
        let is_first = short && self.posted.behind(&key, id.0) == Some(0);
        if !self
            .announcer
            .is_worth(Topic { key, short }, peer, is_first)
        {
            return Ok(());
        }
        let (buffer, exposed) = (&receive.buffer, Exposed::ToWrite);
        let Some(exposure) = router.expose(peer, buffer, len, exposed, Family::Messages)? else {
            return Ok(());
        };
        let Some(notice) = router.expect(peer, token_of(id))? else {
            router.retract(exposure)?;
            return Ok(());
        };
        let stage = Stage::Announced {
            notice,
            written: false,
            revoking: false,
        };
        self.transfers.begin(peer, id, exposure, stage);
        self.announcer.opened();
        let announced = Announced {
            receive: id,
            key,
            notice,
        };
        let completed = self.requests.completions;
        match self.batches.add(peer, announced, completed) {
            true => self.send_batch(router, peer),
            false => self.send_queue.set(peer, PeerState::Gathers, true),
        }
        Ok(())
    }

    /// Queues the gathered announcements for all peers, because this rank is about to wait or to
    /// poll.
    #[inline(never)]
    pub(super) fn send_batches(&mut self, router: &Router) {
        while let Some(peer) = self.batches.next_peer() {
            self.send_batch(router, peer);
        }
    }

    /// Queues the announcements that have been gathered for a peer, of receives that no message has
    /// matched.
    pub(super) fn send_batch(&mut self, router: &Router, peer: usize) {
        self.send_queue.set(peer, PeerState::Gathers, false);
        let progress = Progress {
            seen: router.packets_received(peer),
            amid: router.is_amid_packet(peer),
        };
        let room = router.longest_packet(peer);
        let mut packet = AnnouncementPacket::new(progress, room);
        for announced in self.batches.take(peer) {
            let Some((behind, target)) = self.announcement(&announced) else {
                continue;
            };
            if packet.add(announced.key, behind, &target) {
                continue;
            }
            let full = std::mem::replace(&mut packet, AnnouncementPacket::new(progress, room));
            self.push_packet(peer, full);
            // Where a packet has no room for one announcement, the message takes its usual path.
            let _ = packet.add(announced.key, behind, &target);
        }
        self.push_packet(peer, packet);
    }

    fn push_packet(&mut self, peer: usize, packet: AnnouncementPacket) {
        if let Some((envelope, body)) = packet.finish() {
            self.send_queue.push(peer, envelope, body);
        }
    }

    /// The buffer of an announced receive, and the number of posted receives with its envelope
    /// before it. `None`: a message has matched it.
    fn announcement(&mut self, announced: &Announced) -> Option<(usize, Target)> {
        let Announced {
            receive: id,
            key,
            notice: expected,
        } = *announced;
        let transfer = self.transfers.get(id)?;
        let Stage::Announced { notice, .. } = transfer.stage else {
            return None;
        };
        let behind = self.posted.behind(&key, id.0)?;
        let target = Target {
            len: self.requests.receive_mut(id)?.buffer.len() as u64,
            notice,
            receive: id.0,
            key: transfer.exposure.key(),
        };
        (notice == expected).then_some((behind, target))
    }

    /// Records that a receive with this envelope has waited and that its message, announced
    /// meanwhile, is still among the unexpected ones.
    pub(crate) fn waited_for(&mut self, key: &Key) {
        if let Some((sent, message)) = self.unexpected.peek(key)
            && let Body::Offered(announcement) = &message.body
        {
            let (peer, offer) = (message.peer, announcement.offer);
            self.was_early(peer, sent, &offer);
        }
    }

    /// Records that an announced message has matched a receive that waited, if a device is to read
    /// the message.
    pub(super) fn was_early(&mut self, peer: usize, sent: Key, offer: &Offer) {
        let by_device = offer.key.opens_to_device();
        if self.limits.announces && by_device && sent.context & (COLLECTIVE | AGREEMENT) == 0 {
            self.announcer.learn(peer, sent);
        }
    }

    /// Records that a receive has matched a message that took its usual path. If the receive was
    /// announced, its RTR is consumed.
    #[inline(always)]
    pub(super) fn met_otherwise(&mut self, id: RequestId) {
        if !self.transfers.is_empty() {
            self.announced_in_vain(id);
        }
    }

    #[inline(never)]
    fn announced_in_vain(&mut self, id: RequestId) {
        if !self.transfers.is_announced(id) {
            return;
        }
        if let Some(topic) = self.topic(id) {
            self.announcer.disappoint(&topic);
        }
        self.release(id);
    }

    /// The topic (envelope, short or long) by which the announcement of a receive is judged.
    /// `None`: the request is no receive with an exposed buffer.
    fn topic(&mut self, id: RequestId) -> Option<Topic> {
        let peer = self.transfers.get(id)?.peer;
        let receive = self.requests.receive_mut(id)?;
        Some(Topic {
            key: receive.key,
            short: self.send_queue.takes_whole(peer, receive.buffer.len()),
        })
    }

    /// Handles the packet by which a sender reports a write to an announced receive. The error
    /// describes the fault of the packet.
    pub(super) fn started(
        &mut self,
        peer: usize,
        key: Key,
        id: RequestId,
        body: &[u8],
    ) -> std::result::Result<(), &'static str> {
        const WRONG: &str = "the start of a message for a receive that was not announced to it";
        let Started { len } = Started::decode(body).ok_or(WRONG)?;
        let stage = self.transfers.stage_mut(peer, id).ok_or(WRONG)?;
        let Stage::Announced { written, .. } = *stage else {
            return Err(WRONG);
        };
        if !self.posted.withdraw(&key, id.0) {
            return Err(WRONG);
        }
        *stage = Stage::Expecting;
        self.announcer.closed();
        if let Some(receive) = self.requests.receive_mut(id) {
            receive.announced = len as usize;
        }
        if let Some(topic) = self.topic(id) {
            self.announcer.confirm(&topic);
        }
        if written {
            self.transferred(peer, id);
        }
        Ok(())
    }

    /// Begins to cancel an announced receive. False: the receive was not announced.
    pub(super) fn revoke(&mut self, id: RequestId, key: Key) -> bool {
        let Some(peer) = self.transfers.get(id).map(|transfer| transfer.peer) else {
            return false;
        };
        match self.transfers.stage_mut(peer, id) {
            Some(Stage::Announced { revoking, .. }) => {
                if !std::mem::replace(revoking, true) {
                    let envelope = Envelope {
                        kind: ReadyToReceive::Revoke.into(),
                        key,
                        token: id.0,
                    };
                    self.send_queue.push(peer, envelope, Vec::new());
                }
                true
            }
            _ => false,
        }
    }

    /// Handles the sender's answer to a revocation: it has no RTR for this receive any more. If no
    /// message has matched the receive, it is cancelled.
    pub(super) fn revoked(&mut self, peer: usize, id: RequestId) {
        match self.transfers.stage_mut(peer, id) {
            Some(Stage::Announced { revoking: true, .. }) => {}
            _ => return,
        }
        let Some(key) = self.requests.receive_mut(id).map(|receive| receive.key) else {
            return;
        };
        if self.posted.withdraw(&key, id.0) {
            self.release(id);
            self.requests.complete(id, Status::CANCELLED);
        }
    }

    /// Records that the write to an announced receive has ended, maybe before the packet of its
    /// start has arrived. False: the receive was not announced.
    pub(super) fn written_early(&mut self, peer: usize, id: RequestId) -> bool {
        match self.transfers.stage_mut(peer, id) {
            Some(Stage::Announced { written, .. }) => {
                *written = true;
                true
            }
            _ => false,
        }
    }
}

// The sender's end.
impl Messages {
    /// Acts on a message about RTRs, for all messages that are sent from now on.
    pub(super) fn act_on_rtr(&mut self, router: &mut Router, peer: usize, message: &RtrMessage) {
        match message {
            RtrMessage::Announced { progress, runs } => {
                let departures = Departures {
                    sent: router.packets_sent(peer),
                    waits: !self.send_queue.is_clear(peer),
                };
                self.send_queue.set(peer, PeerState::HasRtrs, true);
                for run in runs {
                    self.announced
                        .on_announcement(peer, *progress, run, departures);
                }
            }
            RtrMessage::Revoked { key, receive } => {
                self.announced.revoke(peer, key, *receive);
                let kind = ReadyToReceive::Revoked;
                self.send_queue.push_control(peer, kind, *receive);
            }
        }
    }

    /// The announced buffer for the next message with this envelope, of `len` bytes. The buffer is
    /// used up.
    pub(super) fn target(
        &mut self,
        router: &mut Router,
        peer: usize,
        key: &Key,
        len: usize,
    ) -> Result<Option<Target>> {
        let capabilities = router.capabilities(peer);
        if capabilities.rails > 1 && self.announced.is_worth_hearing(peer, key) {
            let case = Case {
                has_rtr: true,
                ..Case::of_sender(len, &capabilities, &self.limits)
            };
            if choose(&case) == Protocol::ReadyToReceive {
                self.handle_arrivals(router)?;
            }
        }
        Ok(self.announced.consume(peer, key))
    }

    /// Puts a whole message to a peer that has announced receives, but none for this message.
    /// `None`: there is no room.
    pub(super) fn put_tracked(
        &mut self,
        router: &mut Router,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<Option<RequestId>> {
        let put = self.put_eager(router, buffer, peer, key)?;
        if put == Put::Full {
            return Ok(None);
        }
        let sent = router.packets_sent(peer);
        self.announced.departed(peer, &key, sent);
        self.answered(router, put)
    }

    /// Writes a message to an announced buffer. `None`: the message cannot be exposed.
    pub(super) fn write_announced(
        &mut self,
        router: &mut Router,
        buffer: &Buffer,
        peer: usize,
        key: Key,
        target: Target,
    ) -> Result<Option<RequestId>> {
        let len = buffer.len().min(target.len as usize);
        let Some(exposure) = router.prepare(peer, buffer, len, Exposed::ToRead)? else {
            return Ok(None);
        };
        self.tally.announced += 1;
        let envelope = Envelope {
            kind: ReadyToReceive::Start.into(),
            key,
            token: target.receive,
        };
        let send = Send {
            buffer: buffer.clone(),
            peer,
            envelope,
            streaming: true,
            buffered: 0,
            cancelling: false,
            users: None,
            runs: RunClass::ONE,
        };
        let id = self.requests.add(Operation::Send(Box::new(send)))?;
        let started = Started {
            len: buffer.len() as u64,
        };
        self.send_queue.push(peer, envelope, encode(&started));
        self.flush(router)?;
        let token = token_of(id);
        let (key, notice) = (&target.key, target.notice);
        let _started = router.write_notified(peer, &exposure, key, len, notice, token)?;
        self.transfers.begin(peer, id, exposure, Stage::Writing);
        Ok(Some(id))
    }
}

impl Messages {
    /// Ends the transports' access to the buffer of a request, which is complete or whose message
    /// takes another path.
    pub(super) fn release(&mut self, id: RequestId) {
        if !self.transfers.is_empty() {
            self.parts().1.release(id);
        }
    }
}
