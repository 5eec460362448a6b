//! All transports of one rank behind one interface, and the choice of one for each peer: loopback
//! for the rank itself, shared memory for ranks of the same host, RDMA for all others.

use std::ops::Range;

use datatype::Buffer;
use device::Node;

use crate::device_pace::DevicePace;
use crate::rdma::{self, Rdma};
use crate::shm::Shm;
use crate::transports::{Transports, Via, ViaMut, ViaRef, each, via};
use crate::zero_copy::Origin;
use crate::{
    Capabilities, Done, Exposed, Exposure, Family, Fault, Head, More, NotifiedWrite, Put,
    RemoteKey, Result, Token, Transfer, Transport, ZeroCopy,
};

/// The transports of one rank, and the choice among them for each peer.
pub struct Router {
    pub(crate) rank: usize,
    pub(crate) transports: Transports,
    pace: DevicePace,
    /// True if the rank has left the modelled machine on which it ran.
    pub(crate) left: bool,
    /// True if every rank of this host has a core and may occupy it while it waits, so that two
    /// ranks may copy one message together.
    pub(crate) may_spin: bool,
}

impl Router {
    /// The router of a rank without peers.
    pub fn alone() -> Router {
        Router::of(0, Transports::new(0, None, None))
    }

    /// The router of world rank `rank` over these transports.
    pub(crate) fn of(rank: usize, transports: Transports) -> Router {
        let rdma = transports.rdma.as_deref();
        let pace = DevicePace::new(rdma.is_some_and(Rdma::needs_polls));
        Router {
            rank,
            pace,
            transports,
            left: false,
            may_spin: false,
        }
    }

    /// The transport that reaches `peer`.
    #[inline]
    pub(crate) fn via(&mut self, peer: usize) -> ViaMut<'_> {
        self.transports.via(self.rank, peer)
    }

    /// The transport that reaches `peer`, by shared reference.
    #[inline]
    pub(crate) fn via_ref(&self, peer: usize) -> ViaRef<'_> {
        self.transports.via_ref(self.rank, peer)
    }

    /// The RDMA transport to a peer, which can notify the peer of writes.
    fn notified(&mut self, peer: usize) -> Result<&mut Rdma> {
        self.via(peer).rdma().ok_or_else(|| {
            let what = "a notified write to a rank that no device reaches".into();
            Fault::Broken { peer, what }.into()
        })
    }

    /// As [`notified`](Router::notified), but a shared reference; `None` if no device reaches the
    /// peer.
    fn notified_ref(&self, peer: usize) -> Option<&Rdma> {
        self.via_ref(peer).rdma()
    }

    #[inline]
    pub(crate) fn shm_to(&self, peer: usize) -> Option<&Shm> {
        self.transports
            .shm
            .as_ref()
            .filter(|shm| peer != self.rank && shm.reaches(peer))
    }

    #[inline]
    pub(crate) fn shm_to_mut(&mut self, peer: usize) -> Option<&mut Shm> {
        let rank = self.rank;
        self.transports
            .shm
            .as_mut()
            .filter(|shm| peer != rank && shm.reaches(peer))
    }

    /// Adds peers up to world rank `ranks` - 1, which have started after this rank. Devices reach
    /// them, because shared memory has room only for the ranks that existed when it was made. A
    /// rank without devices gets those of `node`; the result is then true, and its waiter must be
    /// informed by [`Waiter::add_devices`](crate::Waiter::add_devices).
    ///
    /// # Errors
    /// This rank has no device, or its machine has no room for the new ranks.
    pub fn add_peers(
        &mut self,
        ranks: usize,
        node: Option<Box<dyn Node>>,
        config: rdma::Config,
    ) -> Result<bool> {
        if let Some(rdma) = &mut self.transports.rdma {
            return rdma.add_peers(ranks).map(|()| false);
        }
        let Some(node) = node.filter(|_| !self.left) else {
            let what = "there are new ranks, and this one has no device to reach them by";
            return Err(Fault::Mismatch(what.into()).into());
        };
        let rdma = Rdma::attach(node, self.rank, ranks, config)?;
        self.pace = DevicePace::new(rdma.needs_polls());
        self.transports.rdma = Some(Box::new(rdma));
        Ok(true)
    }

    /// Gives up a peer that cannot be reached any more: nothing is exchanged with it from now on.
    pub fn lose(&mut self, peer: usize) {
        via!(self.via(peer), transport => transport.give_up(peer));
    }

    /// Makes this rank detect a dead path to a peer that it waits for, although it has nothing to
    /// send.
    pub fn contact(&mut self, peer: usize) -> Result<()> {
        via!(self.via(peer), transport => Transport::contact(transport, peer))
    }

    /// Leaves the modelled machine: this rank exchanges no more messages by devices, or with
    /// itself.
    pub fn leave(&mut self) {
        self.left |= self.transports.rdma.take().is_some();
    }

    /// Puts a packet to this rank itself, by RDMA, or the first one to a peer in shared memory. The
    /// head comes as three integers, so that a packet on the short path needs no memory for it.
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
        let left = self.left;
        let via = self.via(peer);
        if left && matches!(via, Via::Loopback(_)) {
            return Err(Fault::Deadlock.into());
        }
        let head = [first, second, third];
        via!(via, transport => transport.put(peer, head, len, fill))
    }
}

