//! The transport of a rank to itself: the smallest transport, and the example of
//! docs/internals/transports.md.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use datatype::Buffer;
use datatype::local_work::{LocalWork, Meter};

use crate::waitable::{Waitable, Wakes};
use crate::zero_copy::Origin;
use crate::{
    Capabilities, Error, Exposed, Exposure, Family, Head, More, PathCosts, Put, RemoteKey, Result,
    Token, Transfer, Transport, ZeroCopy, ZeroCopyCapabilities,
};

/// Longest packet to this rank itself, in bytes.
const LONGEST_PACKET: usize = 64 << 10;
const CAPABILITIES: Capabilities = Capabilities {
    transport: "loopback",
    longest_packet: LONGEST_PACKET,
    piece: LONGEST_PACKET,
    pipelined: false,
    zero_copy: Some(ZeroCopyCapabilities::READ),
    cooperative: false,
    push: false,
    settled: true,
    rails: 1,
    cost: PathCosts::MEMORY,
};

/// Packets of a rank to itself, and the buffers that it has exposed to itself.
#[derive(Default)]
pub struct Loopback {
    rank: usize,
    packets: VecDeque<(Head, Box<[u8]>)>,
    exposed: BTreeMap<u64, Buffer>,
    /// The meter that charges copies, on a modelled machine.
    meter: Option<Arc<Meter>>,
    /// The last number given to an exposed buffer. Each is used once; 0 names no buffer.
    last_key: u64,
}

impl Loopback {
    /// The transport of world rank `rank` to itself.
    pub fn of(rank: usize) -> Loopback {
        Loopback {
            rank,
            ..Loopback::default()
        }
    }

    /// This transport, with its copies charged at `meter`.
    pub(crate) fn metered(self, meter: Option<Arc<Meter>>) -> Loopback {
        Loopback { meter, ..self }
    }

    #[inline(always)]
    fn copied(&self, bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.add(LocalWork::Copy, bytes, bytes);
        }
    }

    /// Passes the packets to `handler`, and returns their number. Not inlined: few ranks send to
    /// themselves, so the polls of all others do without these instructions.
    #[inline(never)]
    fn hand_over(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> usize {
        let mut packets = 0;
        while let Some((head, body)) = self.packets.pop_front() {
            packets += 1;
            self.copied(body.len());
            if handler(self.rank, head, &body) == More::Enough {
                break;
            }
        }
        packets
    }

    /// The exposed buffer that a key names.
    fn find(&self, key: &RemoteKey) -> Result<&Buffer> {
        let found = self.exposed.get(&key.address);
        found.ok_or_else(|| Error::broken(self.rank, "a key of memory that is not exposed"))
    }
}

impl Waitable for Loopback {
    #[inline(always)]
    fn has_nothing(&self) -> bool {
        self.packets.is_empty()
    }

    fn is_quiet(&mut self) -> bool {
        self.packets.is_empty()
    }

    /// Arms nothing: only this rank itself sends to this transport, and it is awake when it sends.
    fn arm(&mut self) -> Result<Wakes> {
        Ok(Wakes::ByDoorbell)
    }
}

impl Transport for Loopback {
    fn longest_packet(&self, _peer: usize) -> usize {
        LONGEST_PACKET
    }

    fn capabilities(&mut self, _peer: usize) -> Capabilities {
        CAPABILITIES
    }

    fn put(
        &mut self,
        _peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        let mut body = vec![0; len].into_boxed_slice();
        fill(&mut body);
        self.copied(len);
        self.packets.push_back((head, body));
        Ok(Put::Accepted)
    }

    #[inline(always)]
    fn poll(&mut self, handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        match self.packets.is_empty() {
            true => Ok(0),
            false => Ok(self.hand_over(handler)),
        }
    }
}

impl ZeroCopy for Loopback {
    fn expose(
        &mut self,
        _peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
        _family: Family,
    ) -> Result<Option<Exposure>> {
        self.last_key += 1;
        self.exposed.insert(self.last_key, buffer.clone());
        let key = RemoteKey::new(self.last_key, len, &[]);
        let exposure = Exposure::new(buffer, len, exposed, key, Origin::Loopback);
        Ok(Some(exposure))
    }

    fn prepare(
        &mut self,
        _peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>> {
        let exposure = Exposure::new(buffer, len, exposed, RemoteKey::NONE, Origin::Loopback);
        Ok(Some(exposure))
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        self.exposed.remove(&exposure.key.address);
        Ok(())
    }

    fn read(
        &mut self,
        _peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        _token: Token,
    ) -> Result<Transfer> {
        let source = self.find(from)?;
        to.check(self.rank, &range)?;
        let at = from.part_for(self.rank, &range)?.offset();
        let source = source.slice(at, range.len());
        source.copy_to(&to.buffer.slice(range.start, range.len()));
        self.copied(range.len());
        Ok(Transfer::Done)
    }

    fn write(
        &mut self,
        _peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        _token: Token,
    ) -> Result<Transfer> {
        let target = self.find(to)?;
        from.check(self.rank, &range)?;
        let at = to.part_for(self.rank, &range)?.offset();
        let target = target.slice(at, range.len());
        from.buffer.slice(range.start, range.len()).copy_to(&target);
        self.copied(range.len());
        Ok(Transfer::Done)
    }
}

#[cfg(test)]
#[path = "loopback_tests.rs"]
mod tests;
