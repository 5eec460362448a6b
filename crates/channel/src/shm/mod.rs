//! The channel of ranks that share memory.
//!
//! Each ordered pair has a ring of its own, opened by the sender with its first packet: it marks itself among the
//! receiver's callers and counts up the receiver's arrivals, the one word that an idle receiver looks at besides the
//! rings of those who talk to it. Of these, the most recent talkers are looked at every time and the rest in turn, so
//! a look costs the same however many have fallen silent. Peers are named by their ranks in the job; the memory knows
//! places only, of the ranks that share it.

mod affinity;
mod cache_distance;
mod collective_buffer;
mod local_ranks;
mod segment;
mod single_copy;

pub use collective_buffer::{BODY, CollectiveBuffer, LANES, SLOTS};
pub use local_ranks::LocalRanks;
pub use segment::{Bell, Segment, Shape};

use crate::piece_counter::PieceCounter;
use crate::ring::{Bad, Receiver, Sender};
use crate::sync::Ordering;
use crate::{Channel, CopyResult, End, Error, Fault, First, Head, More, Put, Result};
use affinity::CoreAssignment;
use cache_distance::{ASKED, CacheDistance};
use segment::{BoardRef, SharedRing};
use single_copy::SingleCopy;

/// Rings looked at in every `get`.
const HOT: usize = 4;
/// Packets taken from one ring before the next gets its turn.
const BATCH: usize = 32;
/// What whoever names a peer has made sure of.
const HERE: &str = "a peer that shares memory";

pub struct Shm {
    rank: usize,
    /// Where in the memory this rank is, and where its peers are.
    place: usize,
    places: LocalRanks,
    segment: Segment,
    board: BoardRef,
    outbound: Box<Senders>,
    inbound: Vec<Inbound>,
    /// Which of the rings beyond the hot ones is looked at next.
    next_cold: usize,
    arrivals_seen: u32,
    known_callers: Vec<u64>,
    single_copy: SingleCopy,
    cores: Cores,
    crowd: CoreAssignment,
}

/// How the cores of ranks that share memory lie, as far as is known before they talk.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// They share a cache.
    pub near: bool,
    /// If they do not, bodies go past the cache from this size on.
    pub past_cache: usize,
}

/// The ways to all peers, by their ranks.
type Senders = [Option<Box<Outbound>>];

pub(crate) struct Outbound {
    ring: Sender<SharedRing>,
    bell: Bell,
    reach: CacheDistance,
}

impl Outbound {
    #[inline(always)]
    pub(crate) fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) -> Put {
        let put = self.ring.put(head, len, fill);
        if put != Put::Full {
            self.bell.ring();
        }
        put
    }
}

struct Inbound {
    peer: usize,
    ring: Receiver<SharedRing>,
    bell: Bell,
}

impl Shm {
    /// Rank `rank` of the job joins those of `places`.
    pub fn attach(
        segment: Segment,
        rank: usize,
        places: LocalRanks,
        single_copy: bool,
        cores: Cores,
    ) -> Result<Shm> {
        let here = places.here();
        let Some(place) = places.of(rank).filter(|_| here == segment.ranks) else {
            return Err(Fault::Mismatch(format!(
                "rank {rank} should be one of {here} that share memory, and the memory is for {}: what the launcher says and \
                 the memory do not belong together",
                segment.ranks
            ))
            .into());
        };
        crate::sync::join_heavy_fences();
        let single_copy = SingleCopy::new(&segment, place, places.job(), single_copy);
        Ok(Shm {
            rank,
            place,
            board: segment.board_ref(place),
            outbound: (0..places.job()).map(|_| None).collect(),
            inbound: Vec::new(),
            next_cold: HOT,
            arrivals_seen: 0,
            known_callers: vec![0; segment.ranks.div_ceil(64)],
            single_copy,
            cores,
            crowd: CoreAssignment::join(&segment.board(place).affinity, here),
            segment,
            places,
        })
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Who shares this memory.
    pub fn places(&self) -> &LocalRanks {
        &self.places
    }

    /// Where this rank is in it.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Is there a core for each rank here? None: not all of them have shown yet which they may use.
    pub fn has_core_each(&mut self) -> Option<bool> {
        let segment = &self.segment;
        self.crowd
            .has_core_each(|place| &segment.board(place).affinity)
    }

    /// Does this rank share memory with that one?
    #[inline(always)]
    pub fn reaches(&self, peer: usize) -> bool {
        self.places.of(peer).is_some()
    }

    /// The way to a peer, once there is one.
    #[inline(always)]
    pub(crate) fn outbound(&mut self, peer: usize) -> Option<&mut Outbound> {
        self.outbound.get_mut(peer)?.as_deref_mut()
    }

    /// How near a peer is to whom a body of so many bytes is about to go.
    #[inline]
    fn reach(&mut self, peer: usize, len: usize) -> Option<&CacheDistance> {
        let to = self.outbound.get_mut(peer)?.as_deref_mut()?;
        if len >= ASKED {
            to.reach.look(|| to.ring.tail_has_changed());
        }
        Some(&to.reach)
    }

    /// From what size on the next body to a peer, which has so many bytes, is best written past the cache.
    #[inline]
    pub(crate) fn past_cache(&mut self, peer: usize, len: usize) -> usize {
        let first = CacheDistance::new(self.cores.near, self.cores.past_cache);
        self.reach(peer, len).unwrap_or(&first).past_cache()
    }

    /// Is the next long message to a peer best moved through the ring, as among cores that are near?
    pub(crate) fn offers_near(&self, peer: usize) -> bool {
        match self.outbound.get(peer) {
            Some(Some(to)) => to.reach.is_near(),
            _ => self.cores.near,
        }
    }

    /// A peer has just opened the share of a long message that goes to it, with this generation.
    pub(crate) fn has_opened(&mut self, peer: usize, generation: u32) {
        if let Some(to) = self.outbound(peer) {
            let share = to.ring.memory().share();
            to.reach.look_for_long(|| share.is_of(generation));
        }
    }

    /// This rank's own doorbell, to sleep on.
    pub fn bell(&self) -> Bell {
        self.segment.bell(self.place)
    }

    /// Nothing has arrived at this moment.
    pub fn is_quiet(&mut self) -> bool {
        self.board.arrivals.load(Ordering::Acquire) == self.arrivals_seen
            && self.inbound.iter().all(|inbound| inbound.ring.is_empty())
    }

    /// Finds the peers that have opened a ring to this rank since it last looked.
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
                let Some(peer) = self.places.rank(place) else {
                    return Err(Fault::Broken {
                        peer: place,
                        what: "it calls itself a rank beyond the last".into(),
                    }
                    .into());
                };
                let ring = Receiver::new(self.segment.ring(place, self.place)?);
                self.inbound.push(Inbound {
                    peer,
                    ring,
                    bell: self.segment.bell(place),
                });
            }
        }
        Ok(())
    }
}

