//! All connections of a rank in one struct; and a view of it for the functions that handle one
//! peer.

use super::attention::Attention;
use super::early::EarlyMessages;
use super::endpoint::Endpoint;
use super::endpoints::Endpoints;
use super::fence::{LinkMessage, LinkWord};
use super::handshake::HandshakeMessage;
use super::local::Local;
use super::polled::PolledCompletions;
use super::ring_watch::RingWatch;
use super::srq_path::SrqPath;
use super::transfers::Transfers;
use crate::{Error, Result};

/// All connections of a rank, with the state that they have in common.
pub(super) struct Connections {
    pub local: Local,
    pub endpoints: Endpoints,
    pub early: EarlyMessages,
    pub transfers: Transfers,
    pub messages: SrqPath,
    pub attention: Attention,
    /// The rings that have been written to. `None`: the node does not detect writes, or packets
    /// arrive that only completions report.
    pub watch: Option<Box<RingWatch>>,
    pub polled: PolledCompletions,
}

/// The state for functions that handle one peer: its endpoint, and the rank's shared state,
/// borrowed separately.
pub(super) struct Peer<'a> {
    pub rank: usize,
    pub endpoint: &'a mut Endpoint,
    pub local: &'a mut Local,
    pub transfers: &'a mut Transfers,
    pub messages: &'a mut SrqPath,
    pub attention: &'a mut Attention,
}

impl Connections {
    /// The connection to `rank`, which has an endpoint.
    pub(super) fn peer(&mut self, rank: usize) -> Peer<'_> {
        Peer {
            rank,
            endpoint: self.endpoints.of(rank),
            local: &mut self.local,
            transfers: &mut self.transfers,
            messages: &mut self.messages,
            attention: &mut self.attention,
        }
    }
}

impl Peer<'_> {
    /// Sends the peer a message out of band.
    pub(super) fn send_oob(&mut self, message: &HandshakeMessage) -> Result<()> {
        Ok(self.local.node.oob_send(self.rank, &message.encode())?)
    }

    /// Sends the peer a message about link `index`.
    pub(super) fn send_link(&mut self, index: usize, word: LinkWord) -> Result<()> {
        let link = &self.endpoint.links()[index];
        let rails = (link.rail() as u8, link.peer_rail() as u8);
        self.send_oob(&HandshakeMessage::Link(LinkMessage { rails, word }))
    }

    /// Posts the pieces of the peer's transfers for which there is room.
    pub(super) fn post_transfers(&mut self) -> Result<()> {
        self.transfers.post(self.local, self.endpoint)
    }

    /// Records that the peer's end is connected: the peer has reported it, or has written to this
    /// rank.
    #[inline]
    pub(super) fn peer_ready(&mut self) -> Result<()> {
        match self.endpoint.connection.peer_ready() {
            Ok(true) => self.now_ready(),
            Ok(false) => Ok(()),
            Err(what) => Err(Error::broken(self.rank, what)),
        }
    }

    /// Records that the connection is ready, and posts the transfers that waited for it.
    pub(super) fn now_ready(&mut self) -> Result<()> {
        self.attention.connecting -= 1;
        self.post_transfers()
    }
}
