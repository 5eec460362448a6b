//! The transport of ranks that share memory.
//!
//! Each ordered pair of ranks has a ring, which the sender opens with its first packet: it marks
//! itself among the receiver's callers and counts up the receiver's arrivals. An idle receiver
//! polls this one word and the rings of its callers: the most recent talkers at every poll, the
//! others in turn. So the cost of a poll does not grow with peers that fell silent. Peers are named
//! by their world ranks; in the memory, ranks are named by their places.

mod affinity;
mod buffer_pool;
mod cache_distance;
pub mod collective_buffer;
mod direct_copy;
mod exposures;
mod group_buffers;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod heap;
mod local_ranks;
mod peer_rings;
mod segment;
mod shared_ring;
mod single_copy;

pub(crate) use local_ranks::LocalRanks;
pub(crate) use segment::Segment;
pub(crate) use shared_ring::Shape;
#[cfg(test)]
pub(crate) use shared_ring::SharedRing;

use crate::body::BodyStores;
use crate::cells::{self, Cells};
use crate::core_counts::CoreWatch;
use crate::doorbell::Bell;
use crate::piece_counter::PieceCounter;
use crate::ring::{Receiver, Sender};
use crate::sync::Ordering;
use crate::waitable::{Waitable, Wakes};
use crate::{
    Capabilities, End, Error, Fault, First, Head, More, PathCosts, Put, Result, Transport,
    ZeroCopyCapabilities,
};
use affinity::CoreAssignment;
use buffer_pool::BufferPool;
use cache_distance::{ASKED, CacheDistance};
use exposures::Exposures;
use peer_rings::{Inbound, Outbound, Senders};
use segment::BoardRef;
use single_copy::SingleCopy;

/// Number of hot rings: those polled every time.
const HOT: usize = 4;
/// Length of the pieces of a message in several packets, in bytes: each fits in a cell.
const PIECE: usize = cells::LONG;
/// Panic message: callers pass only peers on this host.
const HERE: &str = "a peer that shares memory";

/// `Shm::connect` opens the ring.
const OPEN: &str = "an open ring";

/// Shared memory as one rank uses it.
pub(crate) struct Shm {
    /// This rank's place in the memory.
    place: usize,
    local: LocalRanks,
    segment: Segment,
    board: BoardRef,
    outbound: Box<Senders>,
    inbound: Vec<Inbound>,
    /// Index of the cold ring to be polled next.
    next_cold: usize,
    arrivals_seen: u32,
    known_callers: Vec<u64>,
    single_copy: SingleCopy,
    exposures: Exposures,
    cores: Cores,
    crowd: CoreAssignment,
    buffers: BufferPool,
}

/// The cache distance of the ranks of a host, as far as it is known before they talk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    /// The cores share a cache.
    pub(crate) near: bool,
    /// Smallest body to write with non-temporal stores between far cores, in bytes.
    pub(crate) non_temporal_from: usize,
}

impl Shm {
    /// World rank `rank` joins the memory of the ranks `local`.
    pub(crate) fn attach(
        segment: Segment,
        rank: usize,
        local: LocalRanks,
        may_copy: bool,
        cores: Cores,
    ) -> Result<Shm> {
        let here = local.count();
        let Some(place) = local.of(rank).filter(|_| here == segment.ranks) else {
            return Err(Fault::Mismatch(format!(
                "rank {rank} should be one of {here} that share memory, and the memory is for {}: what the launcher says and \
                 the memory do not belong together",
                segment.ranks
            ))
            .into());
        };
        crate::sync::join_heavy_fences();
        let single_copy = SingleCopy::new(&segment, place, local.job(), may_copy);
        Ok(Shm {
            place,
            board: segment.board_ref(place),
            outbound: (0..local.job()).map(|_| None).collect(),
            inbound: Vec::new(),
            next_cold: HOT,
            arrivals_seen: 0,
            known_callers: vec![0; segment.ranks.div_ceil(64)],
            single_copy,
            exposures: Exposures::default(),
            cores,
            crowd: CoreAssignment::join(&segment.board(place).affinity, here),
            buffers: BufferPool::default(),
            segment,
            local,
        })
    }

    /// Length of the pieces of a message in several packets, in bytes. The receiver copies one
    /// piece out while the sender writes the next.
    fn pieces(&self) -> usize {
        self.segment.shape.arenas().max_body().min(PIECE)
    }

    fn single_copy_works(&mut self, peer: usize) -> bool {
        let board = self.segment.board(self.local.of(peer).expect(HERE));
        self.single_copy.works(peer, board)
    }

