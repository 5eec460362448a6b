//! The transport of a rank to itself: the smallest one, and the example of ARCHITECTURE.md.

use std::collections::VecDeque;
use std::ops::Range;

use datatype::Buffer;

use crate::zero_copy::Origin;
use crate::{
    Capabilities, CostHints, Done, Exposed, Exposure, Fault, Head, More, Put, RemoteKey, Result,
    Transfer, Transport, ZeroCopy, ZeroCopyCapabilities,
};

/// Longest packet to this rank itself, in bytes.
const LONGEST_PACKET: usize = 64 << 10;

/// Packets of a rank to itself, and the buffers that it has exposed to itself.
#[derive(Default)]
pub struct Loopback {
    rank: usize,
    packets: VecDeque<(Head, Box<[u8]>)>,
    exposed: Vec<Option<Buffer>>,
}

impl Loopback {
    /// The transport of world rank `rank` to itself.
    pub fn of(rank: usize) -> Loopback {
        Loopback {
            rank,
            ..Loopback::default()
        }
    }

    /// No packet is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The buffer that a key names. A key is its number in the table, counted from 1: no address is followed.
    fn find(&self, key: &RemoteKey) -> Result<Buffer> {
        let slot = (key.address as usize).checked_sub(1);
        let found = slot.and_then(|slot| self.exposed.get(slot)?.clone());
        found.ok_or_else(|| {
            let (peer, what) = (self.rank, "a key of memory that is not exposed".into());
            Fault::Broken { peer, what }.into()
        })
    }
}

impl Transport for Loopback {
    fn longest_packet(&self, _peer: usize) -> usize {
        LONGEST_PACKET
    }

    fn capabilities(&mut self, _peer: usize) -> Capabilities {
        Capabilities {
            transport: "loopback",
            longest_packet: LONGEST_PACKET,
            piece: LONGEST_PACKET,
            pipelined: false,
            zero_copy: Some(ZeroCopyCapabilities {
                read: true,
                notified_write: false,
                synchronous: true,
                scattered: true,
            }),
            cooperative: false,
            push: false,
            cost: CostHints {
                latency_ns: 50,
                read_answer_ns: 0,
                expose_ns: 0,
                packet_ps_per_byte: 200,
                zero_copy_ps_per_byte: 100,
            },
        }
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
        self.packets.push_back((head, body));
        Ok(Put::Accepted)
    }

    fn poll(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        let mut packets = 0;
        while let Some((head, body)) = self.packets.pop_front() {
            packets += 1;
            if handler(self.rank, head, &body) == More::Enough {
                break;
            }
        }
        Ok(packets)
    }

    fn close(&mut self) -> Result<bool> {
        Ok(true)
    }
}

impl ZeroCopy for Loopback {
    fn expose(
        &mut self,
        _peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>> {
        let free = self.exposed.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.exposed.push(None);
            self.exposed.len() - 1
        });
        self.exposed[slot] = Some(buffer.clone());
        Ok(Some(Exposure {
            buffer: buffer.clone(),
            len,
            exposed,
            key: RemoteKey::new(slot as u64 + 1, &[]),
            origin: Origin::Loopback,
        }))
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        self.exposed[exposure.key.address as usize - 1] = None;
        Ok(())
    }

    fn read(
        &mut self,
        _peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        _token: Head,
    ) -> Result<Transfer> {
        let from = self.find(from)?.slice(range.start, range.len());
        from.copy_to(&to.buffer.slice(range.start, range.len()));
        Ok(Transfer::Done)
    }

    fn write(
        &mut self,
        _peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        _token: Head,
    ) -> Result<Transfer> {
        let to = self.find(to)?.slice(range.start, range.len());
        from.buffer.slice(range.start, range.len()).copy_to(&to);
        Ok(Transfer::Done)
    }

    fn done(&mut self) -> Option<Done> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{memory, room};

    #[test]
    fn a_key_is_a_number_and_never_followed() {
        let mut loopback = Loopback::of(3);
        let (sent, mut received) = ([7u8; 100], [0u8; 100]);
        let expose = |loopback: &mut Loopback, buffer: &Buffer, exposed| {
            let exposure = loopback.expose(3, buffer, 100, exposed).unwrap();
            exposure.expect("a rank can expose everything to itself")
        };
        let from = expose(&mut loopback, &memory(&sent), Exposed::ToRead);
        let to = expose(&mut loopback, &room(&mut received), Exposed::ToWrite);
        let key = from.key();
        let read = loopback.read(3, &key, &to, 10..60, [0; 3]).unwrap();
        assert_eq!(read, Transfer::Done);
        assert!(received[10..60] == sent[10..60] && received[..10] == [0; 10]);
        loopback.retract(from).unwrap();
        for stale in [key, RemoteKey::new(0xdead_beef, &[]), RemoteKey::NONE] {
            let error = loopback.read(3, &stale, &to, 0..8, [0; 3]).unwrap_err();
            assert!(error.to_string().contains("not exposed"), "{error}");
        }
        loopback.retract(to).unwrap();
    }
}
