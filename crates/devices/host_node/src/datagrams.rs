//! Datagrams over a datagram queue pair (UD) of the device.

use std::net::IpAddr;
use std::os::fd::RawFd;
use std::ptr;

use super::datagram::DATAGRAM;
use super::oob::{Carrier, MOST_TAKEN, Take};
use super::probes::Kernel;
use super::whereabouts::ip_of;
use device::{
    Access, Address, Completed, Completion, Cq, Device, Ending, Error, LinkLayer, Operation, Qp,
    QpWanted, ReceiveQueue, Region, Result, Slice, Status, Transport, Work,
};

/// Number of posted receives: the greatest number of datagrams that may arrive between two polls.
const RECEIVES: usize = 128;
/// The greatest number of datagrams that are being sent.
const SENDS: usize = 32;

/// The UDP port of RDMA over Ethernet (RoCE v2). No process listens at the TCP port of this number,
/// so a kernel refuses connections to it.
const ROCE: u16 = 4791;

pub(crate) struct Datagrams {
    cq: Cq,
    qp: Qp,
    address: Address,
    is_ethernet: bool,
    memory: Box<[u8]>,
    region: Region,
    /// Indices of the buffers in `memory` that no send uses.
    free: Vec<usize>,
}

impl Datagrams {
    pub(crate) fn open(device: &mut dyn Device) -> Result<Datagrams> {
        let (name, mtu) = (&device.attributes().name, device.attributes().mtu);
        if mtu < DATAGRAM {
            return Err(Error::System(format!(
                "{name}: packets carry {mtu} bytes; at least {DATAGRAM} are needed (is the MTU of its network \
                 interface below 1500?)"
            )));
        }
        let cq = device.create_cq(RECEIVES + SENDS)?;
        let qp = device.create_qp(&QpWanted {
            transport: Transport::Ud,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            sends: SENDS,
            receives: RECEIVES,
            inline: 0,
        })?;
        let mut memory = vec![0; (RECEIVES + SENDS) * DATAGRAM].into_boxed_slice();
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        // SAFETY: the memory stays until `close`, and is read only after a completion has ended the
        // device's use of it.
        let region = unsafe { device.register(memory.as_mut_ptr(), memory.len(), access)? };
        let mut datagrams = Datagrams {
            cq,
            qp,
            address: device.address(qp)?,
            is_ethernet: device.attributes().link_layer == LinkLayer::Ethernet,
            memory,
            region,
            free: Vec::new(),
        };
        datagrams.revive(device)?;
        Ok(datagrams)
    }

    fn read(&self, place: usize, len: usize) -> Vec<u8> {
        let mut datagram = vec![0; len.min(DATAGRAM)];
        // SAFETY: within the memory; a completion has ended the device's use of this buffer.
        unsafe {
            let from = self.memory.as_ptr().add(place * DATAGRAM);
            ptr::copy_nonoverlapping(from, datagram.as_mut_ptr(), datagram.len());
        }
        datagram
    }

    fn slice(&self, place: usize, len: usize) -> Slice {
        Slice {
            address: self.region.address + (place * DATAGRAM) as u64,
            len: len as u32,
            lkey: self.region.lkey,
        }
    }

    fn post_receive(&mut self, device: &mut dyn Device, place: usize) -> Result<()> {
        let into = [self.slice(place, DATAGRAM)];
        // SAFETY: this object's memory, unused until the completion.
        unsafe { device.post_receive(ReceiveQueue::Own(self.qp), place as u64, &into) }
    }
}

impl Carrier for Datagrams {
    fn address(&self) -> Address {
        self.address
    }

    fn collect(&mut self, device: &mut dyn Device, take: &mut Take) -> Result<bool> {
        let none = Completion {
            id: 0,
            qp: self.qp,
            status: Status::Success,
            of: Completed::Send,
            bytes: 0,
            immediate: None,
        };
        let mut some = [none; 16];
        for _ in 0..MOST_TAKEN / some.len() {
            let count = device.poll(self.cq, &mut some)?;
            for one in &some[..count] {
                let place = one.id as usize;
                match one.status {
                    Status::Success if place >= RECEIVES => self.free.push(place),
                    Status::Success => {
                        take(&self.read(place, one.bytes as usize), None);
                        self.post_receive(device, place)?;
                    }
                    // The port cannot send now, perhaps because its link is down. Lost datagrams,
                    // including this one, are retransmitted.
                    Status::LocalQpOperation | Status::Flushed => {
                        return self.revive(device).map(|()| false);
                    }
                    status => {
                        return Err(Error::System(format!(
                            "{}: the queue pair by which ranks find each other has failed: {}",
                            device.attributes().name,
                            status.words()
                        )));
                    }
                }
            }
            if count < some.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    fn send(&mut self, device: &mut dyn Device, to: Address, datagram: &[u8]) -> Result<()> {
        let Some(place) = self.free.pop() else {
            return Ok(());
        };
        let start = place * DATAGRAM;
        self.memory[start..start + datagram.len()].copy_from_slice(datagram);
        let local = [self.slice(place, datagram.len())];
        let work = Work {
            id: place as u64,
            operation: Operation::Send { immediate: None },
            local: &local,
            inline: false,
            signaled: true,
            to: Some(to),
        };
        // SAFETY: this object's memory, unused until the completion.
        unsafe { device.post(self.qp, &work) }
    }

    /// The socket address of a port for probes by the kernel: on Ethernet, that of its network
    /// interface.
    fn kernel(&self, to: Address) -> Option<Kernel> {
        let ip = ip_of(to.port);
        let is_known = match ip {
            IpAddr::V4(_) => true,
            // A link-local address has no meaning without the index of an interface.
            IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        };
        (self.is_ethernet && is_known).then(|| Kernel {
            from: None,
            to: (ip, ROCE).into(),
            is_host: true,
            is_socket: false,
        })
    }

    fn revive(&mut self, device: &mut dyn Device) -> Result<()> {
        device.modify(self.qp, Ending::Reset)?;
        device.connect(self.qp, None)?;
        self.free = (RECEIVES..RECEIVES + SENDS).collect();
        (0..RECEIVES).try_for_each(|place| self.post_receive(device, place))
    }

    fn is_settled(&self) -> bool {
        self.free.len() == SENDS
    }

    fn fd(&self) -> Option<RawFd> {
        None
    }

    fn close(&mut self, device: &mut dyn Device) {
        // Errors no longer matter here.
        let _ = device.destroy_qp(self.qp);
        let _ = device.deregister(self.region);
    }
}
