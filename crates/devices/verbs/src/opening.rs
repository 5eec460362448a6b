//! Opening a port: its attributes, its address, and later changes of that address.

use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::Arc;

use super::connection::PortPath;
use super::device::VerbsDevice;
use super::gid::Gid;
use super::keys::Keys;
use super::list::{self, Listed};
use super::open_device::OpenDevice;
use super::port;
use super::rdmacm::Exchange;
use super::sys::*;
use device::{Attributes, Error, LinkLayer, RequestCosts, Result, Transport};
use secret::Secret;

/// The inline sizes with which a new device is probed, since no verb reports its limit, in bytes.
const INLINE: [u32; 6] = [512, 256, 128, 64, 32, 0];
/// The greatest number of reads and atomics of one queue pair in flight.
const READS: c_int = 16;

impl VerbsDevice {
    /// Opens a port that [`list`](super::list()) has reported, for the job with this secret.
    pub fn open(listed: &Listed, secret: &Secret) -> Result<VerbsDevice> {
        VerbsDevice::on(OpenDevice::open(&listed.name)?, listed, secret)
    }

    /// Opens ports that [`list`](super::list()) has reported, for the job with this secret. Ports
    /// of one device share a protection domain: a region that is registered with one port is
    /// registered with all of them.
    pub fn open_all(listed: &[Listed], secret: &Secret) -> Result<Vec<VerbsDevice>> {
        let mut open: HashMap<&str, Arc<OpenDevice>> = HashMap::new();
        let mut devices = Vec::new();
        for one in listed {
            let device = match open.get(&*one.name) {
                Some(device) => device.clone(),
                None => OpenDevice::open(&one.name)?,
            };
            open.insert(&one.name, device.clone());
            devices.push(VerbsDevice::on(device, one, secret)?);
        }
        Ok(devices)
    }

    /// Opens a port of an open device.
    fn on(context: Arc<OpenDevice>, listed: &Listed, secret: &Secret) -> Result<VerbsDevice> {
        if let Some(why) = &listed.unusable {
            let name = listed.words();
            return Err(Error::System(format!("{name} cannot be used: {why}")));
        }
        let limits = context.attributes()?;
        let port = context.port(listed.port)?;
        let path = PortPath {
            port: listed.port,
            ethernet: u32::from(port.link_layer) == IBV_LINK_LAYER_ETHERNET,
            gid_index: 0,
            address: 0,
            mtu: port.active_mtu,
            asked: limits.max_qp_init_rd_atom.clamp(1, READS) as u8,
            answered: limits.max_qp_rd_atom.clamp(1, READS) as u8,
        };
        context.add_port(listed.port)?;
        // SAFETY: an open device.
        let channel = unsafe { (context.library.create_comp_channel)(context.raw) };
        // From here on, dropping `device` releases everything.
        let mut device = VerbsDevice {
            attributes: attributes(&context, listed, &port),
            path,
            keys: Keys::new(secret),
            limits,
            card: listed.card().map(String::from),
            interface: listed.surroundings.interface.clone(),
            channel,
            cqs: Vec::new(),
            srqs: Vec::new(),
            qps: Vec::new(),
            numbers: HashMap::new(),
            heard: Vec::new(),
            changes: Vec::new(),
            handles: HashMap::new(),
            exchange: None,
            headers: None,
            context,
        };
        device.set_address(port.lid, listed.gid.as_ref());
        device
            .context
            .made(channel, "creating a completion channel")?;
        device.make_events_nonblocking()?;
        if device.context.is_iwarp() {
            device.exchange = Some(Exchange::open(&device.attributes.name, &device.keys)?);
        }
        device.attributes.inline = device.try_inline()?;
        Ok(device)
    }

    /// Sets the port's address that peers use.
    fn set_address(&mut self, lid: u16, gid: Option<&Gid>) {
        self.path.gid_index = gid.map_or(0, |gid| gid.index as u8);
        self.path.address = match (self.path.ethernet, gid) {
            (true, Some(gid)) => gid.value,
            _ => u128::from(lid),
        };
    }

    /// Updates the port's addresses after a change: queue pairs that are connected from now on use
    /// the new ones.
    pub(super) fn follow_addresses(&mut self) {
        let Ok(now) = list::port_of(&self.context, self.path.port) else {
            return;
        };
        let before = (self.path.gid_index, self.path.address);
        if now.gid.is_some() || !self.path.ethernet {
            self.set_address(now.lid, now.gid.as_ref());
            self.attributes.subnet = now.subnet();
        }
        if before != (self.path.gid_index, self.path.address) {
            for (_, handle) in self.handles.drain() {
                // SAFETY: created by this device; the kernel keeps it for requests in flight.
                unsafe { (self.context.library.destroy_ah)(handle) };
            }
        }
    }

    /// True if the port does not work at present.
    #[cold]
    pub(super) fn is_down(&self) -> bool {
        let port = self.context.port(self.path.port);
        let inactive = port.is_ok_and(|port| port.state != IBV_PORT_ACTIVE);
        inactive || self.interface.as_deref().is_some_and(port::is_taken_down)
    }

    /// The largest size in `INLINE` with which a queue pair can be created, in bytes.
    fn try_inline(&self) -> Result<usize> {
        let library = self.context.library;
        // SAFETY: an open device, and no channel.
        let cq = unsafe {
            (library.create_cq)(self.context.raw, 1, ptr::null_mut(), ptr::null_mut(), 0)
        };
        let cq = self.context.made(cq, "creating a completion queue")?;
        let mut found = None;
        for inline in INLINE {
            let mut wanted = self.qp_attributes(Transport::Rc, (1, 1), inline);
            (wanted.send_cq, wanted.recv_cq) = (cq, cq);
            // SAFETY: the attributes name a queue of this device.
            let qp = unsafe { (library.create_qp)(self.context.pd(), &mut wanted) };
            if !qp.is_null() {
                // SAFETY: the queue pair was just created.
                unsafe { (library.destroy_qp)(qp) };
                found = Some(inline as usize);
                break;
            }
        }
        let refused = io::Error::last_os_error();
        // SAFETY: no queue pair uses the queue any more.
        unsafe { (library.destroy_cq)(cq) };
        found.ok_or_else(|| {
            let name = &self.attributes.name;
            Error::System(format!("{name}: creating a queue pair: {refused}"))
        })
    }
}

/// The attributes of a port, except its inline limit.
fn attributes(context: &OpenDevice, listed: &Listed, port: &ibv_port_attr) -> Attributes {
    let iwarp = context.is_iwarp();
    Attributes {
        name: listed.words(),
        mtu: listed.mtu,
        inline: 0,
        longest: u64::from(port.max_msg_sz),
        placement: listed.placement,
        immediates: !iwarp,
        datagrams: !iwarp,
        answered: !iwarp,
        by_processor: listed.surroundings.driver.is_none(),
        polled: false,
        resets: !iwarp,
        link_layer: match u32::from(port.link_layer) == IBV_LINK_LAYER_ETHERNET {
            true => LinkLayer::Ethernet,
            false => LinkLayer::InfiniBand,
        },
        subnet: listed.subnet(),
        bandwidth: listed.bandwidth(),
        latency_ns: listed.latency_ns(),
        request: RequestCosts::usual(listed.latency_ns(), listed.bandwidth()),
        // The node assigns these numbers.
        card: 0,
        domain: 0,
    }
}