    /// The piece counter of messages between this rank, at `end`, and a peer. It lies in the ring
    /// by which the message's sender sends.
    pub(crate) fn piece_counter(&self, peer: usize, end: End) -> Option<&PieceCounter> {
        match end {
            End::Sender => Some(self.outbound[peer].as_ref()?.ring.memory().piece_counter()),
            End::Receiver => {
                let inbound = self.inbound.iter().find(|inbound| inbound.peer == peer)?;
                Some(inbound.ring.memory().piece_counter())
            }
        }
    }

    /// This rank shares memory with `peer`.
    #[inline(always)]
    pub(crate) fn reaches(&self, peer: usize) -> bool {
        self.local.of(peer).is_some()
    }

    /// Rings the doorbell of a peer.
    pub(crate) fn ring(&self, peer: usize) {
        if let Some(place) = self.local.of(peer) {
            self.segment.board(place).doorbell.ring();
        }
    }

    /// The ring to a peer, if it is open.
    #[inline(always)]
    pub(crate) fn outbound(&mut self, peer: usize) -> Option<&mut Outbound> {
        self.outbound.get_mut(peer)?.as_deref_mut()
    }

    /// The stores for the next body to `peer`, which has `len` bytes. The peer's cache distance is
    /// measured now and then.
    #[inline]
    pub(crate) fn stores(&mut self, peer: usize, len: usize) -> BodyStores {
        let Some(Some(to)) = self.outbound.get_mut(peer) else {
            let first = CacheDistance::new(self.cores.near, self.cores.non_temporal_from);
            return BodyStores::non_temporal_from(first.non_temporal_from());
        };
        if len >= ASKED {
            to.reach.look(|| to.ring.tail_has_changed());
        }
        let non_temporal_from = to.reach.non_temporal_from();
        let stores = BodyStores::non_temporal_from(non_temporal_from);
        match len >= non_temporal_from && to.ring.has_cell(len) {
            true => stores.through_cache(),
            false => stores,
        }
    }

    /// The cores of this rank and `peer` share a cache, so long messages are best moved through the
    /// ring.
    pub(crate) fn is_near(&self, peer: usize) -> bool {
        match self.outbound.get(peer) {
            Some(Some(to)) => to.reach.is_near(),
            _ => self.cores.near,
        }
    }

    /// Joins the cooperative copy that `peer` has just opened with this generation, to measure its
    /// cache distance.
    pub(crate) fn joins(&mut self, peer: usize, generation: u32) {
        if let Some(to) = self.outbound(peer) {
            let counter = to.ring.memory().piece_counter();
            to.reach.look_for_long(|| counter.is_of(generation));
        }
    }

    /// Accepts the rings that peers have opened since the last poll.
    #[cold]
    #[inline(never)]
    fn accept(&mut self, arrivals: u32) -> Result<()> {
        self.arrivals_seen = arrivals;
        for word in 0..self.known_callers.len() {
            let marked = self.segment.callers(self.place)[word].load(Ordering::Acquire);
            let mut new = marked & !self.known_callers[word];
            self.known_callers[word] |= new;
            while new != 0 {
                let place = word * 64 + new.trailing_zeros() as usize;
                new &= new - 1;
                let Some(peer) = self.local.rank(place) else {
                    return Err(Error::broken(
                        place,
                        "it says that its rank is beyond the last of the host",
                    ));
                };
                let cells = match &self.outbound[peer] {
                    Some(back) => back.ring.memory().cell_memory(),
                    None => None,
                };
                let ring = self.segment.ring(place, self.place, cells)?;
                self.inbound.push(Inbound {
                    peer,
                    ring: Receiver::new(ring),
                    bell: self.segment.bell(place),
                    early_cells: Cells::default(),
                });
            }
        }
        Ok(())
    }
}

impl Shm {
    /// Opens the ring to `peer`.
    #[cold]
    #[inline(never)]
    fn connect(&mut self, peer: usize) -> Result<()> {
        let (segment, from) = (&self.segment, self.place);
        let to = self.local.of(peer).expect(HERE);
        let mut known = self.inbound.iter_mut().filter(|known| known.peer == peer);
        let back = known.next();
        let cells = match &back {
            Some(back) => back.ring.memory().cell_memory(),
            None => None,
        };
        let mut ring = Sender::new(segment.ring(from, to, cells)?);
        if let Some(back) = back {
            ring.gain(std::mem::take(&mut back.early_cells));
        }
        segment.callers(to)[from / 64].fetch_or(1 << (from % 64), Ordering::Release);
        let arrivals = &segment.board(to).arrivals;
        arrivals.fetch_add(1, Ordering::AcqRel);
        let bell = segment.bell(to);
        let reach = CacheDistance::new(self.cores.near, self.cores.non_temporal_from);
        self.outbound[peer] = Some(Box::new(Outbound { ring, bell, reach }));
        Ok(())
    }
}

