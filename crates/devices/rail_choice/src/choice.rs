//! The choice of a job's rails among the ports of a host.

use device::{Error, Result};
use verbs::Listed;

use super::{Port, Wanted, wanted};

/// The settings that determine the choice.
#[derive(Clone, Copy, Debug)]
pub struct Wishes<'a> {
    /// The list of devices, in the form that [`wanted`] reads. Empty: RDMA devices if one can be
    /// used, otherwise IP interfaces.
    pub devices: &'a str,
    /// The number of rails over each IP interface.
    pub connections: usize,
    /// The greatest number of rails.
    pub most: usize,
}

/// The ports that a job uses on this host, in the order of its rails. A port that is named twice
/// counts once. Additional rails of IP interfaces follow the first rails of all ports.
pub fn choose(wishes: &Wishes) -> Result<Vec<Port>> {
    // libibverbs is opened only if the list may name RDMA devices.
    let is_rdma = |one: &Wanted| matches!(one, Wanted::Verbs(_));
    let listed = match wanted(wishes.devices).iter().any(is_rdma) {
        true => verbs::list(),
        false => Ok(Vec::new()),
    };
    arrange(wishes, listed, tcp::ports)
}

/// The choice among the RDMA ports `listed` and the IP interfaces that `ip` finds: by a name, or
/// without one all except those in its second argument.
fn arrange(
    wishes: &Wishes,
    listed: Result<Vec<Listed>>,
    ip: impl Fn(Option<&str>, &[String]) -> Result<Vec<tcp::Port>>,
) -> Result<Vec<Port>> {
    let rdma = |names: &str| Ok(verbs::choose(listed.clone()?, names)?.used);
    let mut ports: Vec<Port> = match wishes.devices.is_empty() {
        true => match rdma("") {
            Ok(used) => used.into_iter().map(of_verbs).collect(),
            Err(rdma) => {
                let found = ip(None, &[]);
                let found = found.map_err(|why| Error::System(format!("{why}; {rdma}")))?;
                found.into_iter().map(Port::Tcp).collect()
            }
        },
        false => named(&wanted(wishes.devices), rdma, ip)?,
    };
    let interfaces: Vec<Port> = ports
        .iter()
        .filter(|port| port.as_tcp().is_some())
        .cloned()
        .collect();
    for _ in 1..wishes.connections {
        ports.extend(interfaces.iter().cloned());
    }
    ports.truncate(wishes.most);
    Ok(ports)
}

/// The ports that a list of devices in a setting names.
fn named(
    wanted: &[Wanted],
    rdma: impl Fn(&str) -> Result<Vec<Listed>>,
    ip: impl Fn(Option<&str>, &[String]) -> Result<Vec<tcp::Port>>,
) -> Result<Vec<Port>> {
    let used = wanted.iter().map(|one| match one {
        Wanted::Verbs(names) => rdma(names),
        Wanted::Tcp(_) => Ok(Vec::new()),
    });
    let used = used.collect::<Result<Vec<_>>>()?;
    let below = used.iter().flatten();
    let below = below.filter_map(|one| one.surroundings.interface.clone());
    let below: Vec<String> = below.collect();
    let mut ports: Vec<Port> = Vec::new();
    for (one, used) in wanted.iter().zip(used) {
        let found: Vec<Port> = match one {
            Wanted::Verbs(_) => used.into_iter().map(of_verbs).collect(),
            Wanted::Tcp(name) => {
                let found = ip(name.as_deref(), &below)?;
                found.into_iter().map(Port::Tcp).collect()
            }
        };
        for port in found {
            if !ports.iter().any(|known| is_same(known, &port)) {
                ports.push(port);
            }
        }
    }
    Ok(ports)
}

/// True if both are one port. An IP interface with several addresses is a port for each.
fn is_same(one: &Port, other: &Port) -> bool {
    one.name() == other.name() && one.as_tcp() == other.as_tcp()
}

fn of_verbs(listed: Listed) -> Port {
    Port::Verbs(Box::new(listed))
}

#[cfg(test)]
mod tests {
    use device::Placement;
    use tcp::interfaces::{Interface, Verdict};
    use verbs::{Rate, Surroundings};

