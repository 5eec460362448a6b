//! Receiver-initiated rendezvous: for a receive that is posted before its message, the receiver says at once where the
//! buffer lies (*ahead*), and the sender writes the message there without asking. Two ways across are saved.
//!
//! What must always hold:
//! - A receive is told ahead only if every earlier posted receive that could take the same message has been told ahead
//!   too: so the next message with its key is its message.
//! - What is told ahead carries how many packets the receiver had seen. A sender that has since sent a message with that key
//!   which no other target was used up by drops it: that message may be the one. Dropping is always safe, for the message
//!   then goes its usual way.
//! - Every message uses up the oldest target of its key, also one that is sent whole.
//! - A message that is written is preceded, in the order of packets, by `Started`, so later messages find its receive gone.
//! - A receive that was told ahead is cancelled only once the sender has said that it holds no target for it.
//!
//! The posted size is not the message's size, and a buffer that is registered for nothing costs: a receive is told ahead
//! only where long messages have met receives that waited for them, with this key, more often than not.

use std::collections::{HashMap, VecDeque};

use channel::{Channels, Exposed, OneSided, Put};
use datatype::Buffer;

use super::rdma::{Stage, Transfer, expose, moves};
use super::rendezvous::Chore;
use super::send_queue::Mark;
use super::{Body, Messages, Mode};
use crate::comm::{AGREEMENT, COLLECTIVE};
use crate::matching::Key;
use crate::packet::{Ahead, Envelope, Kind, Offer, Target};
use crate::request::{Operation, RequestId, Send};
use crate::{Result, Status};

/// Keys that are remembered, at either end.
const KEYS: usize = 1024;
/// Receives that may be told ahead and have not met their message.
const OPEN: usize = 64;
/// How sure habits can become, either way.
const SURE: i8 = 4;

/// What a receiver knows.
#[derive(Default)]
pub(super) struct Receiver {
    habits: HashMap<Key, Habit>,
    /// How many are told ahead.
    open: usize,
}

/// Whether messages with a key are long and come to receives that wait.
struct Habit {
    peer: usize,
    score: i8,
}

/// What a sender knows of one peer's receives, by key.
#[derive(Default)]
pub(super) struct Sender {
    keys: HashMap<Key, Track>,
}

struct Track {
    last: Last,
    /// The oldest first.
    targets: VecDeque<Target>,
}

/// The last message with a key that used up no target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// It had left when so many packets had.
    Sent(u64),
    /// It may not have left.
    Queued,
}

/// What has been told to a sender ahead, or taken back from it, and waits for its turn.
pub(super) enum Word {
    Told { key: Key, ahead: Ahead },
    Revoked { key: Key, receive: u32 },
}

// The receiver's end.
impl Messages {
    /// Long messages with this key usually come to receives that wait.
    #[inline(always)]
    pub(crate) fn expects_long(&self, key: &Key) -> bool {
        !self.ahead.habits.is_empty()
            && self
                .ahead
                .habits
                .get(key)
                .is_some_and(|habit| habit.score > 0)
    }

    /// Some receives may have to be told ahead.
    #[inline(always)]
    pub fn tells_ahead(&self) -> bool {
        !self.ahead.habits.is_empty()
    }

    /// Tells a receive that has begun, if it waits for a message that may be written to it.
    #[inline(never)]
    pub fn tell_ahead(&mut self, channels: &mut Channels, id: RequestId, key: Key) -> Result<()> {
        if !self.expects_long(&key) || self.ahead.open >= OPEN {
            return Ok(());
        }
        let Some(peer) = self.ahead.habits.get(&key).map(|habit| habit.peer) else {
            return Ok(());
        };
        let is_ahead = |receive: u32| {
            let told = self.transfers.get(&receive);
            told.is_some_and(|transfer| matches!(transfer.stage, Stage::Ahead { .. }))
        };
        let is_next = self.posted.is_only_behind(&key, id.0, is_ahead);
        let (Some(receive), Some(rdma)) = (self.requests.receive_mut(id), channels.rdma_to(peer))
        else {
            return Ok(());
        };
        let len = receive.buffer.len();
        if !is_next || len <= self.limits.whole {
            return Ok(());
        }
        let Some(exposure) = expose(rdma, &receive.buffer, len, Exposed::ToWrite)? else {
            return Ok(());
        };
        let moved = Envelope::about(Kind::Moved, id.0).encode();
        let Some(notice) = rdma.expect(peer, moved)? else {
            rdma.retract(exposure)?;
            return Ok(());
        };
        let ahead = Ahead {
            target: Target {
                place: exposure.place(),
                len: len as u64,
                notice,
                receive: id.0,
            },
            seen: rdma.taken(peer),
        };
        let stage = Stage::Ahead {
            notice,
            written: false,
            revoking: false,
        };
        self.begin_transfer(peer, id, exposure, stage);
        self.ahead.open += 1;
        let envelope = Envelope {
            kind: Kind::Ahead,
            key,
            token: 0,
        };
        self.queue_short(peer, envelope, &ahead.encode());
        Ok(())
    }

