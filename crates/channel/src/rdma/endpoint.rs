//! An endpoint: the connection to one peer, as a composition of machines.
//!
//! [`Connection`] says what may be done at all, [`RingSender`] and [`RingReceiver`] keep the two
//! rings, [`Credits`] count the messages of a peer without rings, and each [`Link`] keeps the queue
//! pairs on one rail.

use device::Node;

use super::bulk::TransferQueue;
use super::connection::Connection;
use super::credit::Credits;
use super::link::Link;
use super::outbound::SlotPlace;
use super::qp_link::{DEPTH, Note};
use super::rail_set::RailKeys;
use super::ring_receiver::RingReceiver;
use super::ring_sender::{PostedSlot, RingSender};
use crate::{Head, Result};

/// The connection to one peer.
pub(super) struct Endpoint {
    pub connection: Connection,
    /// One link for each rail of the connection.
    links: Box<[Link]>,
    /// The link that packets and transfers use.
    active: usize,
    pub sender: RingSender,
    pub receiver: RingReceiver,
    pub credits: Credits,
    /// Zero-copy transfers that wait for room in the send queue.
    pub transfers: TransferQueue,
    /// The number of the pool, on the link's rail, that receives the peer's messages if this end
    /// has no memory for rings.
    pub pool: usize,
}

/// A link in use, and the node that carries out its requests.
pub(super) struct Wire<'a> {
    pub node: &'a mut dyn Node,
    pub link: &'a mut Link,
}

impl Endpoint {
    pub(super) fn new(
        links: Box<[Link]>,
        sender: RingSender,
        receiver: RingReceiver,
        credits: Credits,
        pool: usize,
    ) -> Endpoint {
        Endpoint {
            connection: Connection::Opening,
            links,
            active: 0,
            sender,
            receiver,
            credits,
            transfers: TransferQueue::default(),
            pool,
        }
    }

    /// The link that packets and transfers use.
    #[inline(always)]
    pub(super) fn link(&self) -> &Link {
        &self.links[self.active]
    }

    #[inline(always)]
    pub(super) fn link_mut(&mut self) -> &mut Link {
        &mut self.links[self.active]
    }

    /// The link on `rail`, whose device has reported something about it.
    pub(super) fn link_on(&mut self, rail: usize) -> &mut Link {
        let link = self.links.iter_mut().find(|link| link.rail() == rail);
        link.expect("a rail reports only on endpoints with a link on it")
    }

    /// The link for transfers, and the transfers that wait for it.
    pub(super) fn bulk_parts(&mut self) -> (&mut Link, &mut TransferQueue) {
        (&mut self.links[self.active], &mut self.transfers)
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(super) fn links_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }

    /// The rails of the links.
    pub(super) fn rails(&self) -> impl Iterator<Item = usize> {
        self.links.iter().map(|link| link.rail())
    }

    /// The keys of the memory that the peer writes to, if this end has any.
    pub(super) fn memory_keys(&self) -> Option<&RailKeys> {
        self.receiver.memory().map(|memory| &memory.keys)
    }

    /// Packets travel through rings, in both directions.
    #[inline(always)]
    pub(super) fn has_rings(&self) -> bool {
        self.sender.has_ring()
    }

    /// A free slot for a body of `len` bytes, if the send queue has room for its write. One place
    /// in the queue stays free for the tail.
    #[inline(always)]
    pub(super) fn find(&self, len: usize) -> Option<SlotPlace> {
        let has_room = self.link().control.held() + 1 < DEPTH;
        self.sender.find(len).filter(|_| has_room)
    }

