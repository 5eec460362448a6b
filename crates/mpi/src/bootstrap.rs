//! How a rank is tied to the others of its job, and the ways to them that come of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use channel::Channels;
use channel::rdma::{Config, Design, Rdma};
use channel::shm::{Cores, LocalRanks, Segment, Shape, Shm};
use device::Node;
use knobs::{Knobs, RdmaDesign};
use pmi::{Bootstrap, Standalone};

use crate::{Class, Error, Result};

/// What the rings into one rank may take of the memory of its host, and what a ring has in any case.
const RINGS_BYTES: usize = 10 << 20;
const RING_BYTES: usize = 384 << 10;

/// How a rank is tied to the others of its job.
pub struct Wiring {
    /// The rank's identity, and its launcher.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// The memory that the ranks of this host share, if they do.
    pub segment: Option<OwnedFd>,
    /// The rank's place in a machine with RDMA devices: by them it reaches those with whom it shares no memory.
    pub node: Option<Box<dyn Node>>,
}

impl Wiring {
    /// By the memory that the launcher provides, and no device.
    pub fn new(bootstrap: Arc<dyn Bootstrap>) -> Wiring {
        Wiring {
            segment: bootstrap.take_segment(),
            node: None,
            bootstrap,
        }
    }

    /// One rank, with nobody to reach.
    pub(crate) fn alone() -> Wiring {
        Wiring::new(Arc::new(Standalone::alone()))
    }

    /// The ways to all peers.
    pub(crate) fn channels(&mut self, knobs: &Knobs) -> Result<Channels> {
        let (rank, size) = (self.bootstrap.rank(), self.bootstrap.size());
        let shm = match self.segment.take() {
            Some(segment) => Some(self.join(segment, knobs)?),
            None => None,
        };
        let rdma = match self.node.take() {
            Some(node) => Some(Rdma::attach(node, rank, size, config(knobs))?),
            None => None,
        };
        let reached = shm.as_ref().map_or(1, |shm| shm.places().here());
        if reached < size && rdma.is_none() {
            let detail = "there are ranks with which this one shares no memory, and it has no device to reach them by";
            return Err(Error::new(Class::OTHER, detail));
        }
        Ok(Channels::of(rank, shm, rdma))
    }

    /// Joins the memory that the ranks of this host share.
    fn join(&self, segment: OwnedFd, knobs: &Knobs) -> Result<Shm> {
        let (rank, hosts) = (self.bootstrap.rank(), self.bootstrap.hosts());
        let places = LocalRanks::some(hosts.beside(rank), hosts.ranks());
        let share = (RINGS_BYTES / places.here()).max(RING_BYTES);
        let shape = Shape::new(knobs.ring_slots, knobs.ring_bytes.0.min(share))?;
        let segment = Segment::open(segment, places.here(), shape)?;
        let single_copy = knobs.single_copy != knobs::SingleCopyMode::Off;
        let cores = Cores {
            near: knobs.cores == knobs::CoreDistance::Near,
            past_cache: knobs.past_cache_limit.0,
        };
        Ok(Shm::attach(segment, rank, places, single_copy, cores)?)
    }
}

/// The settings of the channel by RDMA.
fn config(knobs: &Knobs) -> Config {
    Config {
        design: match knobs.rdma_design {
            RdmaDesign::Basic => Design::Basic,
            RdmaDesign::Piggyback => Design::Piggyback,
            RdmaDesign::Pipeline => Design::Pipeline,
            RdmaDesign::ZeroCopy => Design::ZeroCopy,
        },
        ring_bytes: knobs.rdma_ring_bytes.0,
        chunk: knobs.rdma_chunk.0,
        credit: knobs.rdma_credit,
        rings: knobs.rdma_rings,
        gather: knobs.rdma_gather,
    }
}
