//! The construction of a rank's router from what its launcher and its node provide.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use datatype::local_work::Meter;
use device::Node;

use crate::rdma::{self, Rdma};
use crate::shm::{Cores, LocalRanks, Segment, Shape, Shm};
use crate::transports::Transports;
use crate::{Fault, Result, Router, WaitSettings};

/// Total memory of all shared-memory rings to one rank, in bytes.
const RINGS_BYTES: usize = 10 << 20;
/// Least memory of one shared-memory ring, in bytes.
const LEAST_RING_BYTES: usize = 384 << 10;

/// A rank's node: its RDMA devices, its clock, its out-of-band messages.
pub type RankNode = Box<dyn Node>;

/// The peers of a rank, and the memory and devices by which it reaches them.
pub struct Peers {
    /// World rank of this rank.
    pub rank: usize,
    /// Number of ranks that the rank knows at its start: those of the job. More may follow by
    /// [`Router::add_peers`].
    pub size: usize,
    /// World ranks of the ranks on this rank's host, itself included, in order.
    pub local: Vec<usize>,
    /// The memory that the ranks of this host share; `None`: they share none.
    pub segment: Option<OwnedFd>,
    /// The rank's node, whose RDMA devices reach ranks without common memory.
    pub node: Option<RankNode>,
    /// The meter that charges copies within the rank's memory, on a modelled machine.
    pub meter: Option<Arc<Meter>>,
}

impl Peers {
    /// Rank `rank` of `size` ranks, without shared memory and without devices.
    pub fn new(rank: usize, size: usize) -> Peers {
        Peers {
            rank,
            size,
            local: vec![rank],
            segment: None,
            node: None,
            meter: None,
        }
    }

    /// Adds the ranks `local` of this rank's host, itself included, in order, and the memory
    /// `segment` that they share, if there is any.
    pub fn sharing(self, local: impl Iterator<Item = usize>, segment: Option<OwnedFd>) -> Peers {
        Peers {
            local: local.collect(),
            segment,
            ..self
        }
    }
}

/// The settings of all transports.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of slots of a shared-memory ring.
    pub ring_slots: usize,
    /// Bytes of the arenas of a shared-memory ring.
    pub ring_bytes: usize,
    /// True if ranks may copy straight from the memory of another process.
    pub single_copy: bool,
    /// True if the launcher knows that the cores of this host's ranks share a cache.
    pub near: bool,
    /// Shortest body to write with non-temporal stores between cores without a common cache, in
    /// bytes.
    pub non_temporal_from: usize,
    /// Settings of the RDMA transport.
    pub rdma: rdma::Config,
    /// Settings of how a rank waits.
    pub wait: WaitSettings,
}

impl Router {
    /// Builds the router with the transports to all peers.
    ///
    /// # Errors
    /// A transport cannot be set up, or a peer shares no memory and there is no node.
    pub fn build(peers: Peers, settings: &Settings) -> Result<Router> {
        let Peers {
            rank,
            size,
            local,
            segment,
            node,
            meter,
        } = peers;
        let here = local.len();
        let shm = match segment {
            Some(segment) => {
                let local = LocalRanks::some(local.into_iter(), size);
                Some(join(segment, rank, local, settings)?)
            }
            None => None,
        };
        let rdma = match node {
            Some(node) => Some(Rdma::attach(node, rank, size, settings.rdma)?),
            None => None,
        };
        let reached = if shm.is_some() { here } else { 1 };
        if reached < size && rdma.is_none() {
            let what = "there are ranks with which this one shares no memory, and it has no device to reach them by";
            return Err(Fault::Mismatch(what.into()).into());
        }
        let transports = Transports::new(rank, shm, rdma).metered(meter);
        Ok(Router::of(rank, transports))
    }
}

/// Attaches to the memory that the ranks of this host share.
fn join(segment: OwnedFd, rank: usize, local: LocalRanks, settings: &Settings) -> Result<Shm> {
    let share = (RINGS_BYTES / local.count()).max(LEAST_RING_BYTES);
    let shape = Shape::new(settings.ring_slots, settings.ring_bytes.min(share))?;
    let segment = Segment::open(segment, local.count(), shape)?;
    let cores = Cores {
        near: settings.near,
        non_temporal_from: settings.non_temporal_from,
    };
    Shm::attach(segment, rank, local, settings.single_copy, cores)
}
