//! Point-to-point communication (MPI 5.0 §3).
//!
//! A message leaves at once (*eager*), or its sender keeps and announces it (*rendezvous*);
//! `protocol_table` chooses. The state is a composition of machines, each with its own file, its
//! own invariants and its own tests: the send queue, arrivals, transfers, rendezvous, announced
//! receives, deferred actions. [`Messages`] connects them.

mod announced_receives;
mod announcement_batch;
mod announcer;
mod arrivals;
pub mod buffered;
mod cooperative_copy;
mod cooperative_help;
mod copy_out;
mod copy_pace;
mod cost_classes;
mod deferred;
mod fetches;
mod handlers;
mod host_costs;
mod internal_messages;
mod learned_costs;
mod losses;
mod lost_peers;
mod message;
mod message_source;
#[cfg(test)]
mod nonsense_tests;
mod own_sends;
mod path_choice;
mod path_cost;
mod peer_queue;
mod probe;
pub(crate) mod protocol;
pub(crate) mod protocol_report;
pub(crate) mod protocol_table;
mod ready_to_receive;
mod receive;
mod remote_access;
mod rendezvous;
mod send;
mod send_queue;
mod share_queue;
mod shared_costs;
mod shared_sends;
mod short_path;
mod streams;
mod transfers;
mod trials;

use std::ops::Range;
use std::sync::Arc;

use channel::MappedMemory as _;
use channel::{Capabilities, End, Exposed, Family, Put, Router, Token, Transport, ZeroCopy};
use profile::RankProfile;

use announced_receives::AnnouncedReceives;
use announcement_batch::Batches;
use announcer::Announcer;
use arrivals::Arrivals;
use cost_classes::Class;
use deferred::Deferred;
use fetches::Fetches;
use host_costs::HostCosts;
use learned_costs::LearnedCosts;
pub(crate) use message::Body;
pub(crate) use message::Found;
pub(crate) use message::{Bytes, Message, Taken, received};
use message_source::MessageSource;
use protocol::{Case, Limits, Protocol};
use protocol_report::Choice;
use protocol_table::rendezvous;
use send_queue::SendQueue;
use share_queue::ShareQueue;
pub(crate) use transfers::Accessed;
use transfers::{Stage, Transfers};

use crate::matching::{Key, Posted, Unexpected};
use crate::packet::{Offer, RunClass, encode};
use crate::request::{RequestId, Requests, Send};
use crate::{Result, Status};
use lost_peers::Losses;

/// The point-to-point messages of a rank on all communicators.
pub(crate) struct Messages {
    /// The requests of this rank.
    pub requests: Requests,
    posted: Posted,
    unexpected: Unexpected<Message>,
    send_queue: SendQueue,
    arrivals: Arrivals,
    fetches: Fetches,
    learned: LearnedCosts,
    shared: ShareQueue,
    host_costs: HostCosts,
    transfers: Transfers,
    deferred: Deferred,
    announcer: Announcer,
    batches: Batches,
    announced: AnnouncedReceives,
    limits: Limits,
    /// Counts of the messages whose protocol the table has chosen.
    pub(crate) tally: Tally,
    /// The envelopes of messages for which calls without a request wait.
    pub(crate) awaited: Vec<Key>,
    /// The peers that cannot be reached any more.
    pub(crate) losses: Losses,
    /// The contexts of windows for which messages have arrived since windows were last serviced.
    pub(crate) of_windows: Vec<u64>,
    /// True once a peer is lost, or a member has left a collective operation. Operations then check
    /// for losses.
    watches_losses: bool,
    /// True if the modelled machine must be informed of each message before it is sent.
    tells_messages: bool,
    /// The profile of the rank, which counts messages, if there is one.
    profile: Option<Arc<RankProfile>>,
    /// The first violation of the protocol by a peer. It ends the job at the next progress.
    pub broken: Option<crate::Error>,
}

/// Counts of the messages that this rank has sent by a protocol of the table. The short path does
/// not use the table.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    all: u64,
    /// Number of the counted messages that were written to announced buffers.
    announced: u64,
}

impl Tally {
    /// True if most of the counted messages were written to announced buffers.
    pub(crate) fn is_mostly_announced(self) -> bool {
        2 * self.announced > self.all
    }
}

/// The parts of [`Messages`] that the send queue uses while it sends.
struct Sources<'a> {
    requests: &'a mut Requests,
    shared: &'a mut ShareQueue,
    transfers: &'a mut Transfers,
    deferred: &'a mut Deferred,
    announcer: &'a mut Announcer,
    announced: &'a mut AnnouncedReceives,
    limits: &'a Limits,
}

/// True if several rails lead to one of these peers.
fn has_rails(router: &mut Router, peers: Range<usize>) -> bool {
    let mut peers = peers;
    peers.any(|peer| router.capabilities(peer).rails > 1)
}

/// The token by which the transfer of a request is completed.
fn token_of(id: RequestId) -> Token {
    Token::new(Family::Messages, id.0.into())
}

