//! The interface of the layer above, as the RDMA transport implements it.

use device::{Access, Region};

use super::bulk::{NOTICES, Way, receive_notice};
use super::{BUSY_LOOKS, IDLE_LOOKS, Rdma};
use crate::piece_counter::PieceCounter;
use crate::{
    Channel, CopyResult, Done, End, Exposed, Exposure, Head, More, OneSided, Place, Put, Result,
};

impl Channel for Rdma {
    #[inline]
    fn max_body(&self, _peer: usize) -> usize {
        self.layout.max_body()
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

    fn get(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
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

    fn read(&mut self, _peer: usize, _address: u64, _into: &mut [u8]) -> Result<CopyResult> {
        Ok(CopyResult::Refused)
    }

    fn write(&mut self, _peer: usize, _address: u64, _from: &[u8]) -> Result<CopyResult> {
        Ok(CopyResult::Refused)
    }

    fn share(&self, _peer: usize, _end: End) -> Option<&PieceCounter> {
        None
    }

    fn can_read(&mut self, _peer: usize) -> bool {
        false
    }
}

impl OneSided for Rdma {
    fn expose(&mut self, address: u64, len: usize, exposed: Exposed) -> Result<Exposure> {
        let exposure = |region: Region| Exposure {
            address,
            len: len as u64,
            lkey: region.lkey,
            rkey: region.rkey,
            exposed,
        };
        if let Some((region, users)) = self.bulk.exposed.get_mut(&(address, len, exposed)) {
            *users += 1;
            return Ok(exposure(*region));
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
        // SAFETY: by the rule of `expose`, the memory stays until `retract`, and nobody minds that it changes.
        let region = unsafe { self.node.rail(0).register(base, len, access)? };
        self.bulk
            .exposed
            .insert((address, len, exposed), (region, 1));
        Ok(exposure(region))
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        let key = (exposure.address, exposure.len as usize, exposure.exposed);
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

    fn start_read(
        &mut self,
        peer: usize,
        from: Place,
        to: &Exposure,
        len: usize,
        token: Head,
    ) -> Result<()> {
        assert!(len as u64 <= to.len && to.exposed == Exposed::ToWrite);
        self.start(peer, Way::Read, from, to, len, token)
    }

    fn start_write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: Place,
        len: usize,
        token: Head,
        notice: u32,
    ) -> Result<()> {
        assert!(len as u64 <= from.len);
        self.start(peer, Way::Write { notice }, to, from, len, token)
    }

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

    fn forget(&mut self, notice: u32) {
        self.bulk.expected.remove(&notice);
    }

    fn done(&mut self) -> Option<Done> {
        self.bulk.done.pop_front()
    }
}
