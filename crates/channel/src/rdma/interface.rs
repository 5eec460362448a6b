//! The interface of the layer above, as the RDMA transport implements it.

use super::bulk::Direction;
use super::{BUSY_POLLS, IDLE_POLLS, Rdma};
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
        for at in 0..self.endpoints.ringed().len() {
            packets += self.drain(self.endpoints.ringed()[at], &mut handler)?;
        }
        if self.srq_path.is_active() {
            packets += self.drain_messages(&mut handler)?;
        }
        if packets > 0 {
            self.probes.rest();
        } else if self.attention.receives_due > 0 {
            self.post_due()?;
        }
        let attention = &mut self.attention;
        attention.polls = attention.polls.wrapping_add(1);
        let every = if packets > 0 { BUSY_POLLS } else { IDLE_POLLS };
        if attention.polls.is_multiple_of(every) || attention.all && packets == 0 {
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
        let keys = self.expose_range((address, len, exposed))?.single();
        Ok(Exposure {
            address,
            len: len as u64,
            lkey: keys.lkey,
            rkey: keys.rkey,
            exposed,
        })
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        self.retract_range((exposure.address, exposure.len as usize, exposure.exposed))
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
        self.start(peer, Direction::Read, from, to, len, token)
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
        self.start(peer, Direction::Write { notice }, to, from, len, token)
    }

    fn expect(&mut self, peer: usize, token: Head) -> Result<Option<u32>> {
        self.expect_notice(peer, token)
    }

    fn forget(&mut self, notice: u32) {
        self.forget_notice(notice);
    }

    fn done(&mut self) -> Option<Done> {
        self.bulk.next_done()
    }
}
