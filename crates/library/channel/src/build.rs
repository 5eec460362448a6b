//! The construction of a rank's router from what its launcher and its machine offer.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use datatype::local_work::Meter;
use device::Node;

use crate::rdma::{self, Rdma};
use crate::shm::{Cores, LocalRanks, Segment, Shape, Shm};
use crate::transports::Transports;
use crate::{Fault, Result, Router, WaitSettings};

/// Memory of all rings into one rank, in bytes.
const RINGS_BYTES: usize = 10 << 20;
/// Least memory of one ring, in bytes.
const LEAST_RING_BYTES: usize = 384 << 10;

/// The place of a rank in a machine with devices.
pub type RankNode = Box<dyn Node>;

/// The means by which a rank reaches the others of its job.
pub struct Peers {
    /// World rank of this rank.
    pub rank: usize,
    /// Number of ranks that the rank knows at its start: those of the job. More may follow
    /// ([`Router::add_peers`]).
    pub size: usize,
    /// World ranks of the ranks on this rank's host, itself included, in order.
    pub local: Vec<usize>,
    /// The memory that the ranks of this host share, if they do.
    pub segment: Option<OwnedFd>,
    /// The rank's place in a machine with RDMA devices, by which it reaches ranks without common
    /// memory.
    pub node: Option<RankNode>,
    /// The meter of copies within the rank's memory, on a modelled machine.
    pub meter: Option<Arc<Meter>>,
}

impl Peers {
    /// Rank `rank` of `size` ranks, which shares memory with nobody and has no device.
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

    /// The rank is on one host with the ranks `local`, itself included, in order, and shares the
    /// memory `segment` with them, if there is any.
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
    /// Bytes of a shared-memory ring beside its slots.
    pub ring_bytes: usize,
    /// Ranks may copy straight from the memory of another process.
    pub single_copy: bool,
    /// The cores of this host's ranks share a cache, as far as the launcher knows.
    pub near: bool,
    /// Smallest body to write with non-temporal stores between cores without a common cache, in
    /// bytes.
    pub non_temporal_from: usize,
    /// Settings of the RDMA transport.
    pub rdma: rdma::Config,
    /// Settings of waiting.
    pub wait: WaitSettings,
}

impl Router {
    /// Joins the transports to all peers.
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

/// Joins the memory that the ranks of this host share.
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