/// Opens the ring from one place to another.
#[cold]
#[inline(never)]
fn connect(
    segment: &Segment,
    from: usize,
    to: Option<usize>,
    cores: Cores,
) -> Result<Box<Outbound>> {
    let to = to.expect(HERE);
    let ring = Sender::new(segment.ring(from, to)?);
    segment.callers(to)[from / 64].fetch_or(1 << (from % 64), Ordering::Release);
    let arrivals = &segment.board(to).arrivals;
    arrivals.fetch_add(1, Ordering::AcqRel);
    let bell = segment.bell(to);
    let reach = CacheDistance::new(cores.near, cores.past_cache);
    Ok(Box::new(Outbound { ring, bell, reach }))
}

impl Channel for Shm {
    #[inline]
    fn max_body(&self, _peer: usize) -> usize {
        self.segment.shape.arenas().max_body()
    }

    #[inline(always)]
    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        let to = match &mut self.outbound[peer] {
            Some(to) => to,
            none => none.insert(connect(
                &self.segment,
                self.place,
                self.places.of(peer),
                self.cores,
            )?),
        };
        Ok(to.put(head, len, fill))
    }

    #[inline(always)]
    fn get(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
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
                    // The talker moves in front; the one it displaces becomes the last of the hot ones, then cold.
                    self.inbound[..=at].rotate_right(1);
                }
            }
        }
        Ok(packets)
    }

    fn read(&mut self, peer: usize, address: u64, into: &mut [u8]) -> Result<CopyResult> {
        let board = self.segment.board(self.places.of(peer).expect(HERE));
        self.single_copy.read(peer, board, address, into)
    }

    fn write(&mut self, peer: usize, address: u64, from: &[u8]) -> Result<CopyResult> {
        let board = self.segment.board(self.places.of(peer).expect(HERE));
        self.single_copy.write(peer, board, address, from)
    }

    /// It lies in the ring by which the message's sender sends.
    fn share(&self, peer: usize, end: End) -> Option<&PieceCounter> {
        match end {
            End::Sender => Some(self.outbound[peer].as_ref()?.ring.memory().share()),
            End::Receiver => {
                let inbound = self.inbound.iter().find(|inbound| inbound.peer == peer)?;
                Some(inbound.ring.memory().share())
            }
        }
    }

    fn can_read(&mut self, peer: usize) -> bool {
        let board = self.segment.board(self.places.of(peer).expect(HERE));
        self.single_copy.works(peer, board)
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

    /// A look at what `get` looks at every time; false if there is more to look at in turn.
    #[inline(always)]
    pub(crate) fn has_nothing(&self) -> bool {
        self.board.arrivals.load(Ordering::Acquire) == self.arrivals_seen
            && self.inbound.len() <= HOT
            && self.inbound.iter().all(|inbound| inbound.ring.is_empty())
    }

    /// Which of the rings beyond the hot ones has its turn.
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

impl Inbound {
    /// Hands on what is in the ring, up to a batch. Inlined, and the handler in it, since it has one caller.
    #[inline(always)]
    fn drain(
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

    /// Hands on the next packet, which must be there.
    #[inline(always)]
    fn take<T>(
        &mut self,
        outbound: &mut Senders,
        handler: impl FnOnce(Head, &[u8]) -> T,
    ) -> Result<T> {
        let hear = |theirs, ours| {
            if let Some(back) = &mut outbound[self.peer] {
                back.ring.hear(theirs, ours);
            }
        };
        match self.ring.take(hear, handler) {
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
    Fault::Broken { peer, what }.into()
}

#[cfg(test)]
mod tests;
