//! The transports of a rank, and two macros that call them: [`via!`] calls the one that reaches a
//! peer, [`each!`] calls all. Every function of the router uses one of them, or
//! [`Transports::poll`]. A new transport gets a field and a variant; code of this file that does
//! not handle it does not compile.

use std::sync::Arc;

use datatype::local_work::Meter;

use crate::device_pace::DevicePace;
use crate::loopback::Loopback;
use crate::rdma::Rdma;
use crate::shm::Shm;
use crate::{Fault, Head, More, Result, Transport};

/// All transports of one rank.
pub(crate) struct Transports {
    pub(crate) loopback: Loopback,
    pub(crate) shm: Option<Shm>,
    pub(crate) rdma: Option<Box<Rdma>>,
}

/// The transport that reaches a peer: loopback, shared memory or RDMA.
pub(crate) enum Via<L, S, R> {
    Loopback(L),
    Shm(S),
    Rdma(R),
}

/// The transport that reaches a peer, by shared reference.
pub(crate) type ViaRef<'a> = Via<&'a Loopback, &'a Shm, &'a Rdma>;
/// The transport that reaches a peer, by mutable reference.
pub(crate) type ViaMut<'a> = Via<&'a mut Loopback, &'a mut Shm, &'a mut Rdma>;

/// Evaluates an expression with the transport that reaches a peer, whichever it is.
macro_rules! via {
    ($via:expr, $transport:ident => $do:expr) => {
        match $via {
            $crate::transports::Via::Loopback($transport) => $do,
            $crate::transports::Via::Shm($transport) => $do,
            $crate::transports::Via::Rdma($transport) => $do,
        }
    };
}

/// Executes statements with each transport of a rank in sequence.
macro_rules! each {
    ($transports:expr, $transport:ident => $do:expr) => {{
        let $crate::transports::Transports {
            loopback,
            shm,
            rdma,
        } = $transports;
        {
            let $transport = loopback;
            $do;
        }
        if let Some($transport) = shm {
            $do;
        }
        if let Some($transport) = rdma {
            $do;
        }
    }};
}

pub(crate) use {each, via};

impl<L, S, R> Via<L, S, R> {
    /// The RDMA transport, if it reaches the peer: it has rails, and notifies peers of writes.
    pub(crate) fn rdma(self) -> Option<R> {
        match self {
            Via::Rdma(rdma) => Some(rdma),
            Via::Loopback(_) | Via::Shm(_) => None,
        }
    }
}

impl Transports {
    /// The transports of world rank `rank`.
    pub(crate) fn new(rank: usize, shm: Option<Shm>, rdma: Option<Rdma>) -> Transports {
        Transports {
            loopback: Loopback::of(rank),
            shm,
            rdma: rdma.map(Box::new),
        }
    }

    /// These transports, with copies from the rank to itself charged at `meter`.
    pub(crate) fn metered(mut self, meter: Option<Arc<Meter>>) -> Transports {
        self.loopback = self.loopback.metered(meter);
        self
    }

    /// Polls all transports that are due. `left`: the rank has left its modelled machine.
    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        pace: &mut DevicePace,
        left: bool,
        mut handler: impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let packets = self.loopback.poll(&mut handler)?;
        Ok(packets
            + match self {
                Transports {
                    loopback: _,
                    shm: Some(shm),
                    rdma: None,
                } => shm.poll(handler)?,
                _ => self.poll_devices(pace, left, handler)?,
            })
    }

    /// Polls the devices if their poll is due, and shared memory if there is any.
    #[inline(never)]
    fn poll_devices(
        &mut self,
        pace: &mut DevicePace,
        left: bool,
        mut handler: impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let Transports {
            loopback: _,
            shm,
            rdma,
        } = self;
        let Some(rdma) = rdma else {
            return match left {
                true => Err(Fault::Deadlock.into()),
                false => Ok(0),
            };
        };
        let mut packets = 0;
        if pace.polls_now() || rdma.must_poll() {
            packets = Transport::poll(&mut **rdma, &mut handler)?;
        }
        if let Some(shm) = shm.as_mut().filter(|shm| !shm.has_nothing()) {
            let moved = shm.poll(&mut handler)?;
            if moved > 0 {
                pace.shm_moved();
            }
            packets += moved;
        }
        Ok(packets)
    }

    /// The transport that reaches `peer` from rank `rank`.
    #[inline]
    pub(crate) fn via(&mut self, rank: usize, peer: usize) -> ViaMut<'_> {
        let Transports {
            loopback,
            shm,
            rdma,
        } = self;
        match (shm, rdma) {
            _ if peer == rank => Via::Loopback(loopback),
            (Some(shm), _) if shm.reaches(peer) => Via::Shm(shm),
            (_, Some(rdma)) => Via::Rdma(rdma),
            _ => Via::Loopback(loopback),
        }
    }

    /// The transport that reaches `peer` from rank `rank`, by shared reference.
    #[inline]
    pub(crate) fn via_ref(&self, rank: usize, peer: usize) -> ViaRef<'_> {
        let Transports {
            loopback,
            shm,
            rdma,
        } = self;
        match (shm, rdma) {
            _ if peer == rank => Via::Loopback(loopback),
            (Some(shm), _) if shm.reaches(peer) => Via::Shm(shm),
            (_, Some(rdma)) => Via::Rdma(rdma),
            _ => Via::Loopback(loopback),
        }
    }
}
