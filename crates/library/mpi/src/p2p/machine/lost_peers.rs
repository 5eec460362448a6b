//! The peers that a rank cannot reach any more, with the errors of their loss.

use crate::comm::Comm;
use crate::{Class, Error};

/// The greatest number of reports that are kept about communicators that this rank is still making.
const EARLY: usize = 64;

/// The lost peers of a rank, and the communicators without further collective operations.
#[derive(Default)]
pub(crate) struct Losses {
    /// World ranks of the lost peers, each with the error of its loss, in the order of the losses.
    peers: Vec<(usize, Error)>,
    /// Contexts of communicators, each with the reason why a member has left a collective
    /// operation, after which none works.
    left: Vec<(u64, Error)>,
    /// Contexts of communicators that this rank does not have yet, each with the reason why a
    /// member has left a collective operation.
    early: Vec<(u64, Error)>,
    /// Contexts of communicators, each with the number of lost peers that waits for receives from
    /// any source have reported.
    told: Vec<(u64, usize)>,
}

impl Losses {
    /// The error of the loss of a peer. `None`: it is not lost.
    pub(crate) fn error_of(&self, peer: usize) -> Option<&Error> {
        let mut peers = self.peers.iter();
        peers
            .find(|(lost, _)| *lost == peer)
            .map(|(_, error)| error)
    }

    /// Adds a lost peer. False: it was known to be lost.
    pub(crate) fn add(&mut self, peer: usize, error: Error) -> bool {
        let is_new = self.error_of(peer).is_none();
        if is_new {
            self.peers.push((peer, error));
        }
        is_new
    }

    /// The error of the first lost peer among the members of a communicator.
    pub(crate) fn of_members(&self, comm: &Comm) -> Option<&Error> {
        let is_member = |peer: usize| comm.core.joint().members.rank_of(peer).is_some();
        let mut peers = self.peers.iter();
        peers
            .find(|(peer, _)| is_member(*peer))
            .map(|(_, error)| error)
    }

    /// The first loss of a member of this communicator that no wait for a receive from any source
    /// has reported. If no other member is left, so that no message can arrive, the last loss, with
    /// true.
    pub(crate) fn untold(&self, comm: &Comm) -> Option<(Error, bool)> {
        let core = &comm.core;
        let is_member = |peer: usize| core.peers().rank_of(peer).is_some();
        let mut lost = self.peers.iter().filter(|(peer, _)| is_member(*peer));
        let others = core
            .peers()
            .len()
            .saturating_sub(usize::from(!core.is_inter()));
        let is_last = lost.clone().count() >= others;
        let mut told = self.told.iter();
        let told = told.find(|(of, _)| *of == core.context);
        let later = self.peers.iter().skip(told.map_or(0, |(_, count)| *count));
        let new = later.clone().find(|(peer, _)| is_member(*peer));
        let told = match is_last {
            true => lost.next_back(),
            false => new,
        };
        told.map(|(_, error)| (error.clone(), is_last))
    }

    /// Records that waits for receives from any source on this communicator have reported all
    /// present losses.
    pub(crate) fn mark_reported(&mut self, context: u64) {
        let count = self.peers.len();
        match self.told.iter_mut().find(|(of, _)| *of == context) {
            Some((_, told)) => *told = count,
            None => self.told.push((context, count)),
        }
    }

    /// The last loss of this class: of a peer, or of a communicator on which a member has left a
    /// collective operation.
    pub(crate) fn last_of(&self, class: Class) -> Option<Error> {
        let peers = self.peers.iter().rev().map(|(_, error)| error);
        let mut all = peers.chain(self.left.iter().map(|(_, error)| error));
        all.find(|error| error.class == class).cloned()
    }

    /// The number of lost peers.
    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// The reason why a member has left a collective operation on a communicator.
    pub(crate) fn left(&self, context: u64) -> Option<&Error> {
        let mut left = self.left.iter();
        left.find(|(of, _)| *of == context).map(|(_, error)| error)
    }

    /// Records that a member has left a collective operation. The first reason is kept. `is_known`:
    /// this rank has the communicator. About other communicators a limited number of reports is
    /// kept.
    pub(crate) fn leave(&mut self, context: u64, error: Error, is_known: bool) {
        match is_known {
            true if self.left(context).is_none() => self.left.push((context, error)),
            false if self.early.len() < EARLY => self.early.push((context, error)),
            _ => {}
        }
    }

    /// Records that this rank has a communicator with this context from now on.
    pub(crate) fn begin(&mut self, context: u64) {
        if let Some(at) = self.early.iter().position(|(of, _)| *of == context) {
            let (context, error) = self.early.swap_remove(at);
            self.leave(context, error, true);
        }
    }

    /// Removes the records about a communicator that does not exist any more.
    pub(crate) fn end(&mut self, context: u64) {
        self.left.retain(|(of, _)| *of != context);
        self.told.retain(|(of, _)| *of != context);
    }
}
