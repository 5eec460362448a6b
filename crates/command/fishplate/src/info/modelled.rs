//! `fishplate info --fabric`: shows the rails of a modelled machine.

use ::fabric::limits::{limits, one_way};
use ::fabric::{Bytes, Costs, Resource, System};
use channel::rdma::pairing::Network;
use device::LinkLayer;
use serde_json::{Value, json};

use super::rails::{HostRails, RailFacts, pairings};

/// The size of the writes whose rate is given as a rail's bandwidth.
const LONG_WRITE: Bytes = Bytes(1 << 20);

/// The rails of a modelled machine, by kinds of hosts.
pub(crate) struct ModelledRails {
    name: String,
    kinds: Vec<HostRails>,
    /// The number of hosts of each kind, in the order of kinds.
    counts: Vec<usize>,
}

impl ModelledRails {
    /// Finds the rails of the machine that `name` names: one of the catalogue, or a file.
    pub(crate) fn of(name: &str) -> Result<ModelledRails, String> {
        let system = crate::fabric::system(name)?;
        let mut kinds: Vec<(Vec<u32>, Vec<usize>)> = Vec::new();
        for host in 0..system.nodes {
            let rails = system.rails_of(host);
            match kinds.iter_mut().find(|(known, _)| *known == rails) {
                Some((_, hosts)) => hosts.push(host as usize),
                None => kinds.push((rails, vec![host as usize])),
            }
        }
        let counts = kinds.iter().map(|(_, hosts)| hosts.len()).collect();
        let kinds = kinds.into_iter().map(|(rails, hosts)| HostRails {
            hosts: match &hosts[..] {
                [one] => format!("host {one}"),
                _ => format!("hosts {}", launch::ranges(&hosts)),
            },
            rails: rails.into_iter().map(|rail| facts(&system, rail)).collect(),
        });
        Ok(ModelledRails {
            name: name.into(),
            kinds: kinds.collect(),
            counts,
        })
    }

    /// Prints the tables of all kinds of hosts, and the pairs between them.
    pub(crate) fn print(&self) {
        for kind in &self.kinds {
            tell!("{}, {}:\n{}", self.name, kind.hosts, kind.text());
        }
        for pairing in pairings(&self.kinds, |at| self.counts[at] > 1) {
            tell!("{}", pairing.text().trim_end());
        }
    }

    /// The rails of the modelled machine as a JSON object.
    pub(crate) fn object(&self) -> Value {
        let kinds: Vec<Value> = self.kinds.iter().map(HostRails::object).collect();
        let pairings = pairings(&self.kinds, |at| self.counts[at] > 1);
        let pairings: Vec<Value> = pairings.iter().map(|pairing| pairing.object()).collect();
        json!({ "fabric": self.name, "kinds_of_hosts": kinds, "pairs": pairings })
    }
}

fn facts(system: &System, number: u32) -> RailFacts {
    let rail = system.rail(number);
    let limits = limits(&Costs::of(system, number), LONG_WRITE);
    let rate = |limit: &::fabric::limits::Limit| limit.one_way.bits_per_sec() / 8;
    let buses = limits
        .iter()
        .filter(|limit| matches!(limit.resource, Resource::BusDown | Resource::BusUp));
    RailFacts {
        port: format!("modelled rail {number}"),
        network: Network {
            link_layer: LinkLayer::InfiniBand,
            subnet: rail.subnet.into(),
        },
        bandwidth: one_way(&limits).map_or(0, rate),
        card: Some(format!("card {}", rail.card)),
        slot: Some(format!(
            "{} lanes of {}, socket {}",
            rail.bus_lanes(),
            rail.bus().lane,
            rail.socket
        )),
        slot_bandwidth: buses.map(rate).min(),
    }
}
