//! Fetches: announced messages that have matched a receive, and that this rank moves into its
//! buffer.

use std::collections::VecDeque;

use channel::{Exposure, Router, ZeroCopy};

use super::cooperative_copy::CooperativeCopy;
use super::copy_pace::CopyPace;
use super::learned_costs::Measured;
use crate::Result;
use crate::packet::Offer;
use crate::request::RequestId;

/// The announced messages that have matched a receive and are to be fetched, in order.
#[derive(Default)]
pub(super) struct Fetches {
    pub(super) queue: VecDeque<Fetch>,
    /// The pace of copies that this rank makes without the peer.
    pub(super) pace: CopyPace,
}

/// The fetch of an announced message that has matched a receive.
pub(super) struct Fetch {
    pub(super) peer: usize,
    pub(super) receive: RequestId,
    /// The number of the sender's request.
    pub(super) sender: u32,
    pub(super) offer: Offer,
    pub(super) method: Method,
    /// The measurement of the fetch, if this rank learns costs from it.
    pub(super) measured: Option<Measured>,
}

/// The method by which a fetch moves a message, with its progress.
pub(super) enum Method {
    Undecided,
    /// This rank copies the message in steps into the exposed buffer.
    Steps(Exposure),
    /// Both ranks copy, in a cooperative copy.
    Together(CooperativeCopy),
}

impl Fetch {
    /// Ends other ranks' access to the receive's buffer, before the receive completes.
    pub(super) fn end_access(&mut self, router: &mut Router) -> Result<()> {
        let exposure = match std::mem::replace(&mut self.method, Method::Undecided) {
            Method::Undecided => return Ok(()),
            Method::Steps(exposure) => exposure,
            Method::Together(copy) => copy.into_exposure(),
        };
        Ok(router.retract(exposure)?)
    }
}

impl Fetches {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Drops the fetches from a lost peer. Returns the buffers that were exposed for them.
    pub(super) fn forget_peer(&mut self, peer: usize) -> Vec<Exposure> {
        let all = std::mem::take(&mut self.queue).into_iter();
        let (lost, kept): (Vec<Fetch>, Vec<Fetch>) = all.partition(|fetch| fetch.peer == peer);
        self.queue = kept.into();
        let exposures = lost.into_iter().filter_map(|fetch| match fetch.method {
            Method::Steps(exposure) => Some(exposure),
            Method::Together(copy) => Some(copy.into_exposure()),
            Method::Undecided => None,
        });
        exposures.collect()
    }

    /// The cooperative copy into a receive's buffer. `None`: there is none.
    pub(super) fn cooperative(&mut self, receive: RequestId) -> Option<&mut CooperativeCopy> {
        self.copy_that(|fetch| fetch.receive == receive)
    }

    /// The cooperative copy of the message of a peer's request. `None`: there is none.
    pub(super) fn cooperative_of(
        &mut self,
        peer: usize,
        sender: u32,
    ) -> Option<&mut CooperativeCopy> {
        self.copy_that(|fetch| fetch.peer == peer && fetch.sender == sender)
    }

    fn copy_that(&mut self, is_it: impl Fn(&Fetch) -> bool) -> Option<&mut CooperativeCopy> {
        let fetch = self.queue.iter_mut().find(|fetch| is_it(fetch))?;
        match &mut fetch.method {
            Method::Together(copy) => Some(copy),
            Method::Undecided | Method::Steps(_) => None,
        }
    }

    /// True if the first fetch should wait for pieces that its sender pushes. Each call uses up one
    /// poll.
    pub(super) fn is_patient(&mut self) -> bool {
        match self.queue.front_mut().map(|fetch| &mut fetch.method) {
            Some(Method::Together(copy)) => copy.waits(),
            _ => false,
        }
    }
}
