//! The table of a rank's endpoints, its connections, by peer.

use super::endpoint::Endpoint;
use crate::PeerTable;

/// The connections of a rank, by peer.
pub(super) struct Endpoints {
    all: PeerTable<Box<Endpoint>>,
    /// Peers with an endpoint, in the order in which the endpoints were made.
    known: Vec<usize>,
    /// Peers with rings, in the order in which the rings were made.
    ringed: Vec<usize>,
    /// The number of peers for which this rank has memory for rings.
    with_memory: usize,
}

impl Endpoints {
    /// An empty table for the endpoints to `ranks` ranks.
    pub(super) fn new(ranks: usize) -> Endpoints {
        Endpoints {
            all: PeerTable::new(ranks),
            known: Vec::new(),
            ringed: Vec::new(),
            with_memory: 0,
        }
    }

    /// Makes room for the endpoints to `ranks` ranks.
    pub(super) fn grow(&mut self, ranks: usize) {
        self.all.grow(ranks);
    }

    /// The number of ranks that this rank knows.
    pub(super) fn ranks(&self) -> usize {
        self.all.peers()
    }

    /// The endpoint to `peer`, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, peer: usize) -> Option<&Endpoint> {
        self.all.get(peer).map(|endpoint| &**endpoint)
    }

    /// The endpoint to `peer`, as a mutable reference, if there is one.
    pub(super) fn get_mut(&mut self, peer: usize) -> Option<&mut Endpoint> {
        self.all.get_mut(peer).map(|endpoint| &mut **endpoint)
    }

    /// The endpoint to `peer`, which must exist.
    #[inline(always)]
    pub(super) fn of(&mut self, peer: usize) -> &mut Endpoint {
        match self.all.get_mut(peer) {
            Some(endpoint) => endpoint,
            None => no_endpoint(peer),
        }
    }

    /// True if the next endpoint gets memory for rings: at most `most` endpoints get it. Counts
    /// that endpoint.
    pub(super) fn takes_memory(&mut self, most: usize) -> bool {
        let takes = self.with_memory < most;
        self.with_memory += usize::from(takes);
        takes
    }

    /// Adds the endpoint to `peer`.
    pub(super) fn add(&mut self, peer: usize, endpoint: Endpoint) {
        let before = self.all.entry(peer).replace(Box::new(endpoint));
        assert!(before.is_none(), "rank {peer} has an endpoint");
        self.known.push(peer);
    }

    /// Records that the endpoint to `peer` has rings. Returns the peer's position in `ringed`.
    pub(super) fn has_rings_now(&mut self, peer: usize) -> usize {
        self.ringed.push(peer);
        self.ringed.len() - 1
    }

    pub(super) fn known(&self) -> &[usize] {
        &self.known
    }

    #[inline(always)]
    pub(super) fn ringed(&self) -> &[usize] {
        &self.ringed
    }

    /// Removes all endpoints and returns them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Box<Endpoint>> {
        self.all.drain()
    }
}

#[cold]
fn no_endpoint(peer: usize) -> ! {
    panic!("there is no endpoint to rank {peer}");
}
