//! A queue pair: its kind, its state (IBA 10.3.1) and its posted work.

use sim::Time;

use super::answer_queue::AnswerQueue;
use super::in_transit::Order;
use super::message::NONE;
use super::send_queue::SendQueue;
use device::check;
use device::{Error, QpWanted, Result, State, Transport, Work};
use fabric::Rail;

/// The greatest number of work requests of a queue.
pub(crate) const DEPTH: usize = 1 << 15;
/// The length of the longest message, in bytes (IBA 9.7.1).
pub(crate) const LONGEST: u64 = 1 << 31;

pub(crate) struct QueuePair {
    pub rank: u32,
    pub adapter: u32,
    pub alive: bool,
    pub transport: Transport,
    pub state: State,
    pub send_cq: u32,
    pub receive_cq: u32,
    /// The number of the receive queue from which the queue pair takes receives.
    pub receives: u32,
    pub shared: bool,
    inline: u32,
    /// The largest payload of the queue pair's packets in bytes: the smaller of both ports' limits.
    pub mtu: u32,
    sends: u32,
    pub peer: u32,
    /// The latency from this HCA to the peer's, the peer's chip included.
    pub latency: Time,
    /// The epoch of the queue pair: the number of its connections so far.
    pub life: u32,
    pub requests: SendQueue,
    /// True if a timeout of the queue pair is scheduled.
    pub timing: bool,
    /// The peer's requests that wait for this end's response.
    pub answers: AnswerQueue,
    /// The number of the receive that the arriving message consumes.
    pub receive: u32,
    /// The time at which the last arrived bytes become visible.
    pub visible: Time,
    /// The arrival time of the last packet that the queue pair has sent. No later packet may
    /// overtake that one.
    pub arrival: Time,
    /// The order of its packets that cross links between switches.
    pub order: Order,
}

/// Checks that a queue pair may be created on a rail: an error if `wanted` exceeds the limits.
pub(crate) fn check_limits(rail: &Rail, wanted: &QpWanted) -> Result<()> {
    let limit = rail.hca.inline.0;
    if wanted.inline as u64 > limit {
        return Err(Error::Invalid(format!(
            "{} bytes inline; this HCA takes at most {limit}",
            wanted.inline
        )));
    }
    for (what, depth) in [("sends", wanted.sends), ("receives", wanted.receives)] {
        if depth > DEPTH {
            return Err(Error::Invalid(format!(
                "{depth} {what}; a queue holds at most {DEPTH}"
            )));
        }
    }
    check::shares(wanted.transport, wanted.srq.is_some()).map_err(Error::Invalid)
}

impl QueuePair {
    /// A queue pair of a rank on an adapter. `receives` is the number of its receive queue.
    pub(crate) fn new(
        (rank, adapter): (u32, u32),
        wanted: &QpWanted,
        receives: u32,
        mtu: u32,
    ) -> QueuePair {
        QueuePair {
            rank,
            adapter,
            alive: true,
            transport: wanted.transport,
            state: State::Reset,
            send_cq: wanted.send_cq.0,
            receive_cq: wanted.receive_cq.0,
            receives,
            shared: wanted.srq.is_some(),
            inline: wanted.inline as u32,
            mtu,
            sends: wanted.sends as u32,
            peer: NONE,
            latency: 0,
            life: 0,
            requests: SendQueue::EMPTY,
            timing: false,
            answers: AnswerQueue::EMPTY,
            receive: NONE,
            visible: 0,
            arrival: 0,
            order: Order::default(),
        }
    }

    /// Checks that a request can be posted to this queue pair, which has the number `q`. Returns
    /// the length of its data in bytes.
    #[inline]
    pub(crate) fn check(&self, q: u32, work: &Work, immediates: bool) -> Result<u32> {
        if self.requests.used() >= self.sends && self.state != State::Reset {
            return Err(Error::Full);
        }
        let limits = check::Limits {
            transport: self.transport,
            state: self.state,
            inline: self.inline.into(),
            mtu: self.mtu.into(),
            longest: LONGEST,
            immediates,
        };
        check::work(work, &limits).map_err(|why| Error::Invalid(format!("queue pair {q}: {why}")))
    }

    /// True if the queue pair can send and receive packets.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.state == State::Rts
    }

    /// True if a queue pair in the state ERROR consumes no further receive, and all bytes that have
    /// arrived for it are visible. Also true in the state RESET.
    pub(crate) fn is_drained(&self, now: Time) -> bool {
        self.state == State::Reset || self.state == State::Error && self.visible <= now
    }
}