impl Messages {
    /// The messages of a rank with peers 0 to `ranks` - 1.
    pub(crate) fn new(router: &mut Router, ranks: usize, limits: Limits) -> Messages {
        let several = has_rails(router, 0..ranks);
        let tries_short = limits.announces && (limits.announces_all || several);
        let whole = |peer| limits.whole(&router.capabilities(peer));
        let mut send_queue = SendQueue::new((0..ranks).map(whole));
        let host_costs = HostCosts::over(router.host_words());
        let has_times = router.machine().attach_library();
        let tells_messages = limits.tells_blocking() || has_times;
        if tells_messages {
            send_queue.hide_one_puts();
        }
        Messages {
            requests: Requests::default(),
            posted: Posted::default(),
            unexpected: Unexpected::default(),
            send_queue,
            arrivals: Arrivals::new(ranks),
            fetches: Fetches::default(),
            learned: LearnedCosts::new(ranks, host_costs.clone()),
            shared: ShareQueue::new(ranks),
            host_costs,
            transfers: Transfers::default(),
            deferred: Deferred::default(),
            tally: Tally::default(),
            announcer: Announcer::new(tries_short, limits.announces_all),
            batches: Batches::default(),
            announced: AnnouncedReceives::default(),
            limits,
            awaited: Vec::new(),
            losses: Losses::default(),
            of_windows: Vec::new(),
            watches_losses: false,
            tells_messages,
            profile: None,
            broken: None,
        }
    }

    /// Adds these peers, which follow those that exist. The router has them already.
    pub(crate) fn add_peers(&mut self, router: &mut Router, peers: Range<usize>) {
        let limits = self.limits;
        self.arrivals.grow(peers.end);
        self.learned.grow(peers.end);
        self.shared.grow(peers.end);
        if limits.announces && has_rails(router, peers.clone()) {
            self.announcer.try_short();
        }
        let whole = |peer| limits.whole(&router.capabilities(peer));
        self.send_queue.add(peers.map(whole));
    }

    /// Counts outages, times without a path to a peer, if the rank has a profile.
    pub(crate) fn count_outages(&self, count: u64, nanos: u64) {
        if let Some(profile) = &self.profile {
            profile.outages(count, nanos);
        }
    }

    /// Counts the connections of strangers to a rail, if the rank has a profile.
    pub(crate) fn count_strangers(&self, rail: usize, count: u64) {
        if let Some(profile) = &self.profile {
            profile.strangers(rail, count);
        }
    }

    /// Counts bytes of files that took no virtual time, if the rank has a profile.
    pub(crate) fn count_free_files(&self, read: u64, written: u64) {
        if let Some(profile) = &self.profile {
            profile.free_files(read, written);
        }
    }

    /// Counts messages in `profile` from now on.
    pub(crate) fn count_in(&mut self, profile: Arc<RankProfile>) {
        self.profile = Some(profile);
        self.send_queue.hide_one_puts();
    }

    /// The settings that limit which protocols a message may use.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// True if this rank can move something without a packet from a peer.
    #[inline(always)]
    pub(crate) fn has_work(&self) -> bool {
        self.send_queue.is_waiting() || !self.fetches.is_empty() || !self.deferred.is_empty()
    }

    /// Takes arrived packets, advances announced messages, and sends queued packets. True if
    /// anything moved.
    ///
    /// # Errors
    /// A transport failed, or a peer broke the protocol.
    #[inline(always)]
    pub(crate) fn round(&mut self, router: &mut Router) -> Result<bool> {
        let arrived = self.take_arrivals(router)?;
        if arrived == 0 && !self.has_work() {
            return Ok(false);
        }
        let fetched = self.advance(router)?;
        if self.batches.is_gathering() {
            self.send_batches(router);
        }
        let flushed = self.send_queued(router)?;
        router.uncork()?;
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        // A rank that only waits for room has moved nothing: it yields, and sleeps in the end.
        Ok(arrived > 0 || fetched || flushed)
    }

    /// Handles arrived packets and the ends of transfers. Returns their number.
    #[inline(always)]
    fn take_arrivals(&mut self, router: &mut Router) -> Result<usize> {
        let mut arrived = router.poll(
            #[inline(always)]
            |peer, head, body| self.on_packet(peer, head, body),
        )?;
        while let Some(done) = router.done(Family::Messages) {
            arrived += 1;
            self.transfer_done(&done);
        }
        Ok(arrived)
    }

    /// Sends queued packets as far as peers have room.
    ///
    /// # Errors
    /// A transport failed.
    #[inline]
    pub(crate) fn flush(&mut self, router: &mut Router) -> Result<()> {
        match self.send_queued(router)? {
            true => Ok(router.uncork()?),
            false => Ok(()),
        }
    }

    /// Sends queued packets as [`flush`](Messages::flush) does, but transports may hold them back
    /// for further ones until the end of the next pass of progress. True if a packet was accepted.
    #[inline]
    fn send_queued(&mut self, router: &mut Router) -> Result<bool> {
        if !self.send_queue.is_waiting() {
            return Ok(false);
        }
        let (queue, mut sources) = self.parts();
        queue.flush(router, &mut sources)
    }