    /// A receive has waited, and what came for it meanwhile is still unexpected.
    pub(crate) fn waited_for(&mut self, key: &Key) {
        if let Some((sent, message)) = self.unexpected.peek(key)
            && let Body::Offered { offer, .. } = &message.body
        {
            let (peer, offer) = (message.peer, *offer);
            self.was_early(peer, sent, &offer);
        }
    }

    /// A message of a peer's that was offered, to be read by RDMA, has met a receive that waited.
    pub(super) fn was_early(&mut self, peer: usize, sent: Key, offer: &Offer) {
        let by_rdma = self.limits.rendezvous == knobs::Rendezvous::Auto && offer.key.is_some();
        if !by_rdma || sent.context & (COLLECTIVE | AGREEMENT) != 0 {
            return;
        }
        if self.ahead.habits.len() < KEYS || self.ahead.habits.contains_key(&sent) {
            let habit = self
                .ahead
                .habits
                .entry(sent)
                .or_insert(Habit { peer, score: 0 });
            habit.score = (habit.score + 1).min(SURE);
        }
    }

    /// A receive has met a message that came the usual way. If it was told ahead, its target is used up.
    #[inline(always)]
    pub(super) fn met_otherwise(&mut self, id: RequestId, cost: i8) {
        if !self.transfers.is_empty() {
            self.take_back(id, cost);
        }
    }

    #[inline(never)]
    fn take_back(&mut self, id: RequestId, cost: i8) {
        let told = self.transfers.get(&id.0).map(|transfer| &transfer.stage);
        if !matches!(told, Some(Stage::Ahead { .. })) {
            return;
        }
        if let Some(receive) = self.requests.receive_mut(id)
            && let Some(habit) = self.ahead.habits.get_mut(&receive.key)
        {
            habit.score = (habit.score - cost).max(-SURE);
        }
        self.release(id);
    }

