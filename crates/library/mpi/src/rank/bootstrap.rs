//! A rank's connections to its job, and the settings of its transports.

use std::sync::Arc;

use channel::rdma::{Config, Patience, RailSettings};
use channel::{Peers, Settings, WaitSettings};
use datatype::local_work::{Meter, Rates};
use knobs::{CostSource, Knobs, ReadyToReceive, Rendezvous, SingleCopyMode};
use pmi::{Bootstrap, Standalone};

use crate::algorithms::SharedChoices;
use crate::p2p::protocol::{CopyCostSource, Limits, Protocol};

/// A rank's connections to its job: launcher, transports and clocks.
pub struct Wiring {
    /// The rank's identity, and its connection to the launcher.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// The shared memory and devices by which the rank reaches its peers.
    pub peers: Peers,
    /// The measured times of work on the rank's own memory.
    pub work: WorkTimes,
    /// The choices by costs that the ranks of this process share. `None`: it has this rank alone.
    pub choices: Option<SharedChoices>,
}

/// The times of work on a rank's own memory, on a modelled machine.
#[derive(Clone, Debug, Default)]
pub struct WorkTimes {
    /// The rates of work that were measured. Work without a measured rate takes the time that the
    /// model of the machine gives.
    pub rates: Rates,
    /// True if the work is recorded by kind, for a trace.
    pub are_kept: bool,
}

impl WorkTimes {
    /// Makes the meter of a rank on a modelled machine, and gives it to the rank's transports, too.
    /// `None`: the machine is real.
    pub(crate) fn meter(self, peers: &mut Peers) -> Option<Arc<Meter>> {
        let charge = peers.node.as_mut()?.accounting()?.local_work()?;
        let meter = Meter::new(charge.owed, charge.picos, self.rates, self.are_kept);
        peers.meter = Some(Arc::new(meter));
        peers.meter.clone()
    }
}

/// A rank that starts after others of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPeer {
    /// The number of the rank, which the bootstrap gives once to each rank of the job.
    pub rank: usize,
    /// The number of the rank's host. Ranks that share no memory are on hosts with different
    /// numbers, even if one machine runs them, so that collectives and MPI_Comm_split_type see
    /// their memory as it is.
    pub host: u32,
}

impl Wiring {
    /// The connections of a rank with the launcher's shared memory for this host and no device.
    pub fn new(bootstrap: Arc<dyn Bootstrap>) -> Wiring {
        let rank = bootstrap.rank();
        Wiring {
            peers: Peers::new(rank, bootstrap.size())
                .sharing(bootstrap.hosts().beside(rank), bootstrap.take_segment()),
            bootstrap,
            work: WorkTimes::default(),
            choices: None,
        }
    }

    /// The connections of a rank without peers.
    pub(crate) fn alone() -> Wiring {
        Wiring::new(Arc::new(Standalone::alone()))
    }
}

/// The limits of the protocols, by the settings.
pub(crate) fn limits(knobs: &Knobs) -> Limits {
    let usual = Knobs::default();
    Limits {
        eager: (knobs.eager_limit != usual.eager_limit).then_some(knobs.eager_limit.0),
        pieces: knobs.rdma_pieces_limit.0,
        blocking_pieces: knobs.rdma_blocking_limit.0.max(knobs.rdma_pieces_limit.0),
        single_copy: knobs.single_copy_limit.0,
        cooperative: knobs.together_limit.0,
        unexpected: knobs.unexpected_limit.0,
        rendezvous: knobs.rendezvous,
        announces: knobs.rtr != ReadyToReceive::Off && knobs.rendezvous == Rendezvous::Auto,
        announces_all: knobs.rtr == ReadyToReceive::On && knobs.rendezvous == Rendezvous::Auto,
        forced: Protocol::of_setting(knobs.protocol),
        copy_costs: match (&knobs.costs, knobs.single_copy) {
            (CostSource::Keep | CostSource::Learn, SingleCopyMode::Auto) => CopyCostSource::Learned,
            _ => CopyCostSource::Estimated,
        },
    }
}

