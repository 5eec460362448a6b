//! A link: the queue pairs of an endpoint on one rail of each end.

use device::{Cq, Node, Operation, Qp, Remote, Srq};

use super::fence::QpAddresses;
use super::flow::Flow;
use super::handshake::LinkAddress;
use super::lifecycle::{LifeStage, Lifecycle};
use super::pairing::Network;
use super::qp_link::{Note, PieceId, QpLink, Queues};
use super::rail::Rail;
use super::wr_id::QpRole;
use crate::Result;

/// The most notices of one peer that may be expected at one time in the receive queue for packets.
pub(super) const SHARED_NOTICES: usize = 256;

/// The connection to one peer over one rail of each end.
pub(super) struct Link {
    /// The position of the link among those of its endpoint.
    index: usize,
    rail: usize,
    network: Network,
    /// True if writes to this rank are not placed in order: only a completion shows that one is
    /// complete.
    unordered: bool,
    /// The queue pair that carries packets, tails and grants.
    pub control: QpLink,
    /// The queue pair for zero-copy transfers. It is a separate one so that a short packet never
    /// waits behind a transfer.
    pub bulk: QpLink,
    /// The queue pair for reads, where both ends have several rails. A device starts the requests
    /// of a queue pair in order, limits the number of unanswered reads, and reports completions in
    /// order: in one queue pair a write would start and complete behind reads. `None`: reads share
    /// the queue pair of writes.
    pub reads: Option<QpLink>,
    /// True if both ends post their transfers to the queue pair `control`.
    shares_control: bool,
    /// The receives without memory for the notices of a peer that posts its transfers to the queue
    /// pair of packets. `None`: notices arrive at the bulk queue pair.
    pub shared_notices: Option<SharedNotices>,
    /// The number of the pool, on this rail, that receives the peer's messages if this end has no
    /// memory for rings.
    pub pool: usize,
    /// The first window of the link: the number of the peer's messages that may be in flight over
    /// it.
    pub window: u32,
    /// The addresses of the peer's end of the link.
    peer: PeerEnd,
    /// The link's stage, with its epoch and the time of the next attempt to connect it.
    pub life: Lifecycle,
    /// True if the queue pairs are new and not connected yet, or the device could not connect them.
    is_new: bool,
    /// Pieces of transfers that failed with the link, until both ends are drained.
    pub lost_pieces: Vec<PieceId>,
    /// The number of receives without memory that writes of the peer have consumed and that are due
    /// to be posted again.
    pub receives_due: u32,
    /// The time at which the read that tests the path to the peer was posted, in nanoseconds of the
    /// node's clock. `None`: no such read is in flight.
    pub probed: Option<u64>,
    /// The oldest expected completion of each queue pair at the last check of a waiting rank.
    seen: [Seen; MOST_QPS],
}

/// The most queue pairs of a link.
const MOST_QPS: usize = 3;

/// The oldest expected completion of a queue pair, and the time since which it has been the oldest.
#[derive(Clone, Copy, Default)]
struct Seen {
    since: u64,
    oldest: Option<(Note, u64)>,
}

/// The peer's end of a link, as the hello describes it.
#[derive(Default)]
struct PeerEnd {
    rail: usize,
    /// The key, on the peer's rail, of the peer's memory for this rank.
    key: u32,
    unordered: bool,
}

/// Receives for notices in the receive queue of a queue pair for packets.
#[derive(Default)]
pub(super) struct SharedNotices {
    posted: usize,
    expected: usize,
}

/// The completion and receive queues with which a new link is opened.
pub(super) struct LinkQueues {
    pub cq: Cq,
    /// The receive queue for packets: a pool, or a private queue of `receives`.
    pub pool: Option<(usize, Srq)>,
    pub receives: usize,
    /// The first window: the number of the peer's messages that may be in flight.
    pub window: u32,
    /// The receive queue for notices.
    pub notices: Srq,
    /// True if zero-copy reads have a queue pair of their own.
    pub reads: bool,
}

/// A link in use, with the node that executes its requests.
pub(super) struct Wire<'a> {
    pub node: &'a mut dyn Node,
    pub link: &'a mut Link,
}

