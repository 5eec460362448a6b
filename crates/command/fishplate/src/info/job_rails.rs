//! The rails of a job between hosts like this one: the RDMA ports and IP interfaces that the
//! settings select.

use channel::rdma::pairing::Network;
use rail_choice::{Port, Wanted, Wishes};
use serde_json::{Value, json};

use super::rails::{HostRails, Pairing, RailFacts};
use super::rdma;

/// The ports of this host that a job would use as its rails.
pub(crate) struct JobRails {
    /// The value of FISHPLATE_DEVICE.
    wanted: String,
    most: usize,
    ports: Vec<Port>,
    rails: HostRails,
    /// The reason why the job has no rails, if it has none.
    problem: Option<String>,
}

impl JobRails {
    /// Chooses the ports as a job would.
    pub(crate) fn find(wishes: &Wishes) -> JobRails {
        match rail_choice::choose(wishes) {
            Ok(ports) => JobRails::of(wishes, ports, None),
            Err(why) => JobRails::of(wishes, Vec::new(), Some(why.to_string())),
        }
    }

    /// The rails of a job that uses these ports.
    pub(crate) fn of(wishes: &Wishes, ports: Vec<Port>, problem: Option<String>) -> JobRails {
        JobRails {
            wanted: wishes.devices.to_string(),
            most: wishes.most,
            rails: HostRails {
                hosts: "hosts like this one".into(),
                rails: ports.iter().map(facts).collect(),
            },
            ports,
            problem,
        }
    }

    /// The value of FISHPLATE_DEVICE.
    pub(crate) fn wanted(&self) -> &str {
        &self.wanted
    }

    /// The RDMA devices that FISHPLATE_DEVICE names, in the form for [`verbs::choose`]. `None`: it
    /// names IP interfaces only.
    pub(crate) fn rdma_names(&self) -> Option<String> {
        let wanted = rail_choice::wanted(&self.wanted);
        let names = wanted.iter().filter_map(|one| match one {
            Wanted::Verbs(names) => Some(names.as_str()),
            Wanted::Tcp(_) => None,
        });
        let names: Vec<&str> = names.collect();
        match &names[..] {
            [] => None,
            // The empty name means all devices, so other names add none.
            several if several.contains(&"") => Some(String::new()),
            several => Some(several.join(",")),
        }
    }

    /// The ports, in the order of rails.
    pub(crate) fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// True if a rail is an RDMA port.
    pub(crate) fn has_rdma(&self) -> bool {
        self.ports.iter().any(|port| port.as_verbs().is_some())
    }

    /// The reason why a port is not used, if it is only the limit FISHPLATE_RAILS. `setting` is the
    /// name of the port in FISHPLATE_DEVICE.
    pub(crate) fn too_many(&self, setting: &str) -> Option<String> {
        let first = self.ports.iter().map(Port::name);
        let first = first.collect::<Vec<_>>().join(", ");
        (self.ports.len() == self.most).then(|| {
            format!(
                "it could be, but FISHPLATE_RAILS is {}: earlier ports are {first}; FISHPLATE_DEVICE={setting} takes this one",
                self.most
            )
        })
    }

    /// The reason why the job has no rails, if it has none.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The rails as a JSON object.
    pub(crate) fn object(&self) -> Value {
        json!({
            "rails": self.rails.object(),
            "pairs": Pairing::new(&self.rails, &self.rails).object(),
            "problem": self.problem,
        })
    }

    /// Prints the table of the rails, and the pairs that they form.
    pub(crate) fn print(&self) {
        if self.ports.is_empty() {
            return;
        }
        let pairing = Pairing::new(&self.rails, &self.rails);
        tell!(
            "\nRails of a job between hosts:\n{}{}",
            self.rails.text(),
            pairing.text().trim_end()
        );
    }
}

fn facts(port: &Port) -> RailFacts {
    match port {
        Port::Verbs(listed) => rdma::facts(listed),
        Port::Tcp(port) => {
            let attributes = port.attributes();
            RailFacts {
                port: attributes.name,
                network: Network {
                    link_layer: attributes.link_layer,
                    subnet: attributes.subnet,
                },
                bandwidth: attributes.bandwidth,
                card: None,
                slot: None,
                slot_bandwidth: None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_of_one_network_pair_only_with_those_of_their_kind() {
        let wishes = Wishes {
            devices: "rdma,tcp:eth1",
            connections: 1,
            most: 8,
        };
        let port = |name: &str| tcp::Port {
            name: name.into(),
            prefix: 24,
            ..tcp::Port::loopback([10, 0, 0, 1].into())
        };
        let roce = rdma::tests::roce(0, "10.0.0.1");
        let ports = vec![
            Port::Verbs(Box::new(roce)),
            Port::Tcp(port("tcp:eth1")),
            Port::Tcp(port("tcp:eth1")),
        ];
        let job = JobRails::of(&wishes, ports, None);
        let object = job.object();
        assert_eq!(object["pairs"]["pairs"], json!([[0, 0], [1, 1], [2, 2]]));
        assert_eq!(object["pairs"]["cannot_reach"], json!([[0, 1], [0, 2]]));
        let rails = &object["rails"]["rails"];
        assert_eq!(rails[0]["subnet"], rails[1]["subnet"]);
        assert_eq!(rails[1]["link_layer"], "TCP");
        assert_eq!(job.rdma_names().as_deref(), Some(""));
    }
}
