//! All transports of one rank behind one interface, and the choice among them for each peer:
//! loopback for the rank itself, shared memory for ranks of the same host, RDMA for all others.

use std::ops::Range;

use datatype::Buffer;

use crate::loopback::Loopback;
use crate::rdma::Rdma;
use crate::shm::Shm;
use crate::zero_copy::Origin;
use crate::{
    Capabilities, Done, Exposed, Exposure, Fault, Head, More, NotifiedWrite, Put, RemoteKey,
    Result, Transfer, Transport, ZeroCopy,
};

/// The transports of one rank.
pub struct Router {
    pub(crate) rank: usize,
    pub(crate) loopback: Loopback,
    pub(crate) shm: Option<Shm>,
    pub(crate) rdma: Option<Box<Rdma>>,
    pace: DevicePace,
    /// The rank has left its modelled machine.
    pub(crate) left: bool,
    /// Every rank of this host has a core and may occupy it, so two ranks may copy one message
    /// together.
    pub(crate) may_spin: bool,
}

/// The transport that reaches a peer.
pub(crate) enum Via<'a> {
    Loopback(&'a mut Loopback),
    Shm(&'a mut Shm),
    Rdma(&'a mut Rdma),
}

impl Router {
    /// The router of a rank without peers.
    pub fn alone() -> Router {
        Router::of(0, None, None)
    }

    /// The router of world rank `rank` over these transports.
    pub(crate) fn of(rank: usize, shm: Option<Shm>, rdma: Option<Rdma>) -> Router {
        Router {
            rank,
            loopback: Loopback::of(rank),
            shm,
            pace: DevicePace {
                is_costly: rdma.as_ref().is_some_and(Rdma::needs_polls),
                since_shm: u32::MAX,
                polls: 0,
            },
            rdma: rdma.map(Box::new),
            left: false,
            may_spin: false,
        }
    }

    pub(crate) fn via(&mut self, peer: usize) -> Via<'_> {
        let rank = self.rank;
        if let Some(shm) = self
            .shm
            .as_mut()
            .filter(|shm| peer != rank && shm.reaches(peer))
        {
            return Via::Shm(shm);
        }
        match &mut self.rdma {
            Some(rdma) if peer != rank => Via::Rdma(rdma),
            _ => Via::Loopback(&mut self.loopback),
        }
    }

    /// The transport of a peer that an exposure or a key belongs to; the rank may have left its
    /// machine since.
    fn notified(&mut self, peer: usize) -> Result<&mut Rdma> {
        match self.via(peer) {
            Via::Rdma(rdma) => Ok(rdma),
            _ => {
                let what = "a notified write to a rank that no device reaches".into();
                Err(Fault::Broken { peer, what }.into())
            }
        }
    }

    #[inline]
    pub(crate) fn shm_to(&self, peer: usize) -> Option<&Shm> {
        self.shm
            .as_ref()
            .filter(|shm| peer != self.rank && shm.reaches(peer))
    }

    #[inline]
    pub(crate) fn shm_to_mut(&mut self, peer: usize) -> Option<&mut Shm> {
        let rank = self.rank;
        self.shm
            .as_mut()
            .filter(|shm| peer != rank && shm.reaches(peer))
    }

    /// Gives up a peer that cannot be reached any more: nothing is exchanged with it from now on.
    pub fn lose(&mut self, peer: usize) {
        if let Via::Rdma(rdma) = self.via(peer) {
            rdma.give_up_peer(peer);
        }
    }

    /// This rank waits for a peer, and has nothing to send to it: a dead path to it is to be
    /// noticed all the same.
    pub fn contact(&mut self, peer: usize) -> Result<()> {
        match self.via(peer) {
            Via::Rdma(rdma) => rdma.contact(peer),
            Via::Loopback(_) | Via::Shm(_) => Ok(()),
        }
    }

    /// Judges peers that no path reaches. An error: one is lost.
    pub(crate) fn tend_last_paths(&mut self) -> Result<()> {
        match &mut self.rdma {
            Some(rdma) => rdma.tend_last_paths(),
            None => Ok(()),
        }
    }

    /// Leaves the modelled machine: this rank exchanges no more messages.
    pub fn leave(&mut self) {
        self.left |= self.rdma.take().is_some();
    }

    #[cold]
    fn check_not_left(&self) -> Result<()> {
        match self.left {
            true => Err(Fault::Deadlock.into()),
            false => Ok(()),
        }
    }

    /// To this rank itself, by RDMA, or the first packet to a peer. The head comes word by word, so
    /// that a packet on the short path needs no memory for it.
    #[cold]
    #[inline(never)]
    fn put_elsewhere(
        &mut self,
        peer: usize,
        first: u64,
        second: u64,
        third: u64,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        let head = [first, second, third];
        if let Some(shm) = self.shm_to_mut(peer) {
            return shm.put(peer, head, len, fill);
        }
        match &mut self.rdma {
            Some(rdma) if peer != self.rank => rdma.put(peer, head, len, fill),
            _ => {
                self.check_not_left()?;
                self.loopback.put(peer, head, len, fill)
            }
        }
    }

    /// Polls RDMA, and shared memory beside it.
    #[inline(never)]
    fn poll_devices(
        &mut self,
        mut handler: impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let Some(rdma) = &mut self.rdma else {
            return self.check_not_left().map(|()| 0);
        };
        let mut packets = 0;
        if self.pace.polls_now() || rdma.must_poll() {
            packets = Transport::poll(&mut **rdma, &mut handler)?;
        }
        if let Some(shm) = self.shm.as_mut().filter(|shm| !shm.has_nothing()) {
            let moved = shm.poll(&mut handler)?;
            if moved > 0 {
                self.pace.since_shm = 0;
            }
            packets += moved;
        }
        Ok(packets)
    }
}

/// The pace of polls of devices whose poll is a system call, which takes longer than a packet in
/// shared memory: while those come, devices are polled seldom.
struct DevicePace {
    /// A poll of the devices is a system call.
    is_costly: bool,
    /// Polls since the last packet in shared memory.
    since_shm: u32,
    polls: u32,
}

/// Polls without a packet in shared memory after which devices are polled each time.
const SHM_MOVES: u32 = 1024;
/// Polls from one of the devices to the next, while packets come in shared memory.
const SELDOM: u32 = 128;

impl DevicePace {
    /// The devices are to be polled now.
    #[inline]
    fn polls_now(&mut self) -> bool {
        if !self.is_costly || self.since_shm >= SHM_MOVES {
            return true;
        }
        self.since_shm += 1;
        self.polls = self.polls.wrapping_add(1);
        self.polls.is_multiple_of(SELDOM)
    }
}

impl Transport for Router {
    #[inline]
    fn longest_packet(&self, peer: usize) -> usize {
        match (self.shm_to(peer), &self.rdma) {
            (Some(shm), _) => shm.longest_packet(peer),
            (None, Some(rdma)) if peer != self.rank => rdma.longest_packet(peer),
            _ => self.loopback.longest_packet(peer),
        }
    }

    fn capabilities(&mut self, peer: usize) -> Capabilities {
        let may_spin = self.may_spin;
        let capabilities = match self.via(peer) {
            Via::Loopback(loopback) => loopback.capabilities(peer),
            Via::Shm(shm) => shm.capabilities(peer),
            Via::Rdma(rdma) => rdma.capabilities(peer),
        };
        Capabilities {
            cooperative: capabilities.cooperative && may_spin,
            ..capabilities
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
        if let Some(shm) = &mut self.shm
            && let Some(outbound) = shm.outbound(peer)
        {
            return Ok(outbound.put(head, len, fill));
        }
        let [first, second, third] = head;
        self.put_elsewhere(peer, first, second, third, len, fill)
    }

    #[inline(always)]
    fn poll(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        let mut packets = self.loopback.poll(&mut handler)?;
        packets += match &mut self.shm {
            Some(shm) if self.rdma.is_none() => shm.poll(handler)?,
            _ => self.poll_devices(handler)?,
        };
        Ok(packets)
    }

    #[inline]
    fn uncork(&mut self) -> Result<()> {
        self.rdma.as_mut().map_or(Ok(()), |rdma| rdma.uncork())
    }

    fn close(&mut self) -> Result<bool> {
        if let Some(shm) = &mut self.shm {
            shm.close()?;
        }
        self.rdma.as_mut().map_or(Ok(true), |rdma| rdma.close())
    }
}

impl ZeroCopy for Router {
    fn expose(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>> {
        match self.via(peer) {
            Via::Loopback(loopback) => loopback.expose(peer, buffer, len, exposed),
            Via::Shm(shm) => shm.expose(peer, buffer, len, exposed),
            Via::Rdma(rdma) => rdma.expose(peer, buffer, len, exposed),
        }
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        match exposure.origin {
            Origin::Loopback => self.loopback.retract(exposure),
            Origin::Shm => Ok(()),
            Origin::Rdma => match &mut self.rdma {
                Some(rdma) => rdma.retract(exposure),
                // The rank has left its machine, and its registrations with it.
                None => Ok(()),
            },
        }
    }

    fn read(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        token: Head,
    ) -> Result<Transfer> {
        match self.via(peer) {
            Via::Loopback(loopback) => loopback.read(peer, from, to, range, token),
            Via::Shm(shm) => shm.read(peer, from, to, range, token),
            Via::Rdma(rdma) => rdma.read(peer, from, to, range, token),
        }
    }

    fn write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        token: Head,
    ) -> Result<Transfer> {
        match self.via(peer) {
            Via::Loopback(loopback) => loopback.write(peer, from, to, range, token),
            Via::Shm(shm) => shm.write(peer, from, to, range, token),
            Via::Rdma(rdma) => rdma.write(peer, from, to, range, token),
        }
    }

    #[inline]
    fn done(&mut self) -> Option<Done> {
        self.rdma.as_mut()?.done()
    }
}

impl NotifiedWrite for Router {
    fn expect(&mut self, peer: usize, token: Head) -> Result<Option<u32>> {
        self.notified(peer)?.expect(peer, token)
    }

    fn forget(&mut self, peer: usize, notice: u32) {
        if let Via::Rdma(rdma) = self.via(peer) {
            rdma.forget(peer, notice);
        }
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
        self.notified(peer)?
            .write_notified(peer, from, to, len, notice, token)
    }

    fn packets_sent(&self, peer: usize) -> u64 {
        let rdma = self.rdma.as_ref();
        rdma.map_or(0, |rdma| rdma.packets_sent(peer))
    }

    fn packets_received(&self, peer: usize) -> u64 {
        let rdma = self.rdma.as_ref();
        rdma.map_or(0, |rdma| rdma.packets_received(peer))
    }

    fn is_amid_packet(&self, peer: usize) -> bool {
        let rdma = self.rdma.as_ref();
        rdma.is_some_and(|rdma| rdma.is_amid_packet(peer))
    }
}
