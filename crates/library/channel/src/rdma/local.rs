//! This rank's side of all its connections: its node, its rails, and the values that are alike for
//! every peer.

use device::{Charges, LinkLayer, Node, Status};

use super::bulk::Reserved;
use super::config::Config;
use super::layout::Layout;
use super::rail::Rail;
use super::rail_set::{MAX_RAILS, RailSet};
use crate::{Error, Fault, Result};
use knobs::RdmaDesign;

/// The most receives of one link that may be consumed and not yet posted again.
pub(super) const LATE: u32 = 16;

/// This rank's side of all connections: its node, its rails, and what is equal for every peer.
pub(super) struct Local {
    pub rank: usize,
    pub node: Box<dyn Node>,
    pub rails: Box<[Rail]>,
    /// The rails that at least one connection uses.
    pub in_use: RailSet,
    /// True if a rail in use does not place writes in order: only completions report packets on it.
    pub unordered: bool,
    /// True if a device in use works only while its owner polls it, and each post to it is costly.
    pub needs_polls: bool,
    /// True if the node detects that no path to a peer carries anything.
    pub knows_cuts: bool,
    pub config: Config,
    pub layout: Layout,
    pub charges: Charges,
}

impl Local {
    /// Opens the rails of `node` for rank `rank`.
    pub(super) fn open(mut node: Box<dyn Node>, rank: usize, config: Config) -> Result<Local> {
        let config = config.on(&*node);
        let count = node.rails().min(MAX_RAILS);
        let in_use = RailSet::below(match config.design {
            RdmaDesign::ZeroCopy => count.min(config.rails.most.max(1)),
            // The other designs use one rail.
            _ => 1,
        });
        let rails: Box<[Rail]> = (0..count)
            .map(|index| Rail::open(&mut *node, index, in_use.contains(index)))
            .collect::<Result<_>>()?;
        Ok(Local {
            rank,
            unordered: in_use.iter().any(|rail| rails[rail].is_unordered()),
            needs_polls: in_use.iter().any(|rail| rails[rail].polled()),
            knows_cuts: node.knows_cuts(),
            layout: Layout::of(&config),
            charges: Charges::of(&mut *node),
            rails,
            in_use,
            config,
            node,
        })
    }

    /// The rails that at least one connection uses.
    pub(super) fn rails_in_use(&self) -> impl Iterator<Item = &Rail> {
        self.in_use.iter().map(|rail| &self.rails[rail])
    }

    /// Makes requests for devices with costly posts wait and leave together from now on, or leave
    /// now.
    #[inline(never)]
    pub(super) fn cork(&mut self, on: bool) {
        for rail in self.in_use.iter().filter(|rail| self.rails[*rail].polled()) {
            match on {
                true => self.node.rail(rail).cork(),
                false => self.node.rail(rail).uncork(),
            }
        }
    }

    /// The receives without memory of one link on a rail: the number of writes with immediate that
    /// may arrive between two polls of this rank.
    ///
    /// Packets: one for each slot, because no slot is used again before its packet is consumed.
    /// Tails: each reports one more packet of this rank as consumed, and this rank sends none
    /// before it polls. While a connection ends, a tail behind any of these may ask for a
    /// completion. `LATE` receives may be used up and not posted again.
    pub(super) fn receives(&self, rail: usize) -> usize {
        match self.rails[rail].is_unordered() {
            true => 4 * self.layout.slots() + LATE as usize,
            false => 0,
        }
    }

    /// Reserves a receive for a notice on each of `rails`. `None`: some rail has no receive left.
    pub(super) fn reserve_notices(&mut self, rails: RailSet) -> Result<Option<Reserved>> {
        let mut reserved = RailSet::default();
        for rail in rails.iter() {
            if !self.rails[rail].reserve_notice(&mut *self.node)? {
                self.release_notices(reserved);
                return Ok(None);
            }
            reserved = reserved.with(rail);
        }
        Ok(Some(Reserved::Rails(reserved)))
    }

    /// Frees one receive for a notice on each of `rails`.
    pub(super) fn release_notices(&mut self, rails: RailSet) {
        rails
            .iter()
            .for_each(|rail| self.rails[rail].release_notice());
    }

    /// The name of a rail's device.
    pub(super) fn device(&mut self, rail: usize) -> String {
        self.node.rail(rail).attributes().name.clone()
    }

    /// The name of a peer for messages to the user, with its host where that is known.
    pub(super) fn name_of(&mut self, peer: usize) -> String {
        match self.node.place_of(peer) {
            place if place.is_empty() => format!("rank {peer}"),
            place => format!("rank {peer} on {place}"),
        }
    }

    /// The name of this rank, with its host where that is known, for a sentence about another rank.
    pub(super) fn place_here(&mut self) -> String {
        match self.node.place_of(self.rank) {
            place if place.is_empty() => "this rank".into(),
            place => format!("this rank on {place}"),
        }
    }

    /// The error of a request to `peer` that has failed on a rail, and has ended the connection.
    #[cold]
    pub(super) fn lost(&mut self, peer: usize, rail: usize, status: Status) -> Error {
        let mut device = self.device(rail);
        // The devices' own notes may tell why.
        let notes = self.node.notes();
        if !notes.is_empty() {
            device = format!("{device} ({})", notes.join("; "));
        }
        Fault::Lost {
            peer,
            device,
            status: status.words().into(),
            check: advice(status, self.rails[rail].network().link_layer),
            may_be_death: !self.node.is_virtual(),
        }
        .into()
    }
}

/// The advice to the user for a request that failed with `status` over this link layer.
pub(super) fn advice(status: Status, link: LinkLayer) -> &'static str {
    match status {
        Status::RetryExceeded if link == LinkLayer::Internet => {
            "is that rank still alive, and are interface, cable and route between the two hosts up (ip link, ping)?"
        }
        // Some devices report `LocalQpOperation` when they have no path to the peer any more.
        Status::RetryExceeded | Status::LocalQpOperation => {
            "is that rank still alive, and are cable, port and switch between the two up (ibstat, ibdiagnet)?"
        }
        Status::RnrRetryExceeded => {
            "is that rank stopped, so that it takes nothing, or is its host overloaded?"
        }
        Status::RemoteAccess | Status::RemoteInvalidRequest | Status::RemoteOperation => {
            "do all ranks use the same version of the library, and did the program leave buffers alone that \
             were still in use?"
        }
        Status::LocalProtection | Status::LocalLength => {
            "did the program free or unmap a buffer that was still in use?"
        }
        Status::Flushed | Status::BadResponse | Status::Success => {
            "has that rank ended, or was there an earlier error on this connection?"
        }
    }
}
