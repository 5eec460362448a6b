//! A rail: one device port with its completion queues and receive queues.
//!
//! The rank's [`Node`] owns the device. A rail names the device by its index in the node; every
//! work-request id of the rail carries that index.
//!
//! Invariants:
//! - no completion queue can overflow: each queue pair reserves room for every completion that it
//!   may cause;
//! - a queue pair's number means something on its own rail only.

use std::collections::HashMap;

use device::{Cq, Node, Placement, Qp, ReceiveQueue, Srq};

use super::handshake::LinkAddress;
use super::pairing::Network;
use super::pool::Pools;
use super::reports::Reports;
use super::schedule::LinkTraits;
use super::wr_id::{QpRole, Subject, WrId};
use crate::Result;

/// The least capacity of a rail's completion queue, in completions.
const CQ_DEPTH: usize = 1 << 14;
/// The most notices that may be expected on one rail at one time.
pub(super) const NOTICES: usize = 1024;
/// The longest request that a rail posts, in bytes, even if the device allows longer ones.
const LONGEST: u64 = 1 << 30;

/// The shared receive queue of a rail for notices.
struct NoticeQueue {
    srq: Srq,
    /// The number of receives that are posted, or that a notice has just consumed.
    receives: usize,
    /// The number of notices that are expected, each of which has a receive.
    expected: usize,
}

/// The properties of a rail that schedules depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RailTraits {
    /// The bandwidth of the rail in bytes per second.
    pub bandwidth: u64,
    pub latency_ns: u64,
    pub card: usize,
}

/// One rail of a rank: a device with its queues and registrations.
pub(super) struct Rail {
    index: usize,
    network: Network,
    traits: RailTraits,
    reports: Reports,
    unordered: bool,
    answered: bool,
    by_processor: bool,
    polled: bool,
    resets: bool,
    longest: usize,
    cqs: Vec<Cq>,
    /// The number of completions that the last queue of `cqs` may have to hold.
    reserved: usize,
    /// The receive queue for notices. `None`: no endpoint uses this rail.
    notices: Option<NoticeQueue>,
    /// The receives for messages of peers without rings.
    pub pools: Pools,
    /// The peer and the role of each queue pair that takes receives.
    queue_pairs: HashMap<Qp, (usize, QpRole)>,
}

impl Rail {
    /// Opens rail `index` of the node. Queues are created on it only if `in_use`: endpoints use it.
    pub(super) fn open(node: &mut dyn Node, index: usize, in_use: bool) -> Result<Rail> {
        let device = node.rail(index);
        let notices = match in_use {
            true => Some(NoticeQueue {
                srq: device.create_srq(NOTICES)?,
                receives: 0,
                expected: 0,
            }),
            false => None,
        };
        let attributes = device.attributes();
        Ok(Rail {
            index,
            network: Network {
                link_layer: attributes.link_layer,
                subnet: attributes.subnet,
            },
            traits: RailTraits {
                bandwidth: attributes.bandwidth,
                latency_ns: attributes.latency_ns,
                card: attributes.card,
            },
            reports: Reports::default(),
            unordered: attributes.placement == Placement::Completion,
            answered: attributes.answered,
            by_processor: attributes.by_processor,
            polled: attributes.polled,
            resets: attributes.resets,
            longest: attributes.longest.min(LONGEST) as usize,
            cqs: Vec::new(),
            reserved: 0,
            notices,
            pools: Pools::default(),
            queue_pairs: HashMap::new(),
        })
    }

    /// The number of the rail in the rank's node.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The network that the rail's port belongs to.
    pub(super) fn network(&self) -> Network {
        self.network
    }

    pub(super) fn traits(&self) -> RailTraits {
        self.traits
    }

    /// The traits of a link from this rail to a rail of a peer.
    pub(super) fn to(&self, theirs: &LinkAddress) -> LinkTraits {
        let bandwidth = match (self.traits.bandwidth, theirs.bandwidth) {
            (0, known) | (known, 0) => known,
            (ours, theirs) => ours.min(theirs),
        };
        LinkTraits {
            bandwidth,
            latency_ns: self.traits.latency_ns.max(theirs.latency_ns.into()),
            card: self.traits.card,
            polled: self.polled,
        }
    }

    /// The shared count of the completions that the rail is still to report.
    pub(super) fn reports(&self) -> Reports {
        self.reports.clone()
    }

    /// True if the rail's completion queues may contain something that this rank waits for.
    #[inline(always)]
    pub(super) fn is_awaited(&self) -> bool {
        self.unordered
            || self.reports.due() > 0
            || !self.pools.is_empty()
            || self
                .notices
                .as_ref()
                .is_some_and(|notices| notices.expected > 0)
    }

    /// True if writes to this rank are not placed in order: only a completion shows that one is
    /// complete.
    pub(super) fn is_unordered(&self) -> bool {
        self.unordered
    }

    /// True if a write completes only after the peer's device has answered.
    pub(super) fn answered(&self) -> bool {
        self.answered
    }

    /// True if this host's processors do the device's work.
    pub(super) fn by_processor(&self) -> bool {
        self.by_processor
    }

    /// True if the device works only while it is polled.
    pub(super) fn polled(&self) -> bool {
        self.polled
    }

