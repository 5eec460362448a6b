//! The rings between this rank and its peers: this rank's end of each, with the peer's doorbell.

use datatype::double::{Primitive, spend};

use super::cache_distance::CacheDistance;
use super::shared_ring::SharedRing;
use crate::cells::Cells;
use crate::doorbell::Bell;
use crate::ring::{Bad, Heard, Receiver, Sender};
use crate::string_moves::StringMoves;
use crate::{Error, Head, More, Put, Result};

/// The greatest number of packets that one poll consumes from one ring.
const BATCH: usize = 32;

/// The sending ends of the rings to all peers, indexed by world rank; `None` where no ring is open.
pub(super) type Senders = [Option<Box<Outbound>>];

pub(crate) struct Outbound {
    pub(super) ring: Sender<SharedRing>,
    pub(super) bell: Bell,
    pub(super) reach: CacheDistance,
    /// The kind of copies for long bodies.
    pub(super) moves: StringMoves,
}

impl Outbound {
    #[inline(always)]
    pub(crate) fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) -> Put {
        spend(Primitive::Send);
        let put = self.ring.put(head, len, fill);
        if put != Put::Full {
            self.bell.ring();
        }
        put
    }
}

pub(super) struct Inbound {
    pub(super) peer: usize,
    pub(super) ring: Receiver<SharedRing>,
    pub(super) bell: Bell,
    /// Cells that the peer has handed over while this rank has no ring to it.
    pub(super) early_cells: Cells,
}

impl Inbound {
    /// Passes the packets of the ring to `handler`, at most [`BATCH`] of them, and returns their
    /// number. Inlined with the handler, since it has one caller.
    #[inline(always)]
    pub(super) fn drain(
        &mut self,
        outbound: &mut Senders,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let peer = self.peer;
        let mut packets = 0;
        while packets < BATCH && !self.ring.is_empty() {
            packets += 1;
            let more = self.take(
                outbound,
                #[inline(always)]
                |head, body| handler(peer, head, body),
            )?;
            if more == More::Enough {
                break;
            }
        }
        Ok(packets)
    }

    /// Passes the next packet to `handler` and consumes it; the ring must not be empty.
    #[inline(always)]
    pub(super) fn take<T>(
        &mut self,
        outbound: &mut Senders,
        handler: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<T> {
        spend(Primitive::Take);
        let Some(len) = self.ring.next_inline() else {
            return self.take_elsewhere(outbound, handler);
        };
        let (answer, published) = self.ring.take_inline(len, handler);
        if published.0 {
            self.bell.ring();
        }
        Ok(answer)
    }

    /// [`take`](Inbound::take) of a packet whose body lies in a cell or an arena. Not inlined, so
    /// that packets with bodies in slots do not pay for its registers.
    #[inline(never)]
    fn take_elsewhere<T>(
        &mut self,
        outbound: &mut Senders,
        handler: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<T> {
        let early_cells = &mut self.early_cells;
        let on_report = |heard: Heard| match &mut outbound[self.peer] {
            Some(back) => back.ring.on_report(heard),
            None => heard.gain(early_cells),
        };
        match self.ring.take(on_report, handler) {
            Ok((answer, published)) => {
                if published.0 {
                    self.bell.ring();
                }
                Ok(answer)
            }
            Err(bad) => Err(broken(self.peer, bad)),
        }
    }
}

#[cold]
fn broken(peer: usize, bad: Bad) -> Error {
    let what = match bad {
        Bad::Length(len) => format!("a packet of {len} bytes, which no ring can hold"),
        Bad::Place(at) => {
            format!("a packet whose body should lie at byte {at} of an arena that ends before")
        }
    };
    Error::broken(peer, what)
}
