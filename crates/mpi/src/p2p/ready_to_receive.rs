//! Ready to receive (RTR): for a receive that is posted before its message, the receiver announces
//! its buffer at once, and the sender writes the message there without asking. Two one-way
//! latencies are saved.
//!
//! Invariants:
//! - A receive is announced only if every earlier posted receive that could match the same message
//!   has been announced too, so the next message with its key is its message.
//! - An RTR carries the number of packets that the receiver had seen. If the sender has meanwhile
//!   sent a message with this key that consumed no RTR, it discards this RTR: the receive may match
//!   that message. A discard is always safe, because the message then takes its usual path.
//! - Every message consumes the oldest RTR of its key, even a message that is sent whole.
//! - A written message is preceded, in the order of packets, by its start, so later messages find
//!   its receive gone.
//! - An announced receive is cancelled only after the sender has confirmed that it holds no RTR for
//!   it.
//!
//! The posted size is not the size of the message, and a registration without a message is a loss:
//! a receive is announced only where long messages with its key have usually met receives that
//! waited for them.

use std::collections::{HashMap, VecDeque};

use channel::{Exposed, NotifiedWrite, Put, Router, Transport, ZeroCopy};
use datatype::Buffer;

use super::protocol::{Case, Protocol, choose};
use super::send_queue::PeerState;
use super::transfers::Stage;
use super::{Body, Messages, token_of};
use crate::comm::{AGREEMENT, COLLECTIVE};
use crate::matching::Key;
use crate::packet::{Body as _, Envelope, Offer, ReadyToReceive, Rtr, Started, Target, encode};
use crate::request::{Mode, Operation, RequestId, Send};
use crate::{Result, Status};

/// Most keys that either end remembers.
const KEYS: usize = 1024;
/// Most announced receives without a message.
const OPEN: usize = 64;
/// Bound of a habit's score, either way.
const SURE: i8 = 4;
/// Loss of score for a receive that was announced in vain.
pub(super) const IN_VAIN: i8 = 2;

/// The receiver's knowledge: which receives are worth an announcement.
#[derive(Default)]
pub(super) struct Announcer {
    habits: HashMap<Key, Habit>,
    /// Number of announced receives without a message.
    open: usize,
}

/// Experience with one key: positive if its messages are long and meet receives that wait.
struct Habit {
    peer: usize,
    score: i8,
}

impl Announcer {
    /// True if some receives may have to be announced.
    #[inline(always)]
    pub(super) fn has_habits(&self) -> bool {
        !self.habits.is_empty()
    }

    /// The peer that usually sends long messages with this key to receives that wait.
    fn expected_from(&self, key: &Key) -> Option<usize> {
        let habit = self.habits.get(key)?;
        (habit.score > 0).then_some(habit.peer)
    }

    fn has_room(&self) -> bool {
        self.open < OPEN
    }

    fn opened(&mut self) {
        self.open += 1;
    }

    /// An announced receive has its message, or will have none.
    pub(super) fn closed(&mut self) {
        self.open -= 1;
    }

    /// A long message with this key met a receive that waited.
    fn learn(&mut self, peer: usize, key: Key) {
        if self.habits.len() < KEYS || self.habits.contains_key(&key) {
            let habit = self.habits.entry(key).or_insert(Habit { peer, score: 0 });
            habit.score = (habit.score + 1).min(SURE);
        }
    }

    fn confirm(&mut self, key: &Key) {
        if let Some(habit) = self.habits.get_mut(key) {
            habit.score = (habit.score + 1).min(SURE);
        }
    }

    fn disappoint(&mut self, key: &Key, cost: i8) {
        if let Some(habit) = self.habits.get_mut(key) {
            habit.score = (habit.score - cost).max(-SURE);
        }
    }
}

/// The sender's knowledge: the announced receives of each peer, by key.
#[derive(Default)]
pub(super) struct AnnouncedReceives {
    peers: HashMap<usize, HashMap<Key, Track>>,
}

struct Track {
    last: Last,
    /// The oldest first.
    targets: VecDeque<Target>,
}

/// The last message with a key that consumed no RTR.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// It was among the first packets, of this number.
    Sent(u64),
    /// It may not have left.
    Queued,
}

impl AnnouncedReceives {
    fn track(&mut self, peer: usize, key: &Key) -> Option<&mut Track> {
        self.peers.get_mut(&peer)?.get_mut(key)
    }

    /// Notes an announcement, unless a message that left since may be the one for that receive.
    /// `sent`: packets that have left for the peer; `waits`: packets for the peer are queued.
    fn announced(&mut self, peer: usize, key: Key, rtr: &Rtr, sent: u64, waits: bool) {
        let keys = self.peers.entry(peer).or_default();
        if keys.len() >= KEYS && !keys.contains_key(&key) {
            return;
        }
        let track = keys.entry(key).or_insert(Track {
            last: Last::Queued,
            targets: VecDeque::new(),
        });
        if track.last == Last::Queued && !waits {
            track.last = Last::Sent(sent);
        }
        match track.last {
            Last::Sent(last) if last <= rtr.seen && track.targets.len() < OPEN => {
                track.targets.push_back(rtr.target);
            }
            _ => {}
        }
    }

