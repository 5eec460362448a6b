//! The transport of ranks that share memory.
//!
//! Each ordered pair of ranks has a ring. The sender opens it with its first packet: it sets its
//! bit among the receiver's callers and increments the receiver's count of arrivals. An idle
//! receiver polls this count and the rings of its callers: the rings that had packets most recently
//! at every poll, one of the others at each poll in rotation. So the cost of a poll does not grow
//! with peers that have fallen silent. The functions name peers by world rank; the shared memory is
//! indexed by local rank ([`LocalRanks`]).

mod affinity;
mod buffer_pool;
mod cache_distance;
mod collective_area;
pub mod collective_buffer;
mod collective_vectors;
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

use datatype::double::{Primitive, spend};

use crate::body::{ALIKE_UP_TO, BodyStores};
use crate::cells::{self, Cells};
use crate::core_counts::CoreWatch;
use crate::doorbell::Bell;
use crate::host_words::HostWords;
use crate::path_preference::PathPreference;
use crate::piece_counter::PieceCounter;
use crate::ring::{Receiver, Sender};
use crate::run_list::LatestRuns;
use crate::string_moves::StringMoves;
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

/// The number of hot rings: the inbound rings that every poll checks.
const HOT: usize = 4;
/// Longest piece of a message that is sent in several packets, in bytes: each piece fits in a cell.
const PIECE: usize = cells::LONG;
/// Panic message for a peer on another host: callers pass only peers on this host.
const HERE: &str = "a peer that shares memory";

/// Panic message for a ring that is not open: `Shm::connect` opens it before.
const OPEN: &str = "an open ring";

/// The shared-memory transport of one rank.
pub(crate) struct Shm {
    /// The local rank of this rank: its index in the shared memory.
    place: usize,
    local: LocalRanks,
    segment: Segment,
    board: BoardRef,
    outbound: Box<Senders>,
    inbound: Vec<Inbound>,
    /// The index of the cold (rarely used) ring to be polled next.
    next_cold: usize,
    arrivals_seen: u32,
    known_callers: Vec<u64>,
    single_copy: SingleCopy,
    exposures: Exposures,
    latest_runs: LatestRuns,
    cores: Cores,
    crowd: CoreAssignment,
    buffers: BufferPool,
}

/// The cache distance of the ranks of a host, as assumed before the first measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    /// True if the cores of the ranks share a cache.
    pub(crate) near: bool,
    /// Smallest body to write with non-temporal stores between far cores, in bytes.
    pub(crate) non_temporal_from: usize,
}

impl Shm {
    /// Attaches world rank `rank` to the memory `segment` of the ranks `local`. `may_copy`: the
    /// settings allow single copies.
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
            latest_runs: LatestRuns::default(),
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

    /// The piece counter of the messages for which this rank is `end` and `peer` the other end. It
    /// lies in the ring from the sender of the messages to their receiver. `None`: that ring is not
    /// open.
    pub(crate) fn piece_counter(&self, peer: usize, end: End) -> Option<&PieceCounter> {
        match end {
            End::Sender => Some(self.outbound[peer].as_ref()?.ring.memory().piece_counter()),
            End::Receiver => {
                let inbound = self.inbound.iter().find(|inbound| inbound.peer == peer)?;
                Some(inbound.ring.memory().piece_counter())
            }
        }
    }

    /// The receiver's preference for the messages for which this rank is `end` and `peer` the other
    /// end. `None`: the ring from their sender is not open.
    pub(crate) fn host_words(&self) -> HostWords {
        self.segment.host_words()
    }

    pub(crate) fn preference(&self, peer: usize, end: End) -> Option<&PathPreference> {
        match end {
            End::Sender => Some(self.outbound[peer].as_ref()?.ring.memory().preference()),
            End::Receiver => {
                let inbound = self.inbound.iter().find(|inbound| inbound.peer == peer)?;
                Some(inbound.ring.memory().preference())
            }
        }
    }

    /// True if this rank shares memory with `peer`.
    #[inline(always)]
    pub(crate) fn reaches(&self, peer: usize) -> bool {
        self.local.of(peer).is_some()
    }

    /// Records that this rank receives nothing any more, and wakes the ranks that may wait for it.
    pub(crate) fn leave(&self) {
        if self.board.has_left.swap(1, Ordering::Release) == 0 {
            let inbound = self.inbound.iter();
            inbound.for_each(|inbound| self.ring(inbound.peer));
        }
    }

