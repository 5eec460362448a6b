//! The choice of the IP interfaces of this host that a job uses, and the port (a rail's interface
//! and address) of each.

use device::{Error, InterfaceAddress, Result};

use super::interfaces::{self, Interface, Verdict};
use super::port::Port;
use super::wire::words;

impl Port {
    /// The port of an interface, with the address that a job uses.
    pub fn of(interface: &Interface) -> Port {
        Port {
            name: format!("tcp:{}", interface.name),
            address: InterfaceAddress {
                ip: interface.address,
                scope: interface.scope,
            },
            prefix: interface.prefix,
            speed_mbps: interface.speed_mbps,
            mtu: interface.mtu,
        }
    }
}

/// The port of the interface with the name or address `wanted`. `None`: the ports of all interfaces
/// that a job uses by default, except the interfaces `taken`.
pub fn ports(wanted: Option<&str>, taken: &[String]) -> Result<Vec<Port>> {
    let all = interfaces::list().map_err(|why| {
        let why = words(&why);
        Error::System(format!(
            "the IP interfaces of this host cannot be listed: {why}"
        ))
    })?;
    choose(&all, wanted, taken)
}

/// Chooses the ports of a job, as [`ports`] does, among the interfaces `all`.
pub fn choose(all: &[Interface], wanted: Option<&str>, taken: &[String]) -> Result<Vec<Port>> {
    if let Some(name) = wanted {
        let found = interfaces::named(all, name).ok_or_else(|| {
            let there: Vec<String> = all
                .iter()
                .map(|one| format!("{} ({})", one.name, one.address))
                .collect();
            let there = there.join(", ");
            Error::Invalid(format!(
                "there is no IP interface {name} on this host; there are: {there}"
            ))
        })?;
        return Ok(vec![Port::of(&found)]);
    }
    let chosen = interfaces::choose(all).into_iter().map(|at| &all[at]);
    let used = chosen.filter(|one| !taken.contains(&one.name));
    let used: Vec<Port> = used.map(Port::of).collect();
    if used.is_empty() {
        let why = all.iter().map(|one| match one.verdict {
            Verdict::LeftOut(why) => format!("{}: {why}", one.name),
            Verdict::Used => format!("{}: {TAKEN}", one.name),
        });
        let why = match all.is_empty() {
            true => "none has an address".to_string(),
            false => why.collect::<Vec<_>>().join("; "),
        };
        return Err(Error::System(format!(
            "no IP interface of this host can be used: {why}"
        )));
    }
    Ok(used)
}

/// The reason for omitting an interface that a job would use otherwise.
pub const TAKEN: &str = "an RDMA device of the job lies on it";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_there_is_an_error_that_helps() {
        let all = interfaces::list().unwrap();
        let text = choose(&all, Some("eth99"), &[]).unwrap_err().to_string();
        let there = format!("{} (", all[0].name);
        assert!(text.contains("eth99") && text.contains(&there), "{text}");
        assert!(choose(&[], None, &[]).is_err());
    }

    #[test]
    fn an_interface_that_is_taken_is_used_only_by_its_name() {
        let all = interfaces::list().unwrap();
        let used = choose(&all, None, &[]).unwrap();
        let bare = |port: &Port| port.name["tcp:".len()..].to_string();
        let taken: Vec<String> = used.iter().map(bare).collect();
        let text = choose(&all, None, &taken).unwrap_err().to_string();
        assert!(text.contains(TAKEN), "{text}");
        assert_eq!(choose(&all, Some(&taken[0]), &taken).unwrap(), used[..1]);
        assert_eq!(choose(&all, None, &taken[1..]).unwrap(), used[..1]);
    }
}