    fn revoked(&mut self, peer: usize, key: &Key, receive: u32) {
        if let Some(track) = self.track(peer, key) {
            track.targets.retain(|target| target.receive != receive);
        }
    }

    /// The RTR that the next message with this key consumes.
    fn consume(&mut self, peer: usize, key: &Key) -> Option<Target> {
        let track = self.track(peer, key)?;
        let target = track.targets.pop_front();
        if target.is_none() {
            // Until the message is known to have left.
            track.last = Last::Queued;
        }
        target
    }

    /// The last message with this key that consumed no RTR has left, among the first `sent`
    /// packets.
    fn left(&mut self, peer: usize, key: &Key, sent: u64) {
        if let Some(track) = self.track(peer, key)
            && track.last == Last::Queued
        {
            track.last = Last::Sent(sent);
        }
    }
}

/// A message of the receiver about its announcements.
pub(super) enum RtrMessage {
    Announced { key: Key, rtr: Rtr },
    Revoked { key: Key, receive: u32 },
}

// The receiver's end.
impl Messages {
    /// True if long messages with this key usually arrive for receives that wait.
    #[inline(always)]
    pub(crate) fn expects_long(&self, key: &Key) -> bool {
        self.announcer.has_habits() && self.announcer.expected_from(key).is_some()
    }

    /// True if some receives may have to be announced.
    #[inline(always)]
    pub fn announces(&self) -> bool {
        self.announcer.has_habits()
    }

    /// Announces a posted receive, if its message may be written to it.
    #[inline(never)]
    pub(crate) fn announce(&mut self, router: &mut Router, id: RequestId, key: Key) -> Result<()> {
        let expected = self.announcer.expected_from(&key);
        let Some(peer) = expected.filter(|_| self.announcer.has_room()) else {
            return Ok(());
        };
        let is_announced = |receive: u32| self.transfers.is_announced(RequestId(receive));
        let is_next = self.posted.is_only_behind(&key, id.0, is_announced);
        let Some(receive) = self.requests.receive_mut(id) else {
            return Ok(());
        };
        let len = receive.buffer.len();
        let can_write = router.capabilities(peer).zero_copy;
        let can_write = can_write.is_some_and(|zero_copy| zero_copy.notified_write);
        if !is_next || !can_write || len <= self.send_queue.whole(peer) {
            return Ok(());
        }
        let Some(exposure) = router.expose(peer, &receive.buffer, len, Exposed::ToWrite)? else {
            return Ok(());
        };
        let Some(notice) = router.expect(peer, token_of(id))? else {
            router.retract(exposure)?;
            return Ok(());
        };
        let rtr = Rtr {
            seen: router.packets_received(peer),
            target: Target {
                len: len as u64,
                notice,
                receive: id.0,
                key: exposure.key(),
            },
        };
        let stage = Stage::Announced {
            notice,
            written: false,
            revoking: false,
        };
        self.transfers.begin(peer, id, exposure, stage);
        self.announcer.opened();
        let envelope = Envelope {
            kind: ReadyToReceive::Announce.into(),
            key,
            token: 0,
        };
        self.send_queue.push(peer, envelope, encode(&rtr));
        Ok(())
    }

    /// A receive has waited, and its message is still unexpected.
    pub(crate) fn waited_for(&mut self, key: &Key) {
        if let Some((sent, message)) = self.unexpected.peek(key)
            && let Body::Offered(announcement) = &message.body
        {
            let (peer, offer) = (message.peer, announcement.offer);
            self.was_early(peer, sent, &offer);
        }
    }

    /// An announced message, to be read by a device, has met a receive that waited.
    pub(super) fn was_early(&mut self, peer: usize, sent: Key, offer: &Offer) {
        let by_device = offer.key.opens_to_device();
        let is_auto = self.limits.rendezvous == knobs::Rendezvous::Auto;
        if is_auto && by_device && sent.context & (COLLECTIVE | AGREEMENT) == 0 {
            self.announcer.learn(peer, sent);
        }
    }