impl Link {
    /// Creates the queue pairs to `peer` on `rail`, as link `index` of the endpoint.
    pub(super) fn open(
        node: &mut dyn Node,
        rail: &Rail,
        peer: usize,
        index: usize,
        queues: &LinkQueues,
    ) -> Result<Link> {
        let packets = Queues {
            cq: queues.cq,
            srq: queues.pool.map(|(_, srq)| srq),
            receives: queues.receives,
        };
        let notices = Queues {
            cq: queues.cq,
            srq: Some(queues.notices),
            receives: 0,
        };
        // Nothing is received: the smallest queue.
        let nothing = Queues {
            cq: queues.cq,
            srq: None,
            receives: 1,
        };
        let mut open = |role, queues| QpLink::open(node, rail, peer, role, queues);
        let reads = queues.reads.then_some(QpRole::Reads);
        Ok(Link {
            index,
            rail: rail.index(),
            network: rail.network(),
            unordered: rail.is_unordered(),
            control: open(QpRole::Control, packets)?,
            bulk: open(QpRole::Bulk, notices)?,
            reads: reads.map(|role| open(role, nothing)).transpose()?,
            shares_control: false,
            shared_notices: None,
            pool: queues.pool.map_or(0, |(pool, _)| pool),
            window: queues.window,
            peer: PeerEnd::default(),
            life: Lifecycle::new(),
            is_new: true,
            lost_pieces: Vec::new(),
            receives_due: 0,
            probed: None,
            seen: [Seen::default(); MOST_QPS],
        })
    }

    /// The position of the link among those of its endpoint.
    #[inline(always)]
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Gives the link another position, before anything is posted.
    pub(super) fn renumber(&mut self, index: usize) {
        self.index = index;
    }

    /// The number of the rail of this rank that the link uses.
    #[inline(always)]
    pub(super) fn rail(&self) -> usize {
        self.rail
    }

    /// The number of the peer's rail, in the peer's numbering.
    #[inline(always)]
    pub(super) fn peer_rail(&self) -> usize {
        self.peer.rail
    }

    pub(super) fn network(&self) -> Network {
        self.network
    }

    /// True if writes to this rank over this link are not placed in order: only a completion shows
    /// that one is complete.
    #[inline(always)]
    pub(super) fn is_unordered(&self) -> bool {
        self.unordered
    }

    /// True if writes to the peer over this link are not placed in order.
    #[inline(always)]
    pub(super) fn peer_is_unordered(&self) -> bool {
        self.peer.unordered
    }

    /// Posts transfers to the queue pair of packets from now on, as the peer does.
    pub(super) fn share_control(&mut self) {
        self.shares_control = true;
        self.shared_notices = Some(SharedNotices::default());
    }

    /// The queue pair that carries transfers of a flow.
    #[inline(always)]
    pub(super) fn transfers(&mut self, flow: Flow) -> &mut QpLink {
        match (flow, &mut self.reads) {
            _ if self.shares_control => &mut self.control,
            (Flow::In, Some(reads)) => reads,
            _ => &mut self.bulk,
        }
    }

    /// All queue pairs of the link.
    fn queue_pairs(&self) -> impl Iterator<Item = &QpLink> {
        [&self.control, &self.bulk].into_iter().chain(&self.reads)
    }

    fn queue_pairs_mut(&mut self) -> impl Iterator<Item = (QpRole, &mut QpLink)> {
        let both = [
            (QpRole::Control, &mut self.control),
            (QpRole::Bulk, &mut self.bulk),
        ];
        let reads = self.reads.as_mut().map(|reads| (QpRole::Reads, reads));
        both.into_iter().chain(reads)
    }

    /// Reserves a posted receive for a notice of a peer that posts its transfers to the queue pair
    /// of packets. False: `SHARED_NOTICES` notices are expected already.
    pub(super) fn reserve_shared_notice(&mut self, node: &mut dyn Node) -> Result<bool> {
        let Some(notices) = &mut self.shared_notices else {
            unreachable!("notices of this peer come to the bulk queue pair");
        };
        if notices.expected == SHARED_NOTICES {
            return Ok(false);
        }
        notices.expected += 1;
        if notices.expected > notices.posted {
            notices.posted += 1;
            self.control.post_receive(node)?;
        }
        Ok(true)
    }

