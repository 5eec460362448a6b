//! A link: the queue pairs of an endpoint on one rail.

use device::{Cq, Node, Operation, Remote, Srq};

use super::handshake::LinkAddress;
use super::qp_link::{Note, QpLink, QpRole, Queues};
use super::rail::Rail;
use crate::Result;

/// The connection to one peer over one rail.
pub(super) struct Link {
    rail: usize,
    by_completion: bool,
    /// For packets, tails and grants.
    pub control: QpLink,
    /// For zero-copy transfers, so that a short packet never waits behind one.
    pub bulk: QpLink,
    /// The key, on this rail, of the peer's memory for this rank.
    remote_key: u32,
    /// Receives without memory that writes of the peer have used up.
    pub receives_due: u32,
    /// When the read was posted that shows whether the peer can be reached, in nanoseconds of the
    /// node's clock.
    pub probed: Option<u64>,
}

/// The queues of a link.
pub(super) struct LinkQueues {
    pub cq: Cq,
    /// The receive queue for packets: a pool, or a private queue of `receives`.
    pub pool: Option<Srq>,
    pub receives: usize,
    /// The receive queue for notices.
    pub notices: Srq,
}

impl Link {
    /// Creates the queue pairs to `peer` on `rail`.
    pub(super) fn open(
        node: &mut dyn Node,
        rail: &Rail,
        peer: usize,
        queues: &LinkQueues,
    ) -> Result<Link> {
        let packets = Queues {
            cq: queues.cq,
            srq: queues.pool,
            receives: queues.receives,
        };
        let notices = Queues {
            cq: queues.cq,
            srq: Some(queues.notices),
            receives: 0,
        };
        let index = rail.index();
        Ok(Link {
            rail: index,
            by_completion: rail.by_completion(),
            control: QpLink::open(node, index, peer, QpRole::Control, packets)?,
            bulk: QpLink::open(node, index, peer, QpRole::Bulk, notices)?,
            remote_key: 0,
            receives_due: 0,
            probed: None,
        })
    }

    #[inline(always)]
    pub(super) fn rail(&self) -> usize {
        self.rail
    }

    /// Only a completion tells that a write over this link is whole.
    #[inline(always)]
    pub(super) fn by_completion(&self) -> bool {
        self.by_completion
    }

    pub(super) fn queue_pair_mut(&mut self, role: QpRole) -> &mut QpLink {
        match role {
            QpRole::Control => &mut self.control,
            QpRole::Bulk => &mut self.bulk,
        }
    }

    /// This link's part of a hello. `rkey` is the key of this rank's memory for the peer.
    pub(super) fn address(&self, node: &mut dyn Node, rkey: u32) -> Result<LinkAddress> {
        Ok(LinkAddress {
            rail: self.rail,
            rkey,
            control: self.control.address(node)?,
            bulk: self.bulk.address(node)?,
        })
    }

    /// Connects the queue pairs to the peer's, or begins to.
    pub(super) fn connect(&mut self, node: &mut dyn Node, peer: &LinkAddress) -> Result<()> {
        let device = node.rail(self.rail);
        device.connect(self.control.qp(), Some(peer.control))?;
        device.connect(self.bulk.qp(), Some(peer.bulk))?;
        self.remote_key = peer.rkey;
        Ok(())
    }

    /// The device still connects a queue pair of this link. An error says why it cannot.
    pub(super) fn is_connecting(&self, node: &mut dyn Node) -> device::Result<bool> {
        let device = node.rail(self.rail);
        for qp in [self.control.qp(), self.bulk.qp()] {
            if device.state(qp)? == device::State::Connecting {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The place `address` in the peer's memory for this rank, as requests on this link name it.
    #[inline(always)]
    pub(super) fn remote(&self, address: u64) -> Remote {
        Remote {
            address,
            rkey: self.remote_key,
        }
    }

    /// Posts the receives without memory that the peer's writes have used up.
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
            .post(node, operation, &[], false, true, Note::Grant)
    }

    /// Every posted request is known to be complete.
    pub(super) fn is_idle(&self) -> bool {
        self.control.held() == 0 && self.bulk.held() == 0
    }

    /// Destroys the queue pairs.
    pub(super) fn close(&self, node: &mut dyn Node) {
        self.control.close(node);
        self.bulk.close(node);
    }
}
