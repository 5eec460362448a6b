//! The RDMA devices of this host: those that a job would use, and the reasons why it would not use
//! the others.

use channel::rdma::pairing::Network;
use device::{Error, LinkLayer, Placement};
use results::terminal::{beside, width};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use verbs::{Choice, Gid, GidKind, Listed, choose, list};

use super::job_rails::JobRails;
use super::rails::RailFacts;

/// The width of the text of reasons, in columns.
const WIDTH: usize = 100;

/// All RDMA ports of this host, and those that a job would use.
pub(crate) struct PortChoice {
    ports: Vec<Port>,
    /// The value of FISHPLATE_DEVICE.
    wanted: String,
    /// The reason why a job uses no port, if it uses none.
    problem: Option<String>,
    /// The most memory that a process may lock for registration, in bytes. `None`: no limit.
    memlock: Option<u64>,
}

struct Port {
    listed: Listed,
    /// The number of the port's rail, or the reason why it is not used.
    used: Result<usize, String>,
}

/// Lists the RDMA ports, with the rail or the reason for each.
pub(crate) fn find(rails: &JobRails) -> PortChoice {
    let listed = list();
    let choice = match rails.rdma_names() {
        Some(names) => listed.clone().and_then(|ports| choose(ports, &names)),
        None => Err(Error::Invalid(
            "FISHPLATE_DEVICE names IP interfaces only".into(),
        )),
    };
    let memlock = getrlimit(Resource::Memlock).current;
    PortChoice::new(listed.unwrap_or_default(), choice, rails, memlock)
}

impl PortChoice {
    fn new(
        all: Vec<Listed>,
        choice: device::Result<Choice>,
        rails: &JobRails,
        memlock: Option<u64>,
    ) -> PortChoice {
        let (choice, problem) = match choice {
            Ok(choice) => (choice, None),
            Err(why) => {
                let left = all.iter().cloned().map(|one| {
                    let why = one.unusable.clone();
                    (one, why.unwrap_or("others were asked for".into()))
                });
                let left = left.collect();
                let used = Vec::new();
                (Choice { used, left }, Some(why.to_string()))
            }
        };
        let port = |listed: Listed| {
            let ports = rails.ports().iter();
            let mut ports = ports.map(rail_choice::Port::as_verbs);
            let rail = ports.position(|rail| rail.is_some_and(|one| same(one, &listed)));
            let left = choice.left.iter().find(|(one, _)| same(one, &listed));
            let left = left.map(|(_, why)| why.clone());
            let why = left.or_else(|| rails.too_many(&listed.words()));
            let why = why.or(rails.problem().map(String::from));
            let used = rail.ok_or(why.unwrap_or_default());
            Port { listed, used }
        };
        PortChoice {
            ports: all.into_iter().map(port).collect(),
            wanted: rails.wanted().to_string(),
            problem: problem.or(rails.problem().map(String::from)),
            memlock,
        }
    }

    /// The ports as a JSON object.
    pub(crate) fn object(&self) -> Value {
        let ports = self.ports.iter().map(|port| self.port_object(port));
        json!({
            "devices": ports.collect::<Vec<_>>(),
            "used": self.used(),
            "asked_for": self.wanted,
            "problem": self.problem,
            "memlock_bytes": self.memlock,
        })
    }

    /// A line with the ports that a job would use.
    pub(crate) fn line(&self) -> String {
        if let Some(problem) = &self.problem {
            return problem.clone();
        }
        let why = match self.wanted.is_empty() {
            true => "the ports that can be used, except slow ones and doubles",
            false => "selected by FISHPLATE_DEVICE",
        };
        format!("{} would be used: {why}", self.used().join(", "))
    }

    /// Prints the table of the ports, and the reasons below it.
    pub(crate) fn print(&self) {
        if self.ports.is_empty() {
            return;
        }
        let header = [
            "device", "use", "state", "link", "rate", "on", "card", "shares", "NUMA", "packet",
        ];
        let rows = self.ports.iter().map(|port| self.row(port)).collect();
        let header = header.map(String::from).to_vec();
        let left = header.len() - 2;
        say!("\n{}", results::table::lines(header, rows, left).trim_end());
        if let Some(bytes) = self.memlock {
            tell!(
                "\nMemory that a device accesses is locked, and a process may lock at most {bytes} bytes here. If a rank cannot\n\
                 register memory, run `ulimit -l unlimited` in the shell that starts the job."
            );
        }
        for port in &self.ports {
            say!("");
            for (at, (what, words)) in reasons(port).into_iter().enumerate() {
                let name = if at == 0 {
                    port.listed.words()
                } else {
                    String::new()
                };
                let label = format!("{name:10} {what:10} ");
                let width = width().map_or(WIDTH, |width| width.min(WIDTH));
                say!("{}", beside(&label, 22, &words, Some(width)));
            }
        }
    }

