//! The ports of a host that a job uses as rails: RDMA ports, IP interfaces, or both.
//!
//! [`wanted`] parses the list of devices of a setting, [`choose`] finds the ports that it names,
//! and [`open`] opens them. The choice is a pure function of the setting and of the host's ports.
//!
//! The IP interface of an RDMA port in use is omitted unless it is named: the two would share one
//! cable.
//!
//! Never here: protocols.

mod choice;
mod wanted;

use std::net::IpAddr;

use device::{HostDevice, Result};
use secret::Secret;
use tcp::TcpDevice;
use verbs::{Listed, VerbsDevice};

pub use choice::{Wishes, choose};
pub use wanted::{Wanted, wanted};

/// A port of this host, as a rail of a job.
#[derive(Clone, Debug)]
pub enum Port {
    /// A port of an RDMA device.
    Verbs(Box<Listed>),
    /// An IP interface.
    Tcp(tcp::Port),
}

impl Port {
    /// The name of the port for users, such as `mlx5_0:1` or `tcp:eth0`.
    pub fn name(&self) -> String {
        match self {
            Port::Verbs(listed) => listed.words(),
            Port::Tcp(port) => port.name.clone(),
        }
    }

    /// True for the loopback interface, which leads to this host only.
    pub fn is_loopback(&self) -> bool {
        self.as_tcp()
            .is_some_and(|port| port.address.ip.is_loopback())
    }

    /// The RDMA port, if this is one.
    pub fn as_verbs(&self) -> Option<&Listed> {
        match self {
            Port::Verbs(listed) => Some(listed),
            Port::Tcp(_) => None,
        }
    }

    /// The IP interface, if this is one.
    pub fn as_tcp(&self) -> Option<&tcp::Port> {
        match self {
            Port::Verbs(_) => None,
            Port::Tcp(port) => Some(port),
        }
    }
}

/// The addresses of all IP interfaces of this host, whatever their state.
pub fn addresses() -> Vec<IpAddr> {
    let all = tcp::interfaces::list().unwrap_or_default();
    all.iter().map(|one| one.address).collect()
}

/// Opens the ports that [`choose`] has returned, in their order, for the job with this secret.
pub fn open(ports: &[Port], secret: &Secret) -> Result<Vec<Box<dyn HostDevice>>> {
    let rdma = ports.iter().filter_map(Port::as_verbs).cloned();
    // All of them in one call, because ports of one device share a protection domain.
    let mut rdma = VerbsDevice::open_all(&rdma.collect::<Vec<_>>(), secret)?.into_iter();
    let mut devices: Vec<Box<dyn HostDevice>> = Vec::new();
    for port in ports {
        match port {
            Port::Verbs(_) => devices.extend(rdma.next().map(boxed)),
            Port::Tcp(port) => devices.push(boxed(TcpDevice::open(port, secret)?)),
        }
    }
    Ok(devices)
}

fn boxed(device: impl HostDevice + 'static) -> Box<dyn HostDevice> {
    Box::new(device)
}