    /// The protocol by which this rank would fetch an announced message of `len` bytes, and those
    /// not chosen, with their learned times in nanoseconds. `None`: there are no such times.
    pub(crate) fn learned_choice(&self, len: usize, peer: &Capabilities) -> Option<Choice> {
        let case = Case {
            end: End::Receiver,
            readable: true,
            ..Case::of_sender(len, peer, &self.limits)
        };
        if len <= self.limits.eager_to(peer) || !protocol_table::has_copy_costs(&case) {
            return None;
        }
        let time = |ps: u64| ps.saturating_mul(len as u64) / 1000;
        let of = |is_followed| Class::of(len, peer.push, is_followed);
        let class = self.learned.busier([false, true].map(of));
        let times = self.learned.times(class);
        let (taken, others): (Vec<_>, Vec<_>) = times.partition(|(_, _, is_chosen)| *is_chosen);
        let (protocol, ps, _) = *taken.first()?;
        let mut others: Vec<_> = others.iter().map(|row| (row.0, time(row.1))).collect();
        others.sort_by_key(|(_, time)| *time);
        Some(((protocol, time(ps)), others))
    }

    /// The messages that no receive has matched.
    pub(crate) fn unexpected(&self) -> impl Iterator<Item = (&crate::matching::Key, &Message)> {
        self.unexpected.iter()
    }

    fn parts(&mut self) -> (&mut SendQueue, Sources<'_>) {
        let sources = Sources {
            requests: &mut self.requests,
            shared: &mut self.shared,
            transfers: &mut self.transfers,
            deferred: &mut self.deferred,
            announcer: &mut self.announcer,
            announced: &mut self.announced,
            limits: &self.limits,
        };
        (&mut self.send_queue, sources)
    }
}

impl Sources<'_> {
    /// Ends the transports' access to the buffer of a request, which is complete or whose message
    /// takes another path.
    fn release(&mut self, id: RequestId) {
        if self.transfers.is_empty() {
            return;
        }
        let Some(transfer) = self.transfers.end(id) else {
            return;
        };
        if let Some(copy) = &transfer.copy {
            self.shared.ended(copy);
        }
        if let Stage::Announced { notice, .. } = transfer.stage {
            self.announcer.closed();
            let peer = transfer.peer;
            self.deferred
                .push(deferred::Action::Forget { peer, notice });
        }
        self.deferred.retract(transfer.exposure);
    }

    /// Completes a request. If its last packet is corked, completes it once that packet has left.
    fn complete(&mut self, request: RequestId, put: Put) {
        match put {
            Put::Corked => self.deferred.push(deferred::Action::Complete(request)),
            _ => self.requests.complete(request, Status::EMPTY),
        }
    }

    /// The announcement of a message: its length, and the remote key by which the receiver can read
    /// it.
    fn offer(&mut self, router: &mut Router, peer: usize, request: RequestId) -> Result<Offer> {
        let Some(send) = self.requests.send_mut(request) else {
            unreachable!("only a send is announced")
        };
        let buffer = &send.buffer;
        let runs = RunClass::of(buffer);
        let capabilities = router.capabilities(peer);
        let case = Case {
            one_run: [runs.is_one(), true],
            ..Case::of_sender(buffer.len(), &capabilities, self.limits)
        };
        let protocol = rendezvous(&case);
        let mut offer = Offer {
            len: buffer.len() as u64,
            shared: false,
            push: protocol == Protocol::CooperativeCopy && capabilities.push,
            settled: capabilities.settled,
            runs,
            key: channel::RemoteKey::NONE,
        };
        if matches!(
            protocol,
            Protocol::ReadRendezvous | Protocol::CooperativeCopy
        ) {
            if let Some(transfer) = self.transfers.get(request) {
                offer.key = transfer.exposure.key();
            } else if let Some(exposure) = router.expose(
                peer,
                buffer,
                buffer.len(),
                Exposed::ToRead,
                Family::Messages,
            )? {
                offer.key = exposure.key();
                self.transfers
                    .begin(peer, request, exposure, Stage::Offered);
            }
        }
        Ok(offer)
    }
}

impl MessageSource for Sources<'_> {
    fn send(&mut self, request: RequestId) -> Option<&mut Send> {
        self.requests.send_mut(request)
    }

    fn announce(
        &mut self,
        router: &mut Router,
        peer: usize,
        request: RequestId,
    ) -> Result<Vec<u8>> {
        Ok(encode(&self.offer(router, peer, request)?))
    }

    fn sent(&mut self, request: RequestId, put: Put) {
        // The message may have been about to be announced.
        self.release(request);
        if put == Put::Corked
            && let Some(send) = self.requests.send_mut(request)
        {
            // The send can no longer be cancelled.
            send.streaming = true;
        }
        self.complete(request, put);
    }

    fn left(&mut self, request: RequestId, put: Put) {
        self.complete(request, put);
    }

    fn departed(&mut self, peer: usize, key: &Key, sent: u64) {
        self.announced.departed(peer, key, sent);
    }
}