    /// Posts again, on a new queue pair, the receives for notices in the receive queue for packets.
    pub(super) fn post_shared_again(&mut self, node: &mut dyn Node) -> Result<()> {
        let Some(notices) = &mut self.shared_notices else {
            return Ok(());
        };
        notices.posted = notices.expected;
        for _ in 0..notices.posted {
            self.control.post_receive(node)?;
        }
        Ok(())
    }

    /// Stops expecting one notice in the receive queue for packets. Its receive stays posted for
    /// the next one.
    pub(super) fn release_shared_notice(&mut self) {
        let notices = self.shared_notices.as_mut();
        notices.expect("a shared notice was reserved").expected -= 1;
    }

    pub(super) fn queue_pair_mut(&mut self, role: QpRole) -> &mut QpLink {
        match role {
            QpRole::Control => &mut self.control,
            QpRole::Bulk => &mut self.bulk,
            QpRole::Reads => {
                let reads = self.reads.as_mut();
                reads.expect("only a link with a queue pair for reads reports on it")
            }
        }
    }

    /// This link's part of a hello. `rkey` is the key of this rank's memory for the peer.
    pub(super) fn address(
        &self,
        node: &mut dyn Node,
        rail: &Rail,
        rkey: u32,
    ) -> Result<LinkAddress> {
        let traits = rail.traits();
        Ok(LinkAddress {
            rail: self.rail,
            network: self.network,
            unordered: self.unordered,
            bandwidth: traits.bandwidth,
            latency_ns: traits.latency_ns.try_into().unwrap_or(u32::MAX),
            rkey,
            queue_pairs: self.addresses(node)?,
        })
    }

    /// Lets the device connect the queue pairs to the peer's. Closes the queue pair for reads if
    /// the peer has none.
    pub(super) fn connect(&mut self, node: &mut dyn Node, peer: &LinkAddress) -> Result<()> {
        self.peer = PeerEnd {
            rail: peer.rail,
            key: peer.rkey,
            unordered: peer.unordered,
        };
        if peer.queue_pairs.reads.is_none()
            && let Some(reads) = self.reads.take()
        {
            reads.close(node);
        }
        self.reconnect(node, &peer.queue_pairs)
    }

    /// Records that the device could not connect a queue pair. All go back to RESET if the device
    /// `resets` queue pairs, so that nothing of the peer arrives.
    pub(super) fn stay_unconnected(&mut self, node: &mut dyn Node, resets: bool) -> Result<()> {
        self.is_new = true;
        if resets {
            for (_, queue_pair) in self.queue_pairs_mut() {
                queue_pair.renew(node, true)?;
            }
        }
        Ok(())
    }

