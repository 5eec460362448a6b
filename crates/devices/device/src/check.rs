//! Argument checks that are the same for every device: calls with invalid arguments are refused
//! before anything is done.

use crate::{Access, Address, Operation, State, Transport, Work};

/// The reason why a call of a device is refused.
pub type Wrong = String;

/// The limits that a work request must keep, with the state of its queue pair.
pub struct Limits {
    /// The service type of the queue pair.
    pub transport: Transport,
    /// The state of the queue pair.
    pub state: State,
    /// The longest inline payload, in bytes.
    pub inline: u64,
    /// The largest datagram, in bytes.
    pub mtu: u64,
    /// The longest message, in bytes.
    pub longest: u64,
    /// True if the device has immediates.
    pub immediates: bool,
}

/// Checks a work request against the limits, and returns its length in bytes.
#[inline]
pub fn work(work: &Work, limits: &Limits) -> Result<u32, Wrong> {
    let len: u64 = work.local.iter().map(|slice| u64::from(slice.len)).sum();
    let sends = matches!(work.operation, Operation::Send { .. });
    let answered = !sends && !matches!(work.operation, Operation::Write { .. });
    if limits.state == State::Reset {
        return Err("it is in the state RESET; connect it first".into());
    }
    if limits.state == State::Connecting {
        return Err("it is not connected yet".into());
    }
    if !limits.immediates && work.operation.has_immediate() {
        return Err("it has no immediates".into());
    }
    match limits.transport {
        Transport::Ud if !sends => return Err("datagrams can only be sent".into()),
        Transport::Ud if work.to.is_none() => return Err("a datagram needs an address".into()),
        Transport::Ud if len > limits.mtu => {
            let mtu = limits.mtu;
            return Err(format!("{len} bytes do not fit into one packet of {mtu}"));
        }
        Transport::Uc if answered => {
            return Err("reads and atomics need a reliable connection".into());
        }
        _ => {}
    }
    if work.inline && (answered || len > limits.inline) {
        let inline = limits.inline;
        return Err(format!(
            "{len} bytes inline; it takes writes and sends of up to {inline}"
        ));
    }
    let atomic = answered && !matches!(work.operation, Operation::Read { .. });
    if len > limits.longest || atomic && len != 8 {
        let longest = limits.longest;
        return Err(format!(
            "{len} bytes; valid are up to {longest}, 8 for atomics"
        ));
    }
    Ok(len as u32)
}

/// Checks the arguments of [`Device::connect`](crate::Device::connect).
pub fn connect(transport: Transport, state: State, peer: Option<Address>) -> Result<(), Wrong> {
    match (transport, peer) {
        _ if state != State::Reset => Err(format!(
            "it is in the state {state:?}; only one in RESET can be connected"
        )),
        (Transport::Ud, Some(_)) => Err("a datagram queue pair is tied to no peer".into()),
        (Transport::Rc | Transport::Uc, None) => Err("a connection needs a peer".into()),
        _ => Ok(()),
    }
}

/// Checks the arguments of [`Device::register`](crate::Device::register).
pub fn register(address: u64, len: usize, access: Access) -> Result<(), Wrong> {
    if (access.remote_write || access.remote_atomic) && !access.local_write {
        // IBA 10.6.3.
        return Err("remote write or remote atomic access without local write access".into());
    }
    if len == 0 || address.checked_add(len as u64).is_none() {
        return Err(format!(
            "{len} bytes at {address:#x} are no memory to register"
        ));
    }
    Ok(())
}

/// Checks whether a queue pair may use a shared receive queue. A datagram queue pair may not: a
/// device writes a header in front of each datagram, and a shared queue has no memory for it.
pub fn shares(transport: Transport, shared: bool) -> Result<(), Wrong> {
    match transport == Transport::Ud && shared {
        true => Err("a datagram queue pair has receives of its own".into()),
        false => Ok(()),
    }
}