/// The settings for several rails. `local_rank`: the rank's number among those of its host.
fn rails(knobs: &Knobs, local_rank: usize) -> RailSettings {
    let least = match knobs.stripe_above_eager {
        true => knobs.eager_limit.0.min(knobs.rdma_chunk.0),
        false => 0,
    };
    RailSettings {
        policy: knobs.rail_policy,
        stripe_above: knobs.stripe_threshold.0.max(least),
        queue_pairs: knobs.rail_qps,
        most: knobs.rails.most(),
        local_rank,
    }
}

/// The settings of the transports. `local_rank`: the rank's number among those of its host.
/// `reports_deaths`: the launcher ends the job when a rank has died.
pub(crate) fn transports(knobs: &Knobs, local_rank: usize, reports_deaths: bool) -> Settings {
    Settings {
        ring_slots: knobs.ring_slots,
        ring_bytes: knobs.ring_bytes.0,
        single_copy: knobs.single_copy != SingleCopyMode::Off,
        near: knobs.cores == knobs::CoreDistance::Near,
        non_temporal_from: knobs.past_cache_limit.0,
        rdma: Config {
            design: knobs.rdma_design,
            ring_bytes: knobs.rdma_ring_bytes.0,
            chunk: knobs.rdma_chunk.0,
            credit: knobs.rdma_credit,
            rings: knobs.rdma_rings,
            gather: knobs.rdma_gather,
            keep_registrations: knobs.registration_cache,
            rails: rails(knobs, local_rank),
            patience: Patience {
                silence: knobs.outage.0.map(|limit| limit.as_nanos() as u64),
                refusal_is_death: !reports_deaths,
            },
        },
        wait: WaitSettings {
            mode: knobs.wait,
            spin_ns: knobs.spin.as_nanos() as u64,
        },
    }
}

#[cfg(test)]
mod tests {
    use knobs::{QueuePairs, RailPolicy};

    use super::*;

    fn of(vars: &[(&str, &str)]) -> RailSettings {
        let vars = vars.iter();
        let vars = vars.map(|(name, value)| (name.to_string(), value.to_string()));
        transports(&Knobs::parse(vars).unwrap(), 3, true).rdma.rails
    }

    #[test]
    fn without_settings_the_transport_has_its_defaults() {
        let expected = RailSettings {
            most: knobs::MOST_RAILS,
            local_rank: 3,
            ..RailSettings::default()
        };
        assert_eq!(of(&[]), expected);
    }

    #[test]
    fn settings_of_rails_reach_the_transport() {
        let rails = of(&[
            ("MV2_SM_SCHEDULING", "ROUND_ROBIN"),
            ("FISHPLATE_RAIL_QPS", "shared"),
            ("MV2_NUM_HCAS", "2"),
        ]);
        assert_eq!(rails.policy, RailPolicy::RoundRobin);
        assert_eq!(rails.queue_pairs, QueuePairs::Shared);
        assert_eq!((rails.most, rails.stripe_above), (2, 16 << 10));
    }

    #[test]
    fn the_stripe_threshold_rises_to_the_eager_limit_of_rdma_on_request() {
        let low = ("FISHPLATE_STRIPE_THRESHOLD", "4K");
        let rule = ("FISHPLATE_STRIPE_ABOVE_EAGER", "on");
        let eager = ("FISHPLATE_EAGER_LIMIT", "8K");
        let above = |vars: &[(&str, &str)]| of(vars).stripe_above;
        assert_eq!(above(&[low, eager]), 4 << 10);
        assert_eq!(above(&[low, eager, rule]), 8 << 10);
        // A packet is the longest message that RDMA sends eagerly.
        assert_eq!(above(&[low, rule]), 16 << 10);
    }
}