impl Waitable for Shm {
    #[inline(always)]
    fn has_nothing(&self) -> bool {
        Shm::has_nothing(self)
    }

    fn is_quiet(&mut self) -> bool {
        self.board.arrivals.load(Ordering::Acquire) == self.arrivals_seen
            && self.inbound.iter().all(|inbound| inbound.ring.is_empty())
    }

    fn arm(&mut self) -> Result<Wakes> {
        Ok(Wakes::ByDoorbell)
    }

    fn bell(&self) -> Option<Bell> {
        Some(self.segment.bell(self.place))
    }

    #[inline]
    fn has_ringers(&self) -> bool {
        self.local.count() > 1
    }

    fn ring_own(&self) {
        self.board.doorbell.ring();
    }

    fn core_watch(&self) -> Option<CoreWatch> {
        Some(self.segment.core_watch())
    }

    fn has_core_each(&mut self) -> Option<bool> {
        let segment = &self.segment;
        self.crowd
            .has_core_each(|place| &segment.board(place).affinity)
    }
}

impl Transport for Shm {
    fn close(&mut self) -> Result<bool> {
        self.single_copy.close();
        Ok(true)
    }

    #[inline]
    fn longest_packet(&self, _peer: usize) -> usize {
        self.segment.shape.arenas().max_body()
    }

    fn piece(&self, _peer: usize) -> usize {
        self.pieces()
    }

    fn capabilities(&mut self, peer: usize) -> Capabilities {
        let single_copy = self.single_copy_works(peer);
        Capabilities {
            transport: "shared memory",
            longest_packet: self.longest_packet(peer),
            piece: self.pieces(),
            pipelined: true,
            zero_copy: single_copy.then_some(ZeroCopyCapabilities::READ),
            cooperative: single_copy,
            push: self.is_near(peer),
            settled: matches!(&self.outbound[peer], Some(to) if to.ring.is_settled()),
            rails: 1,
            cost: PathCosts::MEMORY,
        }
    }

    #[inline(always)]
    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        if self.outbound[peer].is_none() {
            self.connect(peer)?;
        }
        let to = self.outbound[peer].as_mut().expect(OPEN);
        Ok(to.put(head, len, fill))
    }

    #[inline(always)]
    fn poll(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        let arrivals = self.board.arrivals.load(Ordering::Acquire);
        if arrivals != self.arrivals_seen {
            self.accept(arrivals)?;
        }
        let mut packets = 0;
        let looks = self.inbound.len().min(HOT + 1);
        for look in 0..looks {
            let at = if look < HOT { look } else { self.next_cold() };
            let inbound = &mut self.inbound[at];
            if !inbound.ring.is_empty() {
                packets += inbound.drain(&mut self.outbound, &mut handler)?;
                if at >= HOT {
                    // The talker moves in front; the last hot ring becomes cold.
                    self.inbound[..=at].rotate_right(1);
                }
            }
        }
        Ok(packets)
    }
}

impl Shm {
    /// Takes the first packet of the first hot ring that has one, if it is `wanted`.
    #[inline(always)]
    pub(crate) fn get_first_if<T>(
        &mut self,
        wanted: impl FnOnce(Head) -> bool,
        take: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<First<T>> {
        let hot = self.inbound.len().min(HOT);
        for inbound in &mut self.inbound[..hot] {
            if inbound.ring.is_empty() {
                continue;
            }
            if !wanted(inbound.ring.next_head()) {
                return Ok(First::Other);
            }
            return inbound.take(&mut self.outbound, take).map(First::Taken);
        }
        Ok(First::Nothing)
    }

    /// A poll would find nothing. False as well if there are cold rings.
    #[inline(always)]
    pub(crate) fn has_nothing(&self) -> bool {
        self.board.arrivals.load(Ordering::Acquire) == self.arrivals_seen
            && self.inbound.len() <= HOT
            && self.inbound.iter().all(|inbound| inbound.ring.is_empty())
    }

    /// Index of the cold ring to be polled now.
    fn next_cold(&mut self) -> usize {
        let at = self.next_cold;
        self.next_cold = if at + 1 < self.inbound.len() {
            at + 1
        } else {
            HOT
        };
        at
    }
}

#[cfg(test)]
mod tests;