    /// Writes a packet to a free slot of the peer's ring.
    #[inline(always)]
    pub(super) fn write_packet(
        &mut self,
        node: &mut dyn Node,
        place: SlotPlace,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<PostedSlot> {
        let tail = self.receiver.report_tail() as u32;
        let link = &mut self.links[self.active];
        self.sender
            .write_packet(Wire { node, link }, tail, place, head, len, fill)
    }

    /// Writes the slot of coalesced packets to the peer's ring. None: there is none, or the send
    /// queue has no room.
    pub(super) fn write_coalesced(&mut self, node: &mut dyn Node) -> Result<Option<PostedSlot>> {
        let link = &mut self.links[self.active];
        if link.control.held() + 1 >= DEPTH || !self.sender.is_coalescing() {
            return Ok(None);
        }
        let tail = self.receiver.report_tail() as u32;
        self.sender
            .write_coalesced(Wire { node, link }, tail)
            .map(Some)
    }

    /// Writes the head pointer of a packet whose data has been written. False: none is due.
    pub(super) fn write_head_pointer(&mut self, node: &mut dyn Node) -> Result<bool> {
        let link = &mut self.links[self.active];
        self.sender.write_head_pointer(Wire { node, link })
    }

    /// Writes the tail to the peer, unless the send queue has no room for it now or the connection
    /// does not allow it.
    pub(super) fn write_tail(&mut self, node: &mut dyn Node, signaled: bool) -> Result<()> {
        let has_room = self.link().control.has_room();
        if !self.connection.may_write() || !has_room || !self.has_rings() {
            return Ok(());
        }
        let link = &mut self.links[self.active];
        let to = self.sender.remote_tail(link);
        let note = Note::Ring(self.sender.last());
        self.receiver
            .write_tail(Wire { node, link }, to, signaled, note)
    }

    /// Reads the tail that the peer has written to memory. False: it is impossible.
    pub(super) fn read_tail(&mut self) -> bool {
        // Where bytes are placed in any order the tail comes as an immediate.
        self.link().by_completion() || self.sender.heard_tail(self.receiver.tail_in_memory())
    }

    /// Destroys the queue pairs and deregisters the memory.
    pub(super) fn end(self, node: &mut dyn Node) {
        // First the queue pairs: after that nothing writes to the memory.
        for link in &self.links {
            link.close(node);
        }
        self.receiver.end(node);
        self.sender.end(node);
    }
}

/// The endpoints of a rank, by peer.
pub(super) struct Endpoints {
    all: Box<[Option<Box<Endpoint>>]>,
    /// Peers with an endpoint, in the order in which the endpoints were made.
    known: Vec<usize>,
    /// Peers with rings, in the order in which the rings were made.
    ringed: Vec<usize>,
}

impl Endpoints {
    /// Room for the endpoints to `ranks` ranks.
    pub(super) fn new(ranks: usize) -> Endpoints {
        Endpoints {
            all: (0..ranks).map(|_| None).collect(),
            known: Vec::new(),
            ringed: Vec::new(),
        }
    }

    /// The number of ranks of the job.
    pub(super) fn ranks(&self) -> usize {
        self.all.len()
    }

    /// The endpoint to `peer`, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, peer: usize) -> Option<&Endpoint> {
        self.all[peer].as_deref()
    }

    /// The endpoint to `peer`, which must exist.
    #[inline(always)]
    pub(super) fn of(&mut self, peer: usize) -> &mut Endpoint {
        match &mut self.all[peer] {
            Some(endpoint) => endpoint,
            None => no_endpoint(peer),
        }
    }

    /// Adds the endpoint to `peer`.
    pub(super) fn add(&mut self, peer: usize, endpoint: Endpoint) {
        assert!(self.all[peer].is_none(), "rank {peer} has an endpoint");
        self.all[peer] = Some(Box::new(endpoint));
        self.known.push(peer);
    }

    /// Notes that the endpoint to `peer` has rings.
    pub(super) fn has_rings_now(&mut self, peer: usize) {
        self.ringed.push(peer);
    }

    pub(super) fn known(&self) -> &[usize] {
        &self.known
    }

    #[inline(always)]
    pub(super) fn ringed(&self) -> &[usize] {
        &self.ringed
    }

    /// Removes all endpoints.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Box<Endpoint>> {
        self.all.iter_mut().filter_map(|endpoint| endpoint.take())
    }
}

#[cold]
fn no_endpoint(peer: usize) -> ! {
    panic!("there is no endpoint to rank {peer}");
}