    fn row(&self, port: &Port) -> Vec<String> {
        let listed = &port.listed;
        let around = &listed.surroundings;
        let shares = [
            ("card", self.on_the_same_card(listed)),
            ("NUMA node", self.on_the_same_node(listed)),
        ];
        let shares = shares.into_iter().filter(|(_, with)| !with.is_empty());
        let shares: Vec<String> = shares
            .map(|(what, with)| format!("{what} with {}", with.join(" ")))
            .collect();
        vec![
            listed.words(),
            if port.used.is_ok() { "yes" } else { "no" }.into(),
            listed.state.into(),
            listed.link_layer.into(),
            listed.rate.to_string(),
            or_dash(around.interface.clone()),
            or_dash(around.pci.clone()),
            or_dash(Some(shares.join(", ")).filter(|words| !words.is_empty())),
            or_dash(around.numa.map(|node| node.to_string())),
            listed.mtu.to_string(),
        ]
    }

    fn port_object(&self, port: &Port) -> Value {
        let listed = &port.listed;
        let around = &listed.surroundings;
        json!({
            "name": listed.words(),
            "device": listed.name,
            "port": listed.port,
            "used": port.used.is_ok(),
            "why_not": port.used.as_ref().err(),
            "state": listed.state,
            "link_layer": listed.link_layer,
            "rate": listed.rate.to_string(),
            "gbit_per_second": listed.rate.gbit(),
            "mtu_bytes": listed.mtu,
            "lid": listed.lid,
            "gid": listed.gid.as_ref().map(gid_object),
            "address": listed.address,
            "interface": around.interface,
            "pci": around.pci,
            "numa_node": around.numa,
            "driver": around.driver,
            "firmware": listed.firmware,
            "shares_card_with": self.on_the_same_card(listed),
            "shares_numa_node_with": self.on_the_same_node(listed),
            "placement": placement(listed),
            "why_placement": listed.why_placement,
        })
    }

    fn used(&self) -> Vec<String> {
        let mut used: Vec<(usize, String)> = Vec::new();
        for port in &self.ports {
            used.extend(port.used.iter().map(|at| (*at, port.listed.words())));
        }
        used.sort();
        used.into_iter().map(|(_, name)| name).collect()
    }

    fn on_the_same_card(&self, one: &Listed) -> Vec<String> {
        self.others(one, |other| {
            one.card().is_some() && one.card() == other.card()
        })
    }

    fn on_the_same_node(&self, one: &Listed) -> Vec<String> {
        let node = one.surroundings.numa;
        self.others(one, |other| {
            node.is_some() && node == other.surroundings.numa
        })
    }

    fn others(&self, one: &Listed, is: impl Fn(&Listed) -> bool) -> Vec<String> {
        let others = self.ports.iter().map(|port| &port.listed);
        let others = others.filter(|other| !same(one, other) && is(other));
        others.map(Listed::words).collect()
    }
}

/// The facts of a port for the table of rails.
pub(crate) fn facts(listed: &Listed) -> RailFacts {
    let around = &listed.surroundings;
    RailFacts {
        port: listed.words(),
        network: Network {
            link_layer: match listed.link_layer {
                "InfiniBand" => LinkLayer::InfiniBand,
                _ => LinkLayer::Ethernet,
            },
            subnet: listed.subnet(),
        },
        bandwidth: listed.bandwidth(),
        card: listed.card().map(String::from),
        slot: around.numa.map(|node| format!("NUMA node {node}")),
        slot_bandwidth: around.slot_bytes_per_s,
    }
}

/// Facts below the table: the address of the port, the placement of its writes with the reason, and
/// the reason why it is not used.
fn reasons(port: &Port) -> Vec<(&'static str, String)> {
    let listed = &port.listed;
    let mut reasons = vec![
        ("address", listed.address.clone()),
        (
            "placement",
            format!("{}: {}", placement(listed), listed.why_placement),
        ),
    ];
    reasons.extend(
        port.used
            .as_ref()
            .err()
            .map(|why| ("not used", why.clone())),
    );
    reasons
}

fn placement(listed: &Listed) -> &'static str {
    match listed.placement {
        Placement::Ordered => "ordered",
        Placement::Completion => "completion",
    }
}

