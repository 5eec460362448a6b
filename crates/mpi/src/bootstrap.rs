//! The ties of a rank to the others of its job, and the settings of its transports.

use channel::rdma::{Config, Design};
use channel::{Peers, Settings, WaitMode, WaitSettings};
use knobs::{Knobs, RdmaDesign, SingleCopy, Wait};
use pmi::{Control, Hosts, Job};

use crate::p2p::protocol::Limits;

/// The ties of a rank to the others of its job.
pub struct Wiring {
    /// The means to reach the other ranks.
    pub peers: Peers,
    /// The host of each rank.
    pub hosts: Hosts,
    /// The connection to the launcher, if there is one.
    pub control: Option<Control>,
}

impl From<Job> for Wiring {
    fn from(job: Job) -> Wiring {
        Wiring {
            peers: Peers {
                rank: job.rank,
                size: job.size,
                local: job.hosts.beside(job.rank).collect(),
                segment: Some(job.segment),
                node: None,
            },
            hosts: job.hosts,
            control: Some(job.control),
        }
    }
}

impl Wiring {
    /// A rank without peers.
    pub(crate) fn alone() -> Wiring {
        Wiring {
            peers: Peers::none(),
            hosts: Hosts::one(1),
            control: None,
        }
    }
}

/// The bounds of protocols.
pub(crate) fn limits(knobs: &Knobs) -> Limits {
    Limits {
        eager: knobs.eager_limit.0,
        single_copy: knobs.single_copy_limit.0,
        cooperative: knobs.together_limit.0,
        unexpected: knobs.unexpected_limit.0,
        rendezvous: knobs.rendezvous,
    }
}

/// The settings of the transports.
pub(crate) fn transports(knobs: &Knobs) -> Settings {
    Settings {
        ring_slots: knobs.ring_slots,
        ring_bytes: knobs.ring_bytes.0,
        single_copy: knobs.single_copy != SingleCopy::Off,
        near: knobs.cores == knobs::Cores::Near,
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