    /// A receive has met a message that took its usual path. If the receive was announced, its RTR
    /// is consumed.
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
        if let Some(receive) = self.requests.receive_mut(id) {
            self.announcer.disappoint(&receive.key, IN_VAIN);
        }
        self.release(id);
    }

    /// The message of an announced receive is being written. The error says what is wrong with
    /// that.
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
        self.announcer.confirm(&key);
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

    /// The sender holds no RTR for this receive. If no message has met it, it is cancelled.
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

    /// The write to an announced receive has ended, maybe before the packet of its start has come.
    /// False: the receive was not announced.
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
    /// Acts on a message about RTRs. It precedes everything that is sent from now on.
    pub(super) fn hear_rtr(&mut self, router: &mut Router, peer: usize, message: &RtrMessage) {
        match *message {
            RtrMessage::Announced { key, rtr } => {
                let waits = !self.send_queue.is_clear(peer);
                self.send_queue.set(peer, PeerState::HasRtrs, true);
                let sent = router.packets_sent(peer);
                self.announced.announced(peer, key, &rtr, sent, waits);
            }
            RtrMessage::Revoked { key, receive } => {
                self.announced.revoked(peer, &key, receive);
                let kind = ReadyToReceive::Revoked;
                self.send_queue.push_control(peer, kind, receive);
            }
        }
    }

    /// A send to a peer that has announced receives. `None`: it takes its usual path.
    pub(super) fn send_tracked(
        &mut self,
        router: &mut Router,
        mode: Mode,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<Option<RequestId>> {
        let target = self.announced.consume(peer, &key);
        let len = buffer.len();
        let capabilities = router.capabilities(peer);
        let case = Case {
            synchronous: mode == Mode::Synchronous,
            has_rtr: target.is_some(),
            ..Case::of_sender(len, &capabilities, &self.limits)
        };
        match (choose(&case), target) {
            (Protocol::ReadyToReceive, Some(target)) => {
                self.write_announced(router, buffer, peer, key, target)
            }
            (Protocol::Eager, _) if mode != Mode::Synchronous && self.send_queue.is_clear(peer) => {
                let put = self.put_eager(router, buffer, peer, key)?;
                if put == Put::Full {
                    return Ok(None);
                }
                self.has_left(router, peer, &key);
                if put == Put::AcceptedPollNow {
                    self.listen(router)?;
                }
                Ok(Some(self.requests.done()))
            }
            _ => Ok(None),
        }
    }

    /// If nothing is queued, a message that consumed no RTR has left.
    pub(super) fn has_left(&mut self, router: &mut Router, peer: usize, key: &Key) {
        if self.send_queue.is_clear(peer) {
            self.announced.left(peer, key, router.packets_sent(peer));
        }
    }

    /// Writes a message to an announced buffer. `None`: the message cannot be exposed.
    fn write_announced(
        &mut self,
        router: &mut Router,
        buffer: &Buffer,
        peer: usize,
        key: Key,
        target: Target,
    ) -> Result<Option<RequestId>> {
        let len = buffer.len().min(target.len as usize);
        let Some(exposure) = router.expose(peer, buffer, len, Exposed::ToRead)? else {
            return Ok(None);
        };
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

#[cfg(test)]
mod tests {
    use channel::RemoteKey;

    use super::*;

    const KEY: Key = Key {
        context: 1,
        source: 2,
        tag: 3,
    };

    fn rtr(receive: u32, seen: u64) -> Rtr {
        let target = Target {
            len: 1 << 20,
            notice: receive,
            receive,
            key: RemoteKey::NONE,
        };
        Rtr { seen, target }
    }

    fn receive(target: Option<Target>) -> Option<u32> {
        target.map(|target| target.receive)
    }

    #[test]
    fn messages_consume_the_oldest_rtr_of_their_key() {
        let mut announced = AnnouncedReceives::default();
        for number in [5, 6] {
            announced.announced(1, KEY, &rtr(number, 10), 10, false);
        }
        assert_eq!(receive(announced.consume(0, &KEY)), None, "another peer");
        assert_eq!(receive(announced.consume(1, &KEY)), Some(5));
        announced.revoked(1, &KEY, 6);
        assert_eq!(receive(announced.consume(1, &KEY)), None);
    }

    #[test]
    fn an_rtr_that_may_be_stale_is_discarded() {
        let mut announced = AnnouncedReceives::default();
        // Twelve packets have left, of which the receiver had seen ten.
        announced.announced(1, KEY, &rtr(5, 10), 12, false);
        assert_eq!(receive(announced.consume(1, &KEY)), None);
        // A message without an RTR is on its way out.
        announced.announced(1, KEY, &rtr(6, 12), 12, true);
        assert_eq!(receive(announced.consume(1, &KEY)), None);
        announced.left(1, &KEY, 13);
        announced.announced(1, KEY, &rtr(7, 12), 13, false);
        assert_eq!(receive(announced.consume(1, &KEY)), None);
        announced.left(1, &KEY, 14);
        announced.announced(1, KEY, &rtr(8, 14), 14, false);
        assert_eq!(receive(announced.consume(1, &KEY)), Some(8));
    }

    #[test]
    fn habits_decide_what_is_announced() {
        let mut announcer = Announcer::default();
        assert!(announcer.expected_from(&KEY).is_none());
        announcer.learn(4, KEY);
        assert_eq!(announcer.expected_from(&KEY), Some(4));
        announcer.disappoint(&KEY, IN_VAIN);
        assert!(announcer.expected_from(&KEY).is_none());
        announcer.learn(4, KEY);
        announcer.confirm(&KEY);
        assert_eq!(announcer.expected_from(&KEY), Some(4));
    }
}