    use super::*;

    fn rdma(name: &str, interface: &str) -> Listed {
        Listed {
            name: name.into(),
            port: 1,
            only_port: true,
            state: "active",
            link_layer: "Ethernet",
            rate: Rate::of(2, 32),
            mtu: 4096,
            lid: 0,
            gid: None,
            address: String::new(),
            surroundings: Surroundings {
                interface: Some(interface.into()),
                ..Surroundings::default()
            },
            firmware: String::new(),
            placement: Placement::Completion,
            why_placement: "it is software",
            unusable: None,
        }
    }

    fn interface(number: u8) -> Interface {
        Interface {
            name: format!("eth{number}"),
            address: [10, 0, number, 1].into(),
            scope: 0,
            prefix: 24,
            speed_mbps: None,
            mtu: 1500,
            index: number.into(),
            verdict: Verdict::Used,
            others: Vec::new(),
        }
    }

    /// The names of the rails of a host with eth0 to eth2, where the RDMA devices rxe0 and rxe1 use
    /// the first two.
    fn rails(devices: &str, connections: usize, most: usize) -> Vec<String> {
        let listed = vec![rdma("rxe0", "eth0"), rdma("rxe1", "eth1")];
        let wishes = Wishes {
            devices,
            connections,
            most,
        };
        let interfaces = [0, 1, 2].map(interface);
        let ip = |name: Option<&str>, taken: &[String]| tcp::choose(&interfaces, name, taken);
        let ports = arrange(&wishes, Ok(listed), ip).unwrap();
        ports.iter().map(Port::name).collect()
    }

    #[test]
    fn ports_of_both_kinds_are_rails_in_the_order_of_their_names() {
        assert_eq!(rails("", 1, 8), ["rxe0", "rxe1"]);
        assert_eq!(rails("rdma", 1, 8), ["rxe0", "rxe1"]);
        assert_eq!(rails("tcp:eth0,rxe1", 1, 8), ["tcp:eth0", "rxe1"]);
        assert_eq!(
            rails("rxe1,tcp:eth2,rdma", 1, 8),
            ["rxe1", "tcp:eth2", "rxe0"]
        );
        assert_eq!(rails("tcp:eth2,tcp:eth2", 1, 8), ["tcp:eth2"]);
        assert_eq!(rails("rdma,tcp", 1, 1), ["rxe0"]);
    }

    #[test]
    fn an_interface_below_an_rdma_port_is_a_rail_only_where_it_is_named() {
        assert_eq!(rails("rdma,tcp", 1, 8), ["rxe0", "rxe1", "tcp:eth2"]);
        assert_eq!(rails("tcp,rxe1", 1, 8), ["tcp:eth0", "tcp:eth2", "rxe1"]);
        assert_eq!(rails("rxe0,tcp:eth0", 1, 8), ["rxe0", "tcp:eth0"]);
    }

    #[test]
    fn interfaces_may_have_several_rails_each() {
        let twice = ["tcp:eth0", "tcp:eth2", "tcp:eth0", "tcp:eth2"];
        assert_eq!(rails("tcp:eth0,tcp:eth2", 2, 8), twice);
        assert_eq!(rails("tcp:eth0,tcp:eth2", 2, 3), twice[..3]);
        assert_eq!(rails("tcp:eth2,rxe0", 3, 8)[2..], ["tcp:eth2", "tcp:eth2"]);
    }

    #[test]
    fn without_an_rdma_port_the_interfaces_serve_and_otherwise_the_error_names_both_reasons() {
        let wishes = Wishes {
            devices: "",
            connections: 1,
            most: 8,
        };
        let ports = |interfaces: &[Interface]| {
            let ip = |name: Option<&str>, taken: &[String]| tcp::choose(interfaces, name, taken);
            arrange(&wishes, Ok(Vec::new()), ip)
        };
        assert_eq!(ports(&[interface(0)]).unwrap()[0].name(), "tcp:eth0");
        let text = ports(&[]).unwrap_err().to_string();
        assert!(
            text.contains("RDMA") && text.contains("IP interface"),
            "{text}"
        );
    }
}