    /// The message of a receive that was told ahead is being written. What is wrong if that cannot be.
    pub(super) fn started(
        &mut self,
        peer: usize,
        key: Key,
        id: RequestId,
        body: &[u8],
    ) -> std::result::Result<(), &'static str> {
        const WRONG: &str = "the beginning of a message for a receive that was not told to it";
        let len = body.try_into().map(u64::from_ne_bytes).map_err(|_| WRONG)?;
        let transfer = self.transfers.get_mut(&id.0).ok_or(WRONG)?;
        let Stage::Ahead { written, .. } = transfer.stage else {
            return Err(WRONG);
        };
        if transfer.peer != peer || !self.posted.withdraw(&key, id.0) {
            return Err(WRONG);
        }
        transfer.stage = Stage::Expecting;
        self.ahead.open -= 1;
        if let Some(receive) = self.requests.receive_mut(id) {
            receive.announced = len as usize;
        }
        if let Some(habit) = self.ahead.habits.get_mut(&key) {
            habit.score = (habit.score + 1).min(SURE);
        }
        if written {
            self.moved(peer, id);
        }
        Ok(())
    }

    /// Begins to cancel a receive that was told ahead; false if this one was not.
    pub(super) fn revoke(&mut self, id: RequestId, key: Key) -> bool {
        match self.transfers.get_mut(&id.0) {
            Some(Transfer {
                peer,
                stage: Stage::Ahead { revoking, .. },
                ..
            }) => {
                let peer = *peer;
                if !std::mem::replace(revoking, true) {
                    let envelope = Envelope {
                        kind: Kind::Revoke,
                        key,
                        token: id.0,
                    };
                    self.queue_short(peer, envelope, &[]);
                }
                true
            }
            _ => false,
        }
    }

    /// The sender holds no target for this receive. If no message has met it, it is cancelled.
    pub(super) fn revoked(&mut self, peer: usize, id: RequestId) {
        match self.transfers.get(&id.0) {
            Some(Transfer {
                peer: with,
                stage: Stage::Ahead { revoking: true, .. },
                ..
            }) if *with == peer => {}
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

    /// A target goes, and with it the number by which its message would have been told of.
    pub(super) fn close_target(&mut self, notice: u32) {
        self.ahead.open -= 1;
        self.chores.push_back(Chore::Forget(notice));
    }
}

// The sender's end.
impl Messages {
    /// A word about targets. It counts before whatever is sent from now on.
    pub(super) fn hear_ahead(
        &mut self,
        channels: &mut Channels,
        peer: usize,
        word: &Word,
    ) -> Result<()> {
        match *word {
            Word::Told { key, ahead } => {
                let Some(rdma) = channels.rdma_to(peer) else {
                    return Ok(());
                };
                let sent = rdma.sent(peer);
                let peer = self.peer(peer);
                let waits = !peer.is_clear();
                peer.mark(Mark::Tells, true);
                let tracks = peer.sender.get_or_insert_default();
                if tracks.keys.len() >= KEYS && !tracks.keys.contains_key(&key) {
                    return Ok(());
                }
                let track = tracks.keys.entry(key).or_insert(Track {
                    last: Last::Queued,
                    targets: VecDeque::new(),
                });
                if track.last == Last::Queued && !waits {
                    track.last = Last::Sent(sent);
                }
                match track.last {
                    Last::Sent(last) if last <= ahead.seen && track.targets.len() < OPEN => {
                        track.targets.push_back(ahead.target);
                    }
                    _ => {}
                }
            }
            Word::Revoked { key, receive } => {
                if let Some(tracks) = &mut self.peer(peer).sender
                    && let Some(track) = tracks.keys.get_mut(&key)
                {
                    track.targets.retain(|target| target.receive != receive);
                }
                self.queue_short(peer, Envelope::about(Kind::Revoked, receive), &[]);
            }
        }
        Ok(())
    }

    /// A send to a peer that tells ahead. None: it goes on in the usual way.
    pub(super) fn send_tracked(
        &mut self,
        channels: &mut Channels,
        mode: Mode,
        buffer: &Buffer,
        peer: usize,
        key: Key,
    ) -> Result<Option<RequestId>> {
        let target = match self.track(peer, &key) {
            None => None,
            Some(track) => {
                let target = track.targets.pop_front();
                if target.is_none() {
                    // Until it is known to have left.
                    track.last = Last::Queued;
                }
                target
            }
        };
        let len = buffer.len();
        if let Some(target) = target
            && len > self.limits.whole
        {
            return self.write_ahead(channels, buffer, peer, key, target);
        }
        if len <= self.limits.whole && mode != Mode::Synchronous && self.is_clear(peer) {
            let put = self.put_eager(channels, buffer, peer, key)?;
            if put != Put::Full {
                self.has_left(channels, peer, &key);
                if put == Put::AcceptedPollNow {
                    self.listen(channels)?;
                }
                return Ok(Some(self.requests.done()));
            }
        }
        Ok(None)
    }

    /// If nothing waits, a message that used up no target has left.
    pub(super) fn has_left(&mut self, channels: &mut Channels, peer: usize, key: &Key) {
        if self.is_clear(peer)
            && let Some(sent) = channels.rdma_to(peer).map(|rdma| rdma.sent(peer))
            && let Some(track) = self.track(peer, key)
            && track.last == Last::Queued
        {
            track.last = Last::Sent(sent);
        }
    }

    fn track(&mut self, peer: usize, key: &Key) -> Option<&mut Track> {
        self.peer(peer).sender.as_mut()?.keys.get_mut(key)
    }

    /// Writes a message to where its receiver has told ahead that it wants it. None: the device does not take it.
    fn write_ahead(
        &mut self,
        channels: &mut Channels,
        buffer: &Buffer,
        peer: usize,
        key: Key,
        target: Target,
    ) -> Result<Option<RequestId>> {
        let Some(rdma) = channels.rdma_to(peer).filter(|rdma| moves(rdma)) else {
            return Ok(None);
        };
        let len = buffer.len().min(target.len as usize);
        let Some(exposure) = expose(rdma, buffer, len, Exposed::ToRead)? else {
            return Ok(None);
        };
        let send = Send {
            buffer: buffer.clone(),
            peer,
            envelope: Envelope {
                kind: Kind::Started,
                key,
                token: target.receive,
            },
            streaming: true,
            buffered: 0,
            cancelling: false,
        };
        let envelope = send.envelope;
        let id = self.requests.add(Operation::Send(Box::new(send)))?;
        self.queue_short(peer, envelope, &(buffer.len() as u64).to_ne_bytes());
        self.flush(channels)?;
        let moved = Envelope::about(Kind::Moved, id.0).encode();
        if let Some(rdma) = channels.rdma_to(peer) {
            rdma.start_write(peer, &exposure, target.place, len, moved, target.notice)?;
        }
        self.begin_transfer(peer, id, exposure, Stage::Writing);
        Ok(Some(id))
    }
}

impl Messages {
    /// A transfer of a receive that was told ahead is done, maybe before the packet that says so has come. False: it is none.
    pub(super) fn moved_ahead(&mut self, peer: usize, id: RequestId) -> bool {
        match self.transfers.get_mut(&id.0) {
            Some(Transfer {
                peer: with,
                stage: Stage::Ahead { written, .. },
                ..
            }) if *with == peer => {
                *written = true;
                true
            }
            _ => false,
        }
    }
}
