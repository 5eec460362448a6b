//! Facts of the transport for the layers above: the capabilities towards a peer, and the rails of a
//! message, as the schedule of its endpoint would choose them.

use device::LinkLayer;

use super::endpoint::Endpoint;
use super::local::Local;
use super::rail::Rail;
use super::schedule::{Choice, Prediction};
use crate::{Capabilities, PathCosts, RailChoice, ZeroCopyCapabilities};
use knobs::RdmaDesign;

/// The capabilities of the transport for peers to which the path has these costs.
pub(super) fn offer(local: &Local, cost: PathCosts) -> Capabilities {
    let layers = local.rails_in_use().map(|rail| rail.network().link_layer);
    let packet = local.layout.max_body();
    let zero_copy = ZeroCopyCapabilities {
        read: true,
        notified_write: true,
        acknowledged: local.rails_in_use().all(Rail::answered),
        synchronous: false,
        scattered: false,
        unattended: !local.rails_in_use().any(Rail::polled),
    };
    Capabilities {
        transport: transport(layers),
        longest_packet: packet,
        piece: packet,
        pipelined: false,
        zero_copy: (local.config.design == RdmaDesign::ZeroCopy).then_some(zero_copy),
        cooperative: false,
        push: false,
        settled: true,
        rails: local.in_use.len(),
        cost,
    }
}

/// The name of the transport over rails with these link layers.
fn transport(mut layers: impl Iterator<Item = LinkLayer>) -> &'static str {
    let is_tcp = |layer| layer == LinkLayer::Internet;
    let first = layers.next().is_some_and(is_tcp);
    match (first, layers.all(|layer| is_tcp(layer) == first)) {
        (_, false) => "RDMA and TCP",
        (true, true) => "TCP",
        (false, true) => "RDMA",
    }
}

/// The choice of rails for a message of `len` bytes to a peer, and the choices not taken.
pub(super) fn rails(local: &mut Local, endpoint: Option<&Endpoint>, len: usize) -> RailChoice {
    let Some((endpoint, schedule)) =
        endpoint.and_then(|endpoint| Some((endpoint, &endpoint.schedules.as_ref()?.out)))
    else {
        return only_rail(local, endpoint, len);
    };
    let rail = |link: usize| endpoint.links()[link].rail();
    let predictions = schedule.explain(len as u64);
    let shares = |prediction: &Prediction| {
        let shares = prediction.shares.iter().enumerate();
        let used = shares.filter(|(_, bytes)| **bytes > 0);
        used.map(|(link, bytes)| (rail(link), *bytes))
            .collect::<Vec<_>>()
    };
    let name = |prediction: &Prediction| match prediction.choice {
        Choice::Link(link) => format!("rail {}", rail(link)),
        Choice::EvenStripe => "even stripe".to_string(),
        Choice::Split => {
            let parts = shares(prediction)
                .into_iter()
                .map(|(_, bytes)| format!("{:.0}", bytes as f64 * 100.0 / len.max(1) as f64));
            format!("split {}", parts.collect::<Vec<_>>().join(":"))
        }
    };
    let (taken, others) = predictions
        .split_first()
        .expect("a schedule makes a choice");
    RailChoice {
        choice: name(taken),
        shares: shares(taken),
        predicted_ns: taken.arrival_ns,
        alternatives: others
            .iter()
            .map(|other| (name(other), other.arrival_ns))
            .collect(),
        limit: schedule.limit(&taken.shares).map(str::to_string),
    }
}

/// The choice of rails where the peer has one rail, or is not connected.
fn only_rail(local: &mut Local, endpoint: Option<&Endpoint>, len: usize) -> RailChoice {
    let link = endpoint.and_then(|endpoint| endpoint.links().first());
    let rail = link.map_or(0, |link| link.rail());
    let attributes = local.node.rail(rail).attributes();
    let on_link = len as u128 * 1_000_000_000 / u128::from(attributes.bandwidth.max(1));
    RailChoice {
        choice: format!("rail {rail}"),
        shares: vec![(rail, len as u64)],
        predicted_ns: attributes.latency_ns + on_link as u64,
        alternatives: Vec::new(),
        limit: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_for_rails_names_each_kind_once() {
        let (ib, roce, tcp) = (
            LinkLayer::InfiniBand,
            LinkLayer::Ethernet,
            LinkLayer::Internet,
        );
        for (layers, word) in [
            (&[ib, roce][..], "RDMA"),
            (&[tcp, tcp], "TCP"),
            (&[roce, tcp, roce], "RDMA and TCP"),
            (&[tcp, roce], "RDMA and TCP"),
        ] {
            assert_eq!(transport(layers.iter().copied()), word, "{layers:?}");
        }
    }
}