    /// True if `peer` receives nothing any more.
    pub(crate) fn has_left(&self, peer: usize) -> bool {
        let place = self.local.of(peer);
        place.is_none_or(|place| self.segment.board(place).has_left.load(Ordering::Acquire) != 0)
    }

    /// Rings the doorbell of `peer`, which may sleep.
    pub(crate) fn ring(&self, peer: usize) {
        if let Some(place) = self.local.of(peer) {
            self.segment.board(place).doorbell.ring();
        }
    }

    /// The ring to `peer`, if it has been opened.
    #[inline(always)]
    pub(crate) fn outbound(&mut self, peer: usize) -> Option<&mut Outbound> {
        self.outbound.get_mut(peer)?.as_deref_mut()
    }

    /// The kind of stores for the next body to `peer`, of `len` bytes. Every few bodies this
    /// measures the cache distance to the peer.
    #[inline]
    pub(crate) fn stores(&mut self, peer: usize, len: usize) -> BodyStores {
        match len > ALIKE_UP_TO {
            true => self.long_stores(peer, len),
            false => self.short_stores(peer, len),
        }
    }

    /// The kind of stores for a body that string moves could write.
    #[inline(never)]
    fn long_stores(&mut self, peer: usize, len: usize) -> BodyStores {
        let stores = self.short_stores(peer, len);
        match self.outbound.get_mut(peer) {
            Some(Some(to)) => stores.long(to.moves.next(len)),
            _ => stores,
        }
    }

    /// Takes the nanoseconds in which a body to `peer` was put, which a comparison needs.
    #[cold]
    pub(crate) fn compared(&mut self, peer: usize, len: usize, ns: u64) {
        if let Some(to) = self.outbound(peer) {
            to.moves.compared(len, ns);
        }
    }

    /// The kind of stores for a body, in which string moves write long bodies.
    #[inline]
    fn short_stores(&mut self, peer: usize, len: usize) -> BodyStores {
        let Some(Some(to)) = self.outbound.get_mut(peer) else {
            let first = CacheDistance::new(self.cores.near, self.cores.non_temporal_from);
            return first.stores();
        };
        if len >= ASKED {
            to.reach.check(|| to.ring.tail_has_changed());
        }
        let non_temporal_from = to.reach.non_temporal_from();
        let stores = to.reach.stores();
        match len >= non_temporal_from && to.ring.has_cell(len) {
            true => stores.through_cache(),
            false => stores,
        }
    }

    /// True if the cores of this rank and `peer` share a cache, so that long messages move fastest
    /// through the ring.
    pub(crate) fn is_near(&self, peer: usize) -> bool {
        match self.outbound.get(peer) {
            Some(Some(to)) => to.reach.is_near(),
            _ => self.cores.near,
        }
    }

    /// Reads the piece counter of the cooperative copy `generation`, which `peer` has just opened,
    /// and times the read every few calls to measure the cache distance to the peer.
    pub(crate) fn joins(&mut self, peer: usize, generation: u32) {
        if let Some(to) = self.outbound(peer) {
            let counter = to.ring.memory().piece_counter();
            to.reach.check_for_long(|| counter.is_of(generation));
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
                let board = self.segment.board(place);
                ring.preference()
                    .set_readable(self.single_copy.works(peer, board));
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
        self.outbound[peer] = Some(Box::new(Outbound {
            ring,
            bell,
            reach,
            moves: StringMoves::new(),
        }));
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
        spend(Primitive::Poll);
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
                    // The ring moves to the front; the last hot ring becomes cold.
                    self.inbound[..=at].rotate_right(1);
                }
            }
        }
        Ok(packets)
    }
}

impl Shm {
    /// Consumes the first packet of the first hot ring that is not empty, if `wanted` accepts its
    /// head.
    #[inline(always)]
    pub(crate) fn get_first_if<T>(
        &mut self,
        wanted: impl FnOnce(Head) -> bool,
        take: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<First<T>> {
        spend(Primitive::Poll);
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

    /// True if a poll would find nothing. False also if there are cold rings, which this does not
    /// check.
    #[inline(always)]
    pub(crate) fn has_nothing(&self) -> bool {
        spend(Primitive::Poll);
        self.board.arrivals.load(Ordering::Acquire) == self.arrivals_seen
            && self.inbound.len() <= HOT
            && self.inbound.iter().all(|inbound| inbound.ring.is_empty())
    }

    /// Index of the cold ring to be polled now; the next call returns the one behind it.
    fn next_cold(&mut self) -> usize {
        let at = self.next_cold;
        let next = at + 1;
        self.next_cold = if next < self.inbound.len() { next } else { HOT };
        at
    }
}

#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
