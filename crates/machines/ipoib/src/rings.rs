//! The rings of the driver of IP over InfiniBand: packets that wait for the HCA to send them, and
//! receives posted for packets.

use device::{Address, Cq, Device, Error, Qp, QpWanted, ReceiveQueue, Result, Status, Transport};
use device::{Completed, Completion};

use crate::frame::Head;
use crate::memory::Buffers;

/// The greatest number of completions that a driver takes at once (`MAX_SEND_CQE` of IPoIB in
/// Linux).
const BATCH: usize = 16;
/// The greatest number of packets that one poll of the driver takes (the weight of NAPI in Linux).
const WEIGHT: usize = 64;

/// The ring of packets that wait for the HCA to send them.
pub(crate) struct SendRing {
    buffers: Buffers,
    qp: Qp,
    cq: Cq,
    /// The address of the other host's queue pair, in datagram mode.
    to: Option<Address>,
    depth: usize,
    posted: usize,
    done: usize,
}

impl SendRing {
    /// Makes a ring of `depth` frames of at most `len` bytes.
    pub(crate) fn new(
        device: &mut dyn Device,
        transport: Transport,
        depth: usize,
        len: usize,
    ) -> Result<SendRing> {
        let cq = device.create_cq(depth)?;
        let qp = device.create_qp(&QpWanted {
            transport,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            sends: depth,
            receives: 1,
            inline: 0,
        })?;
        Ok(SendRing {
            buffers: Buffers::new(device, depth, len)?,
            qp,
            cq,
            to: None,
            depth,
            posted: 0,
            done: 0,
        })
    }

    pub(crate) fn address(&self, device: &mut dyn Device) -> Result<Address> {
        device.address(self.qp)
    }

    /// Connects the ring with the queue pair of the other host's receives.
    pub(crate) fn connect(
        &mut self,
        device: &mut dyn Device,
        transport: Transport,
        peer: Address,
    ) -> Result<()> {
        if transport == Transport::Ud {
            self.to = Some(peer);
            return device.connect(self.qp, None);
        }
        device.connect(self.qp, Some(peer))
    }

    /// The number of packets for which the ring has room.
    pub(crate) fn room(&self) -> usize {
        self.depth - (self.posted - self.done)
    }

    /// Takes completed sends out of the ring, if at least a batch is posted; returns their number.
    pub(crate) fn reap(&mut self, device: &mut dyn Device) -> Result<usize> {
        if self.posted - self.done < BATCH {
            return Ok(0);
        }
        let mut completions = [blank(); BATCH];
        let count = device.poll(self.cq, &mut completions)?;
        self.done += count;
        completions[..count].iter().try_for_each(succeeded)?;
        Ok(count)
    }

    /// Posts a packet to the ring, which must have room.
    pub(crate) fn put(
        &mut self,
        device: &mut dyn Device,
        head: &Head,
        payload: &[u8],
    ) -> Result<()> {
        let buffer = self.posted % self.depth;
        let parts = [&head.encode()[..], payload];
        self.buffers.send(device, self.qp, self.to, buffer, parts)?;
        self.posted += 1;
        Ok(())
    }
}

/// The ring of receive buffers that wait for packets.
pub(crate) struct ReceiveRing {
    buffers: Buffers,
    qp: Qp,
    queue: ReceiveQueue,
    cq: Cq,
}

impl ReceiveRing {
    /// Makes a ring of `depth` receives for frames of at most `len` bytes, and posts them all.
    pub(crate) fn new(
        device: &mut dyn Device,
        transport: Transport,
        depth: usize,
        len: usize,
    ) -> Result<ReceiveRing> {
        let cq = device.create_cq(depth)?;
        let srq = match transport {
            Transport::Ud => None,
            _ => Some(device.create_srq(depth)?),
        };
        let qp = device.create_qp(&QpWanted {
            transport,
            send_cq: cq,
            receive_cq: cq,
            srq,
            sends: 1,
            receives: depth,
            inline: 0,
        })?;
        let ring = ReceiveRing {
            buffers: Buffers::new(device, depth, len)?,
            qp,
            queue: srq.map_or(ReceiveQueue::Own(qp), ReceiveQueue::Shared),
            cq,
        };
        for buffer in 0..depth {
            ring.buffers.receive(device, ring.queue, buffer)?;
        }
        Ok(ring)
    }

    pub(crate) fn address(&self, device: &mut dyn Device) -> Result<Address> {
        device.address(self.qp)
    }

    /// Connects the ring with the queue pair of the other host's sends.
    pub(crate) fn connect(
        &mut self,
        device: &mut dyn Device,
        transport: Transport,
        peer: Address,
    ) -> Result<()> {
        let peer = (transport != Transport::Ud).then_some(peer);
        device.connect(self.qp, peer)
    }

    /// Takes packets that have arrived; returns their buffers and lengths.
    pub(crate) fn poll(&mut self, device: &mut dyn Device) -> Result<Vec<(usize, usize)>> {
        let mut completions = [blank(); WEIGHT];
        let count = device.poll(self.cq, &mut completions)?;
        let arrived = completions[..count].iter();
        arrived
            .map(|one| {
                succeeded(one)?;
                Ok((one.id as usize, one.bytes as usize))
            })
            .collect()
    }

    /// Copies the frame out of a buffer, and posts the buffer again.
    pub(crate) fn take(
        &mut self,
        device: &mut dyn Device,
        (buffer, len): (usize, usize),
    ) -> Result<Vec<u8>> {
        let frame = self.buffers.read(buffer, len);
        self.buffers.receive(device, self.queue, buffer)?;
        Ok(frame)
    }
}

fn blank() -> Completion {
    Completion {
        id: 0,
        qp: Qp(0),
        status: Status::Success,
        of: Completed::Send,
        bytes: 0,
        immediate: None,
    }
}

fn succeeded(completion: &Completion) -> Result<()> {
    match completion.status {
        Status::Success => Ok(()),
        status => Err(Error::Invalid(format!(
            "a packet of IP over InfiniBand failed: {}",
            status.words()
        ))),
    }
}
