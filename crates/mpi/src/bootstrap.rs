//! A rank's connections to its job, and the settings of its transports.

use std::sync::Arc;

use channel::rdma::{Config, Design, RailSettings};
use channel::{Peers, Settings, WaitMode, WaitSettings};
use knobs::{Knobs, RdmaDesign, ReadyToReceive, Rendezvous, SingleCopyMode, Wait};
use pmi::{Bootstrap, Standalone};

use crate::p2p::protocol::Limits;

/// A rank's connections to its job.
pub struct Wiring {
    /// The rank's identity, and its connection to the launcher.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// The shared memory and devices by which the rank reaches its peers.
    pub peers: Peers,
}

impl Wiring {
    /// The connections of a rank with the launcher's shared memory for this host and no device.
    pub fn new(bootstrap: Arc<dyn Bootstrap>) -> Wiring {
        let rank = bootstrap.rank();
        Wiring {
            peers: Peers {
                rank,
                size: bootstrap.size(),
                local: bootstrap.hosts().beside(rank).collect(),
                segment: bootstrap.take_segment(),
                node: None,
            },
            bootstrap,
        }
    }

    /// The connections of a rank without peers.
    pub(crate) fn alone() -> Wiring {
        Wiring::new(Arc::new(Standalone::alone()))
    }
}

/// The limits of the protocols.
pub(crate) fn limits(knobs: &Knobs) -> Limits {
    Limits {
        eager: knobs.eager_limit.0,
        single_copy: knobs.single_copy_limit.0,
        cooperative: knobs.together_limit.0,
        unexpected: knobs.unexpected_limit.0,
        rendezvous: knobs.rendezvous,
        announces: knobs.rtr == ReadyToReceive::Auto && knobs.rendezvous == Rendezvous::Auto,
    }
}

/// The settings of the transports.
pub(crate) fn transports(knobs: &Knobs) -> Settings {
    Settings {
        ring_slots: knobs.ring_slots,
        ring_bytes: knobs.ring_bytes.0,
        single_copy: knobs.single_copy != SingleCopyMode::Off,
        near: knobs.cores == knobs::CoreDistance::Near,
        non_temporal_from: knobs.past_cache_limit.0,
        rdma: Config {
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
            keep_registrations: knobs.registration_cache,
            rails: RailSettings::default(),
        },
        wait: WaitSettings {
            mode: match knobs.wait {
                Wait::Auto => WaitMode::Auto,
                Wait::Spin => WaitMode::Spin,
                Wait::Yield => WaitMode::Yield,
                Wait::Sleep => WaitMode::Sleep,
            },
            spin_ns: knobs.spin.as_nanos() as u64,
        },
    }
}