fn gid_object(gid: &Gid) -> Value {
    let kind = match gid.kind {
        GidKind::InfiniBand => "InfiniBand",
        GidKind::RoceV1 => "RoCE v1",
        GidKind::RoceV2 => "RoCE v2",
        GidKind::Iwarp => "iWARP",
    };
    json!({ "index": gid.index, "value": gid.words(), "kind": kind })
}

fn same(one: &Listed, other: &Listed) -> bool {
    (&one.name, one.port) == (&other.name, other.port)
}

fn or_dash(words: Option<String>) -> String {
    words.unwrap_or("–".into())
}

#[cfg(test)]
pub(crate) mod tests {
    use rail_choice::{Port as Rail, Wishes};
    use verbs::{Rate, Surroundings};

    use super::*;

    fn port(number: u8, pci: &str, numa: Option<u32>, unusable: Option<&str>) -> Listed {
        Listed {
            name: format!("mlx5_{number}"),
            port: 1,
            only_port: true,
            state: "active",
            link_layer: "InfiniBand",
            rate: Rate::of(2, 32),
            mtu: 4096,
            lid: 7,
            gid: None,
            address: "LID 7".into(),
            surroundings: Surroundings {
                numa,
                pci: Some(pci.into()),
                ..Surroundings::default()
            },
            firmware: "1.2".into(),
            placement: Placement::Ordered,
            why_placement: "its maker says so",
            unusable: unusable.map(String::from),
        }
    }

    /// A RoCE port with this IPv4 address.
    pub(crate) fn roce(number: u8, address: &str) -> Listed {
        let address: std::net::Ipv4Addr = address.parse().unwrap();
        Listed {
            link_layer: "Ethernet",
            gid: Some(Gid {
                index: 1,
                value: address.to_ipv6_mapped().into(),
                kind: GidKind::RoceV2,
            }),
            ..port(number, "0000:3b:00.0", None, None)
        }
    }

    fn found(wanted: &str, most: usize) -> PortChoice {
        let ports = vec![
            port(0, "0000:3b:00.0", Some(0), None),
            port(1, "0000:3b:00.1", Some(0), Some("its link is down")),
            port(2, "0000:5e:00.0", Some(0), None),
            port(3, "0000:af:00.0", Some(1), None),
        ];
        let wishes = Wishes {
            devices: wanted,
            connections: 1,
            most,
        };
        let choice = choose(ports.clone(), wanted);
        let used = choice.iter().flat_map(|choice| &choice.used).take(most);
        let used = used.map(|one| Rail::Verbs(Box::new(one.clone())));
        let rails = JobRails::of(&wishes, used.collect(), None);
        PortChoice::new(ports, choice, &rails, None)
    }

    #[test]
    fn what_ports_share_is_seen() {
        let found = found("", 8);
        let shares: Vec<String> = found
            .ports
            .iter()
            .map(|port| found.row(port)[7].clone())
            .collect();
        assert_eq!(
            shares,
            [
                "card with mlx5_1, NUMA node with mlx5_1 mlx5_2",
                "card with mlx5_0, NUMA node with mlx5_0 mlx5_2",
                "NUMA node with mlx5_0 mlx5_1",
                "–"
            ]
        );
    }

    #[test]
    fn all_that_are_up_are_used_and_the_rest_has_reasons() {
        let uses = |found: &PortChoice| -> Vec<String> {
            let ports = found.ports.iter();
            ports.map(|port| found.row(port)[1].clone()).collect()
        };
        let all = found("", 8);
        assert_eq!(uses(&all), ["yes", "no", "yes", "yes"]);
        assert_eq!(all.object()["devices"][1]["why_not"], "its link is down");
        assert!(
            all.line()
                .starts_with("mlx5_0, mlx5_2, mlx5_3 would be used")
        );
        let two = found("", 2);
        assert_eq!(uses(&two), ["yes", "no", "yes", "no"]);
        let why = two.object()["devices"][3]["why_not"].to_string();
        for part in [
            "FISHPLATE_RAILS is 2",
            "mlx5_0, mlx5_2",
            "FISHPLATE_DEVICE=mlx5_3",
        ] {
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn names_are_used_in_the_order_in_which_they_are_given() {
        let found = found("mlx5_3,mlx5_0", 8);
        assert_eq!(found.object()["used"], json!(["mlx5_3", "mlx5_0"]));
        assert!(found.line().contains("FISHPLATE_DEVICE"));
    }

    #[test]
    fn a_name_that_cannot_be_used_still_shows_what_there_is() {
        let found = found("mlx5_1", 8);
        assert!(
            found.line().contains("its link is down"),
            "{}",
            found.line()
        );
        assert_eq!(found.ports.len(), 4);
        assert_eq!(found.object()["used"], json!([]));
    }
}
