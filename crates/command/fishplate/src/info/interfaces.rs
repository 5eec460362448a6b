//! The IP interfaces of this host: those that a job would use, and the reasons why it would not use
//! the others.

use results::terminal::{beside, width};
use serde_json::{Value, json};
use tcp::interfaces::{Interface, Verdict, list};

use super::job_rails::JobRails;

/// The width of the text of reasons, in columns.
const WIDTH: usize = 100;

/// The interfaces of this host, or the reason why they cannot be listed.
pub(crate) struct InterfaceChoice(Result<Vec<Listed>, String>);

struct Listed {
    /// The interface, with the address that a job uses.
    interface: Interface,
    /// The reason why a job uses this address of the interface.
    why: &'static str,
    /// The reason why a job would not use the interface. `None` if it would.
    against: Option<String>,
}

/// Lists the IP interfaces, with the reason for each that is not used.
pub(crate) fn find(rails: &JobRails) -> InterfaceChoice {
    let all = list().map_err(|why| format!("they cannot be listed: {why}"));
    let listed = |one: Interface| listed(one, rails);
    InterfaceChoice(all.map(|all| all.into_iter().map(listed).collect()))
}

fn listed(interface: Interface, rails: &JobRails) -> Listed {
    let name = format!("tcp:{}", interface.name);
    let ports = rails.ports().iter();
    let rail = ports
        .filter_map(|port| port.as_tcp())
        .find(|port| port.name == name);
    if let Some(rail) = rail {
        // FISHPLATE_DEVICE may name another address than the first.
        let address = rail.address.ip.to_string();
        let named = tcp::interfaces::named(std::slice::from_ref(&interface), &address);
        return match named.filter(|named| named.address != interface.address) {
            Some(named) => Listed {
                interface: named,
                why: "FISHPLATE_DEVICE names it",
                against: None,
            },
            None => Listed::new(interface, None),
        };
    }
    let mut rdma = rails.ports().iter().filter_map(|port| port.as_verbs());
    let own = Some(&interface.name);
    let lies = rdma.find(|port| port.surroundings.interface.as_ref() == own);
    let against = match (interface.verdict, lies) {
        (Verdict::LeftOut(why), _) => why.to_string(),
        (_, Some(port)) => format!(
            "the RDMA device {} of the job lies on it; FISHPLATE_DEVICE={name} takes it",
            port.words()
        ),
        _ if rails.wanted().is_empty() && rails.has_rdma() => {
            "the job uses RDMA devices; FISHPLATE_DEVICE=rdma,tcp takes both".to_string()
        }
        _ => {
            let too_many = rails.too_many(&name);
            too_many.unwrap_or("others were asked for".into())
        }
    };
    Listed::new(interface, Some(against))
}

impl Listed {
    fn new(interface: Interface, against: Option<String>) -> Listed {
        Listed {
            why: interface.why_this_address(),
            interface,
            against,
        }
    }
}

impl InterfaceChoice {
    fn all(&self) -> &[Listed] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The list of interfaces as a JSON object.
    pub(crate) fn object(&self) -> Value {
        let interfaces = self.all().iter().map(object);
        json!({
            "interfaces": interfaces.collect::<Vec<_>>(),
            "problem": self.0.as_ref().err(),
        })
    }

    /// A line with the interfaces that a job would use.
    pub(crate) fn line(&self) -> String {
        let used = self.all().iter();
        let used = used.filter(|one| one.against.is_none());
        let used: Vec<String> = used
            .map(|one| format!("{} ({})", one.interface.name, one.interface.address))
            .collect();
        match &self.0 {
            Err(problem) => problem.clone(),
            Ok(_) if used.is_empty() => "none would be used".into(),
            Ok(_) => used.join(", "),
        }
    }

    /// Prints a table of the interfaces, and the reasons below it.
    pub(crate) fn print(&self) {
        if self.all().is_empty() {
            return;
        }
        let header = ["interface", "use", "address", "Mbit/s", "MTU"];
        let rows = self.all().iter().map(row).collect();
        let left = header.len() - 2;
        let header = header.map(String::from).to_vec();
        say!("\n{}", results::table::lines(header, rows, left).trim_end());
        say!("");
        for one in self.all() {
            let width = width().map_or(WIDTH, |width| width.min(WIDTH));
            let label = format!("{:10} ", one.interface.name);
            say!("{}", beside(&label, 22, &reason(one), Some(width)));
        }
    }
}

fn row(one: &Listed) -> Vec<String> {
    let interface = &one.interface;
    let or_dash = |number: Option<u32>| number.map_or("–".into(), |number| number.to_string());
    vec![
        interface.name.clone(),
        if one.against.is_none() { "yes" } else { "no" }.into(),
        format!("{}/{}", interface.address, interface.prefix),
        or_dash(interface.speed_mbps),
        or_dash(Some(interface.mtu).filter(|&bytes| bytes > 0)),
    ]
}

/// The reason why an interface is not used, or why its address is.
fn reason(one: &Listed) -> String {
    match &one.against {
        None => format!("{}: {}", one.interface.address, one.why),
        Some(reason) => format!("not used: {reason}"),
    }
}

fn object(one: &Listed) -> Value {
    let Listed {
        interface,
        why,
        against,
    } = one;
    let others = interface.others.iter();
    let others = others.map(|other| other.address.to_string());
    json!({
        "name": interface.name,
        "used": against.is_none(),
        "why_not": against,
        "address": interface.address.to_string(),
        "why_address": why,
        "prefix": interface.prefix,
        "other_addresses": others.collect::<Vec<_>>(),
        "mbit_per_second": interface.speed_mbps,
        "mtu_bytes": interface.mtu,
    })
}