impl Transport for Router {
    #[inline]
    fn longest_packet(&self, peer: usize) -> usize {
        via!(self.via_ref(peer), transport => transport.longest_packet(peer))
    }

    fn piece(&self, peer: usize) -> usize {
        via!(self.via_ref(peer), transport => transport.piece(peer))
    }

    fn capabilities(&mut self, peer: usize) -> Capabilities {
        let may_spin = self.may_spin;
        let capabilities = via!(self.via(peer), transport => transport.capabilities(peer));
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
        if let Some(shm) = &mut self.transports.shm
            && let Some(outbound) = shm.outbound(peer)
        {
            return Ok(outbound.put(head, len, fill));
        }
        let [first, second, third] = head;
        self.put_elsewhere(peer, first, second, third, len, fill)
    }

    #[inline(always)]
    fn poll(&mut self, handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        self.transports.poll(&mut self.pace, self.left, handler)
    }

    #[inline]
    fn uncork(&mut self) -> Result<()> {
        each!(&mut self.transports, transport => transport.uncork()?);
        Ok(())
    }

    fn close(&mut self) -> Result<bool> {
        let mut is_closed = true;
        each!(&mut self.transports, transport => is_closed &= transport.close()?);
        Ok(is_closed)
    }
}

impl ZeroCopy for Router {
    fn expose(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
        family: Family,
    ) -> Result<Option<Exposure>> {
        via!(self.via(peer), transport => transport.expose(peer, buffer, len, exposed, family))
    }

    fn prepare(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>> {
        via!(self.via(peer), transport => transport.prepare(peer, buffer, len, exposed))
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        match exposure.origin {
            Origin::Loopback => self.transports.loopback.retract(exposure),
            Origin::Shm => self
                .transports
                .shm
                .as_mut()
                .map_or(Ok(()), |shm| shm.retract(exposure)),
            Origin::Rdma => match &mut self.transports.rdma {
                Some(rdma) => rdma.retract(exposure),
                // The rank has left its machine, which has ended its registrations.
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
        token: Token,
    ) -> Result<Transfer> {
        via!(self.via(peer), transport => transport.read(peer, from, to, range, token))
    }

    fn write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        token: Token,
    ) -> Result<Transfer> {
        via!(self.via(peer), transport => transport.write(peer, from, to, range, token))
    }

    fn can_start(&self, peer: usize) -> bool {
        via!(self.via_ref(peer), transport => transport.can_start(peer))
    }

    #[inline]
    fn done(&mut self, family: Family) -> Option<Done> {
        each!(&mut self.transports, transport => {
            if let Some(done) = transport.done(family) {
                return Some(done);
            }
        });
        None
    }
}

impl NotifiedWrite for Router {
    fn expect(&mut self, peer: usize, token: Token) -> Result<Option<u32>> {
        self.notified(peer)?.expect(peer, token)
    }

    fn forget(&mut self, peer: usize, notice: u32) {
        // The rank may have left its machine after it expected the notice.
        if let Ok(rdma) = self.notified(peer) {
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
        token: Token,
    ) -> Result<Transfer> {
        self.notified(peer)?
            .write_notified(peer, from, to, len, notice, token)
    }

    fn packets_sent(&self, peer: usize) -> u64 {
        let rdma = self.notified_ref(peer);
        rdma.map_or(0, |rdma| rdma.packets_sent(peer))
    }

    fn packets_received(&self, peer: usize) -> u64 {
        let rdma = self.notified_ref(peer);
        rdma.map_or(0, |rdma| rdma.packets_received(peer))
    }

    fn is_amid_packet(&self, peer: usize) -> bool {
        let rdma = self.notified_ref(peer);
        rdma.is_some_and(|rdma| rdma.is_amid_packet(peer))
    }
}
