//! The traits of transports for the layer above, as the RDMA transport implements them.

use std::ops::Range;

use super::peer::Connections;
use super::transfer::Direction;
use super::transfers::Request;
use super::{BUSY_POLLS, IDLE_POLLS, Rdma, completions, drain, put};
use crate::zero_copy::Origin;
use crate::{
    Capabilities, Done, Exposed, Exposure, Family, Fault, Head, More, NotifiedWrite, Put,
    RemoteKey, Result, Token, Transfer, Transport, ZeroCopy,
};
use datatype::Buffer;

impl Transport for Rdma {
    #[inline]
    fn longest_packet(&self, _peer: usize) -> usize {
        self.connections.local.layout.max_body()
    }

    fn capabilities(&mut self, peer: usize) -> Capabilities {
        let node = &mut *self.connections.local.node;
        self.offers[usize::from(self.paths.is_within(node, peer))]
    }

    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put> {
        put::packet(&mut self.connections, peer, head, len, fill)
    }

    fn poll(&mut self, mut handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize> {
        self.connections.local.node.sync_memory();
        self.attend()?;
        let mut packets = drain::rings(&mut self.connections, &mut handler)?;
        if self.connections.messages.is_active() {
            packets += drain::messages(&mut self.connections, &mut handler)?;
        }
        if packets > 0 {
            self.probes.rest();
        } else {
            let attention = &mut self.connections.attention;
            attention.idle_polls = attention.idle_polls.wrapping_add(1);
            if attention.receives_due > 0 {
                completions::post_due(&mut self.connections)?;
            }
        }
        let attention = &mut self.connections.attention;
        attention.polls = attention.polls.wrapping_add(1);
        let every = if packets > 0 { BUSY_POLLS } else { IDLE_POLLS };
        if attention.polls.is_multiple_of(every) || attention.all && packets == 0 {
            self.attend_to_all()?;
        }
        if self.connections.local.needs_polls {
            self.connections.local.cork(packets > 0);
        }
        Ok(packets)
    }

    fn uncork(&mut self) -> Result<()> {
        if self.connections.local.needs_polls {
            self.connections.local.cork(false);
        }
        Ok(())
    }

    fn contact(&mut self, peer: usize) -> Result<()> {
        Rdma::contact(self, peer)
    }

    fn give_up(&mut self, peer: usize) {
        self.give_up_peer(peer);
    }

    fn close(&mut self) -> Result<bool> {
        self.end_connections()
    }
}

impl ZeroCopy for Rdma {
    fn expose(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
        _family: Family,
    ) -> Result<Option<Exposure>> {
        self.prepare(peer, buffer, len, exposed)
    }

    fn prepare(
        &mut self,
        _peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>> {
        let Some((address, whole)) = buffer.as_dense() else {
            return Ok(None);
        };
        if len == 0 || len > whole {
            return Ok(None);
        }
        let all = &mut self.connections;
        let range = (address as u64, len, exposed);
        let keys = match all
            .transfers
            .registrations
            .expose(&mut *all.local.node, range)
        {
            Ok(keys) => keys,
            // Too much locked memory, or a mapped file: the message is copied instead.
            Err(error) if matches!(error.fault(), Fault::Device(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (rkeys, rails) = keys.rkeys();
        let key = RemoteKey::new(address as u64, len, &rkeys[..rails]);
        let exposure = Exposure::new(buffer, len, exposed, key, Origin::Rdma);
        Ok(Some(exposure))
    }

    fn retract(&mut self, exposure: Exposure) -> Result<()> {
        let all = &mut self.connections;
        let range = (exposure.key.address, exposure.len, exposure.exposed);
        let registrations = &mut all.transfers.registrations;
        registrations.retract(&mut *all.local.node, range)
    }

    fn read(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        token: Token,
    ) -> Result<Transfer> {
        assert_eq!(to.exposed, Exposed::ToWrite);
        let request = Request {
            peer,
            direction: Direction::Read,
            remote: from,
            local: to,
            at: range,
            token,
        };
        start(&mut self.connections, request)
    }

    fn write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        token: Token,
    ) -> Result<Transfer> {
        let request = Request {
            peer,
            direction: Direction::Write { notice: None },
            remote: to,
            local: from,
            at: range,
            token,
        };
        start(&mut self.connections, request)
    }

    fn can_start(&self, peer: usize) -> bool {
        let endpoint = self.connections.endpoints.get(peer);
        endpoint.is_some_and(|endpoint| endpoint.has_been_made() && !endpoint.connection.is_over())
    }

    fn done(&mut self, family: Family) -> Option<Done> {
        self.connections.transfers.bulk.next_done(family)
    }
}

impl NotifiedWrite for Rdma {
    fn expect(&mut self, peer: usize, token: Token) -> Result<Option<u32>> {
        let all = &mut self.connections;
        let to = (peer, token);
        all.transfers
            .expect_notice(&mut all.local, &mut all.endpoints, to)
    }

    fn forget(&mut self, _peer: usize, notice: u32) {
        let all = &mut self.connections;
        all.transfers
            .forget_notice(&mut all.local, &mut all.endpoints, notice);
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
        let request = Request {
            peer,
            direction: Direction::Write {
                notice: Some(notice),
            },
            remote: to,
            local: from,
            at: 0..len,
            token,
        };
        start(&mut self.connections, request)
    }

    fn packets_sent(&self, peer: usize) -> u64 {
        self.sent(peer)
    }

    fn packets_received(&self, peer: usize) -> u64 {
        self.taken(peer)
    }

    fn is_amid_packet(&self, peer: usize) -> bool {
        self.is_amid(peer)
    }
}

/// Starts a transfer between exposed memory of this rank and of a peer.
fn start(all: &mut Connections, request: Request) -> Result<Transfer> {
    all.transfers
        .start(&mut all.local, &mut all.endpoints, request)
}
