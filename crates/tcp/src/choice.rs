//! The ports that a job uses.

use device::{Error, InterfaceAddress, Result};
use secret::Secret;

use super::device::{TcpDevice, words};
use super::interfaces::{self, Interface, Verdict};
use super::port::Port;

impl Port {
    /// An interface with its address.
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

/// The ports of the interface with this name or address; without one, of all interfaces that a job
/// uses by itself.
pub fn ports(wanted: Option<&str>) -> Result<Vec<Port>> {
    let all = interfaces::list().map_err(|why| {
        let why = words(&why);
        Error::System(format!(
            "the IP interfaces of this host cannot be listed: {why}"
        ))
    })?;
    choose(&all, wanted)
}

fn choose(all: &[Interface], wanted: Option<&str>) -> Result<Vec<Port>> {
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
    let used = interfaces::choose(all);
    if used.is_empty() {
        let why: Vec<String> = all
            .iter()
            .filter_map(|one| match one.verdict {
                Verdict::LeftOut(why) => Some(format!("{}: {why}", one.name)),
                Verdict::Used => None,
            })
            .collect();
        let why = match why.is_empty() {
            true => "none has an address".to_string(),
            false => why.join("; "),
        };
        return Err(Error::System(format!(
            "no IP interface of this host can be used: {why}"
        )));
    }
    Ok(used.into_iter().map(|at| Port::of(&all[at])).collect())
}

/// Opens the ports that [`ports`] finds.
pub fn open(wanted: Option<&str>, secret: &Secret) -> Result<Vec<TcpDevice>> {
    let ports = ports(wanted)?;
    ports
        .iter()
        .map(|port| TcpDevice::open(port, secret))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_there_is_an_error_that_helps() {
        let all = interfaces::list().unwrap();
        let text = choose(&all, Some("eth99")).unwrap_err().to_string();
        let there = format!("{} (", all[0].name);
        assert!(text.contains("eth99") && text.contains(&there), "{text}");
        assert!(choose(&[], None).is_err());
    }
}