    /// True if a queue pair can go back to RESET.
    pub(super) fn resets(&self) -> bool {
        self.resets
    }

    /// The longest request that the rail's device takes, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    #[inline(always)]
    pub(super) fn cqs(&self) -> &[Cq] {
        &self.cqs
    }

    /// A completion queue with room for `completions` more completions.
    pub(super) fn cq_for(&mut self, node: &mut dyn Node, completions: usize) -> Result<Cq> {
        self.reserved += completions;
        match self.cqs.last() {
            Some(last) if self.reserved <= CQ_DEPTH => Ok(*last),
            _ => {
                self.reserved = completions + NOTICES;
                let depth = CQ_DEPTH.max(self.reserved);
                let cq = node.rail(self.index).create_cq(depth)?;
                self.cqs.push(cq);
                Ok(cq)
            }
        }
    }

    /// Adds a queue pair of this rail, which leads to `peer`, in this role.
    pub(super) fn add_queue_pair(&mut self, qp: Qp, peer: usize, role: QpRole) {
        let before = self.queue_pairs.insert(qp, (peer, role));
        debug_assert!(before.is_none(), "queue pair {qp:?} is known");
    }

    /// Removes queue pair `qp` of this rail, which no longer exists.
    pub(super) fn remove_queue_pair(&mut self, qp: Qp) {
        self.queue_pairs.remove(&qp);
    }

    /// The peer at the other end of a queue pair of this rail, which must have this role.
    pub(super) fn peer_of(&self, qp: Qp, role: QpRole) -> usize {
        match self.queue_pairs.get(&qp) {
            Some((peer, of)) if *of == role => *peer,
            other => panic!(
                "rail {} reports queue pair {} as {role:?}, which is {other:?}",
                self.index, qp.0
            ),
        }
    }

    fn notices(&mut self) -> &mut NoticeQueue {
        let index = self.index;
        match &mut self.notices {
            Some(notices) => notices,
            None => panic!("rail {index} is not in use"),
        }
    }

    /// The shared receive queue that bulk queue pairs of this rail use.
    pub(super) fn notice_srq(&mut self) -> Srq {
        self.notices().srq
    }

    /// Reserves a posted receive for one more notice. False: `NOTICES` notices are expected
    /// already.
    pub(super) fn reserve_notice(&mut self, node: &mut dyn Node) -> Result<bool> {
        let notices = self.notices();
        if notices.expected == NOTICES {
            return Ok(false);
        }
        if notices.expected == notices.receives {
            self.post_notice_receive(node)?;
            self.notices().receives += 1;
        }
        self.notices().expected += 1;
        Ok(true)
    }

    /// Stops expecting a notice with a reserved receive. The receive stays posted for the next one.
    pub(super) fn release_notice(&mut self) {
        self.notices().expected -= 1;
    }

    /// Posts a receive for a notice: a new one, or one that a notice has consumed.
    pub(super) fn post_notice_receive(&mut self, node: &mut dyn Node) -> Result<()> {
        let id = WrId {
            rail: self.index,
            subject: Subject::Notice,
        };
        let queue = ReceiveQueue::Shared(self.notices().srq);
        // SAFETY: the receive has no memory.
        unsafe {
            node.rail(self.index)
                .post_receive(queue, id.encode(), &[])?
        };
        Ok(())
    }

    /// The state of the rail's receives for notices, as one line of text.
    #[cfg(test)]
    pub(super) fn describe(&self) -> String {
        let notices = self.notices.as_ref();
        let notices = notices.map(|notices| (notices.receives, notices.expected));
        format!("rail {}: (receives, expected) {notices:?}", self.index)
    }

    /// Deregisters the pools of the rail, whose queue pairs are gone.
    pub(super) fn end(&mut self, node: &mut dyn Node) {
        self.pools.end(node);
    }
}

#[cfg(test)]
mod tests {
    use testdevice::strict::{self, Setup};

    use super::*;

    #[test]
    fn the_same_queue_pair_number_on_two_rails_leads_to_two_peers() {
        let setup = Setup {
            rails: 2,
            ..Setup::default()
        };
        let mut node = strict::nodes(1, &setup).remove(0);
        let mut open = |index| Rail::open(&mut *node, index, true).unwrap();
        let (mut first, mut second) = (open(0), open(1));
        first.add_queue_pair(Qp(7), 1, QpRole::Control);
        second.add_queue_pair(Qp(7), 2, QpRole::Bulk);
        assert_eq!(first.peer_of(Qp(7), QpRole::Control), 1);
        assert_eq!(second.peer_of(Qp(7), QpRole::Bulk), 2);
    }

    #[test]
    fn notices_are_reserved_up_to_the_limit_and_receives_are_used_again() {
        let mut node = strict::nodes(1, &Setup::default()).remove(0);
        let mut rail = Rail::open(&mut *node, 0, true).unwrap();
        for _ in 0..NOTICES {
            assert!(rail.reserve_notice(&mut *node).unwrap());
        }
        assert!(!rail.reserve_notice(&mut *node).unwrap());
        rail.release_notice();
        // The strict device would refuse a further receive.
        assert!(rail.reserve_notice(&mut *node).unwrap());
        assert_eq!(rail.notices().receives, NOTICES);
    }
}
