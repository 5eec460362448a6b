//! The peers that a rank cannot reach any more, with the errors of their loss.

use crate::comm::Comm;
use crate::{Class, Error};

/// Reports of members that have left collective operations on communicators that this rank is still
/// making, at most.
const EARLY: usize = 64;

/// The lost peers of a rank, and the communicators that have become useless.
#[derive(Default)]
pub(crate) struct Losses {
    /// World ranks, each with the error of its loss, in the order of the losses.
    peers: Vec<(usize, Error)>,
    /// Contexts of communicators that this rank does not know yet, on which a member has left a
    /// collective operation.
    early: Vec<(u64, Error)>,
}

impl Losses {
    /// The error of the loss of a peer. `None`: it is not lost.
    pub(crate) fn error_of(&self, peer: usize) -> Option<&Error> {
        let mut peers = self.peers.iter();
        peers
            .find(|(lost, _)| *lost == peer)
            .map(|(_, error)| error)
    }

    /// Adds a peer. False: it was lost before.
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

    /// The first loss of a member of this communicator that waits for any source have not reported.
    /// The second answer: no other member is left, so that no message can come.
    pub(crate) fn untold(&self, comm: &Comm) -> Option<(Error, bool)> {
        let core = &comm.core;
        let is_member = |peer: usize| core.peers().rank_of(peer).is_some();
        let mut lost = self.peers.iter().filter(|(peer, _)| is_member(*peer));
        let others = core
            .peers()
            .len()
            .saturating_sub(usize::from(!core.is_inter()));
        let is_last = lost.clone().count() >= others;
        let later = self.peers.iter().skip(comm.losses_told);
        let new = later.clone().find(|(peer, _)| is_member(*peer));
        let told = match is_last {
            true => lost.next_back(),
            false => new,
        };
        told.map(|(_, error)| (error.clone(), is_last))
    }

    /// The last loss of this class.
    pub(crate) fn last_of(&self, class: Class) -> Option<Error> {
        let mut peers = self.peers.iter().rev();
        let found = peers.find(|(_, error)| error.class == class);
        found.map(|(_, error)| error.clone())
    }

    /// The number of lost peers.
    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// A member has left a collective operation on a communicator that this rank does not know.
    pub(crate) fn add_early(&mut self, context: u64, error: Error) {
        if self.early.len() < EARLY {
            self.early.push((context, error));
        }
    }

    /// Takes the report of [`add_early`](Losses::add_early) for a communicator.
    pub(crate) fn take_early(&mut self, context: u64) -> Option<Error> {
        let at = self.early.iter().position(|(of, _)| *of == context)?;
        Some(self.early.swap_remove(at).1)
    }
}
