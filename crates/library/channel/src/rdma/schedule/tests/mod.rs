//! Tests of the schedule.

mod packets;
mod properties;
mod simulator;
mod transfers;

use super::{LinkTraits, Schedule};
use crate::rdma::config::RailSettings;
use knobs::RailPolicy;

/// The bandwidth of a QDR link in a PCI Express slot of the second generation, in bytes per second.
const FAST: u64 = 3_390_000_000;
/// The latency of the links, in nanoseconds.
const LATENCY: u64 = 1_500;
const MS: u64 = 1_000_000;
/// The greatest delay with which continuous polls find a completion, in nanoseconds.
const SOON: Option<u64> = Some(2_000);
const MIB: u64 = 1 << 20;

/// A link on a card of its own.
fn link(card: usize, bandwidth: u64) -> LinkTraits {
    LinkTraits {
        bandwidth,
        latency_ns: LATENCY,
        card,
        polled: false,
    }
}

/// Links on cards of their own.
fn links(bandwidths: &[u64]) -> Vec<LinkTraits> {
    let numbered = bandwidths.iter().enumerate();
    numbered
        .map(|(card, &bandwidth)| link(card, bandwidth))
        .collect()
}

fn settings(policy: RailPolicy) -> RailSettings {
    RailSettings {
        policy,
        ..RailSettings::default()
    }
}

fn schedule(policy: RailPolicy, links: &[LinkTraits]) -> Schedule {
    Schedule::new(&settings(policy), links)
}

fn adaptive(bandwidths: &[u64]) -> Schedule {
    schedule(RailPolicy::Adaptive, &links(bandwidths))
}
