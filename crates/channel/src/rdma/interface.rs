//! The interface of the layer above, as the RDMA transport implements it.

use std::ops::Range;

use datatype::Buffer;
use device::{Access, Region, Remote};

use super::bulk::{NOTICES, Way, receive_notice};
use super::{BUSY_LOOKS, Design, IDLE_LOOKS, Rdma};
use crate::zero_copy::Origin;
use crate::{
    Capabilities, CostHints, Done, Exposed, Exposure, Fault, Head, More, NotifiedWrite, Put,
    RemoteKey, Result, Transfer, Transport, ZeroCopy, ZeroCopyCapabilities,
};

/// Additional time of a read where a processor must be interrupted for the answer, in nanoseconds.
const INTERRUPT_NS: u64 = 10_000;

impl Transport for Rdma {
    #[inline]
    fn longest_packet(&self, _peer: usize) -> usize {
        self.layout.max_body()
    }

    fn capabilities(&mut self, peer: usize) -> Capabilities {
        let by_processor = self.by_processor();
        let zero_copy = ZeroCopyCapabilities {
            read: true,
            notified_write: true,
            synchronous: false,
            scattered: false,
        };
        Capabilities {
            transport: "RDMA",
            longest_packet: self.longest_packet(peer),
            piece: self.longest_packet(peer),
            pipelined: false,
            zero_copy: (self.config.design == Design::ZeroCopy).then_some(zero_copy),
            cooperative: false,
            push: false,
            cost: CostHints {
                latency_ns: 1500,
                read_answer_ns: if by_processor { INTERRUPT_NS } else { 0 },
                expose_ns: 1000,
                packet_ps_per_byte: 500,
                zero_copy_ps_per_byte: 300,
            },
        }
    }

    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        self.put_packet(peer, head, len, fill)
    }

    fn poll(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        self.node.sync_memory();
        self.attend()?;
        let mut packets = 0;
        for at in 0..self.ringed.len() {
            packets += self.drain(self.ringed[at], &mut handler)?;
        }
        if self.shared.is_active() {
            packets += self.drain_shared(&mut handler)?;
        }
        if packets > 0 {
            self.probes.rest();
        } else if self.attention.receives_due > 0 {
            self.post_due()?;
        }
        let attention = &mut self.attention;
        attention.looks = attention.looks.wrapping_add(1);
        let every = if packets > 0 { BUSY_LOOKS } else { IDLE_LOOKS };
        if attention.looks.is_multiple_of(every) || attention.all && packets == 0 {
            self.attend_to_all()?;
        }
        Ok(packets)
    }

    fn close(&mut self) -> Result<bool> {
        self.end_connections()
    }
}

impl ZeroCopy for Rdma {
    fn expose(
        &mut self,
        _peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>> {
        let Some((address, whole)) = buffer.as_dense() else {
            return Ok(None);
        };
        if len == 0 || len > whole {
            return Ok(None);
        }
        let region = match self.expose_region(address as u64, len, exposed) {
            Ok(region) => region,
            // What cannot be registered (too much locked memory, a mapped file) can be copied.
            Err(error) if matches!(error.fault(), Fault::Device(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Exposure {
            buffer: buffer.clone(),
            len,
            exposed,
            key: RemoteKey::new(address as u64, &[region.rkey]),
            origin: Origin::Rdma,
        }))
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        let key = (exposure.key.address, exposure.len, exposure.exposed);
        let Some((region, users)) = self.bulk.exposed.get_mut(&key) else {
            return Ok(());
        };
        *users -= 1;
        if *users > 0 {
            return Ok(());
        }
        let region = *region;
        self.bulk.exposed.remove(&key);
        Ok(self.node.rail(0).deregister(region)?)
    }

    fn read(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        token: Head,
    ) -> Result<Transfer> {
        assert!(range.start == 0 && range.end <= to.len && to.exposed == Exposed::ToWrite);
        let from = self.remote(peer, from)?;
        self.start(peer, Way::Read, from, to, range.end, token)
    }

    fn write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        token: Head,
    ) -> Result<Transfer> {
        assert!(range.start == 0 && range.end <= from.len);
        let to = self.remote(peer, to)?;
        let way = Way::Write { notice: None };
        self.start(peer, way, to, from, range.end, token)
    }

    fn done(&mut self) -> Option<Done> {
        self.bulk.done.pop_front()
    }
}

impl NotifiedWrite for Rdma {
    fn expect(&mut self, peer: usize, token: Head) -> Result<Option<u32>> {
        if self.bulk.expected.len() == NOTICES {
            return Ok(None);
        }
        if self.bulk.expected.len() == self.bulk.receives {
            receive_notice(self.node.rail(0), self.srq)?;
            self.bulk.receives += 1;
        }
        let notice = self.bulk.next_notice;
        self.bulk.next_notice = notice.wrapping_add(1);
        self.bulk.expected.insert(notice, Done { peer, token });
        Ok(Some(notice))
    }

    fn forget(&mut self, _peer: usize, notice: u32) {
        self.bulk.expected.remove(&notice);
    }

    fn write_notified(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        len: usize,
        notice: u32,
        token: Head,
    ) -> Result<Transfer> {
        assert!(len <= from.len);
        let to = self.remote(peer, to)?;
        let way = Way::Write {
            notice: Some(notice),
        };
        self.start(peer, way, to, from, len, token)
    }

    fn packets_sent(&self, peer: usize) -> u64 {
        self.sent(peer)
    }

    fn packets_received(&self, peer: usize) -> u64 {
        self.taken(peer)
    }
}

impl Rdma {
    /// The memory of a peer that a key names.
    fn remote(&self, peer: usize, key: &RemoteKey) -> Result<Remote> {
        let rkey = key.rail(0).ok_or_else(|| Fault::Broken {
            peer,
            what: "a key that opens no memory to this rail".into(),
        })?;
        Ok(Remote {
            address: key.address,
            rkey,
        })
    }

    /// The registration of an exposed buffer; one for all transfers that need it at once.
    fn expose_region(&mut self, address: u64, len: usize, exposed: Exposed) -> Result<Region> {
        if let Some((region, users)) = self.bulk.exposed.get_mut(&(address, len, exposed)) {
            *users += 1;
            return Ok(*region);
        }
        let access = match exposed {
            Exposed::ToRead => Access {
                remote_read: true,
                ..Access::default()
            },
            Exposed::ToWrite => Access {
                local_write: true,
                remote_write: true,
                ..Access::default()
            },
        };
        let base = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the exposure holds the buffer, whose maker has promised that its memory stays and that others do not use
        // it, until `retract` deregisters it.
        let region = unsafe { self.node.rail(0).register(base, len, access)? };
        self.bulk
            .exposed
            .insert((address, len, exposed), (region, 1));
        Ok(region)
    }

    /// The local key of an exposed buffer.
    pub(super) fn local_key(&self, exposure: &Exposure) -> u32 {
        let key = (exposure.key.address, exposure.len, exposure.exposed);
        let (region, _) = &self.bulk.exposed[&key];
        region.lkey
    }
}