    /// True while the device is connecting a queue pair of this link. An error says why it cannot.
    pub(super) fn is_connecting(&self, node: &mut dyn Node) -> device::Result<bool> {
        let device = node.rail(self.rail);
        for queue_pair in self.queue_pairs() {
            if device.state(queue_pair.qp())? == device::State::Connecting {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The location `address` in the peer's memory for this rank, with the key for requests on this
    /// link.
    #[inline(always)]
    pub(super) fn remote(&self, address: u64) -> Remote {
        Remote {
            address,
            rkey: self.peer.key,
        }
    }

    /// Posts the receives without memory that the peer's writes have consumed.
    pub(super) fn post_receives_due(&mut self, node: &mut dyn Node) -> Result<()> {
        while self.receives_due > 0 {
            self.control.post_receive(node)?;
            self.receives_due -= 1;
        }
        Ok(())
    }

    /// Sends an empty message with a grant.
    pub(super) fn send_grant(&mut self, node: &mut dyn Node, grant: u32) -> Result<()> {
        let operation = Operation::Send {
            immediate: Some(grant),
        };
        self.control
            .post(node, operation, &[], false, true, Note::Grant)?;
        Ok(())
    }

    /// Takes all queue pairs of the link to ERROR, and posts their markers.
    pub(super) fn fail(&mut self, node: &mut dyn Node, peer: usize) -> Result<()> {
        self.probed = None;
        let mut all = self.queue_pairs_mut();
        all.try_for_each(|(role, queue_pair)| queue_pair.fail(node, peer, role))
    }

    /// True if a queue pair has had the same oldest expected completion for more than `limit`
    /// nanoseconds, as far as earlier calls have recorded.
    pub(super) fn is_stalled(&mut self, now: u64, limit: u64) -> bool {
        let mut all = self.seen;
        let mut is_stalled = false;
        for (seen, queue_pair) in all.iter_mut().zip(self.queue_pairs()) {
            let oldest = queue_pair.oldest();
            if oldest.is_none() || oldest != seen.oldest {
                *seen = Seen { since: now, oldest };
            }
            is_stalled |= now.saturating_sub(seen.since) > limit;
        }
        self.seen = all;
        is_stalled
    }

    /// True if the link's queue pairs have not been connected.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// True if every completion of all queue pairs since `fail` has been polled, or the queue pairs
    /// are new.
    pub(super) fn is_drained(&self, node: &mut dyn Node) -> Result<bool> {
        if self.is_new {
            return Ok(true);
        }
        for queue_pair in self.queue_pairs() {
            if !queue_pair.is_drained(node)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets the requests that have failed, but keeps the pieces of transfers among them. Returns
    /// the numbers of the send buffers of failed messages.
    pub(super) fn forget(&mut self) -> Vec<usize> {
        let mut messages = Vec::new();
        let all = self.queue_pairs_mut();
        let notes: Vec<Note> = all.flat_map(|(_, own)| own.forget()).collect();
        for note in notes {
            match note {
                Note::Piece(piece) => self.lost_pieces.push(piece),
                Note::SendBuffer(number) => messages.push(number),
                Note::Ring(_) | Note::RingData(_) | Note::Replay(_) | Note::Grant => (),
                Note::Probe => (),
            }
        }
        self.receives_due = 0;
        messages
    }

    /// Takes the queue pairs back to RESET, or replaces them. Returns the replaced ones for packets
    /// and for transfers.
    pub(super) fn renew(&mut self, node: &mut dyn Node, resets: bool) -> Result<[Option<Qp>; 2]> {
        self.is_new = true;
        if let Some(reads) = &mut self.reads {
            reads.renew(node, resets)?;
        }
        Ok([
            self.control.renew(node, resets)?,
            self.bulk.renew(node, resets)?,
        ])
    }

    /// The addresses of this end's queue pairs, for the peer.
    pub(super) fn addresses(&self, node: &mut dyn Node) -> Result<QpAddresses> {
        let reads = self.reads.as_ref();
        Ok(QpAddresses {
            control: self.control.address(node)?,
            bulk: self.bulk.address(node)?,
            reads: reads.map(|reads| reads.address(node)).transpose()?,
        })
    }

    /// Connects new queue pairs to the peer's.
    pub(super) fn reconnect(&mut self, node: &mut dyn Node, peer: &QpAddresses) -> Result<()> {
        self.is_new = false;
        let device = node.rail(self.rail);
        device.connect(self.control.qp(), Some(peer.control))?;
        device.connect(self.bulk.qp(), Some(peer.bulk))?;
        if let Some(reads) = &self.reads {
            device.connect(reads.qp(), peer.reads)?;
        }
        Ok(())
    }

    /// Sets whether the requests of all queue pairs are marked as probes.
    pub(super) fn set_probing(&self, node: &mut dyn Node, probing: bool) -> Result<()> {
        let device = node.rail(self.rail);
        for queue_pair in self.queue_pairs() {
            device.set_probing(queue_pair.qp(), probing)?;
        }
        Ok(())
    }

    /// True if every posted request is known to be complete.
    pub(super) fn is_idle(&self) -> bool {
        self.queue_pairs().all(|queue_pair| queue_pair.held() == 0)
    }

    /// True if no completion of the link's queue pairs is expected.
    pub(super) fn is_quiet(&self) -> bool {
        !self.queue_pairs().any(QpLink::awaits)
    }

    /// Destroys the link's queue pairs, unless they are gone.
    pub(super) fn close(&self, node: &mut dyn Node) {
        if self.life.stage() == LifeStage::Ended {
            return;
        }
        self.queue_pairs()
            .for_each(|queue_pair| queue_pair.close(node));
    }
}
