//! The driver of the handshake: it makes endpoints, connects them, and ends them.
//!
//! The rank that first has a packet sends the addresses of its end (`Hello`). The peer connects its
//! own end, and answers with its addresses and that it is ready. If both begin at once, each takes
//! the other's hello for the answer to its own, and sends `Ready` when its end is connected. So
//! either may write as soon as it has heard that the other is ready. Where a device needs both ends
//! to connect queue pairs, the peer answers at once, and both send `Ready` when that is done.
//!
//! [`Connection`](super::connection::Connection) has the states.

use device::{Access, LinkLayer};

use super::complete::LATE;
use super::connection::{Announced, Connection, Reply};
use super::credit::{Credits, EMPTY, MOST};
use super::endpoint::Endpoint;
use super::handshake::{HandshakeMessage, Hello};
use super::inbound::Inbound;
use super::layout::RING;
use super::link::{Link, LinkQueues, SHARED_NOTICES};
use super::pairing::{Network, pairs};
use super::qp_link::DEPTH;
use super::registered::Registered;
use super::ring_receiver::RingReceiver;
use super::ring_sender::RingSender;
use super::schedule::Schedule;
use super::wr_id::QpRole;
use super::{Design, QueuePairs, Rdma, srq_path};
use crate::{Error, Fault, Result};

impl Rdma {
    /// Begins a connection, or goes on with it.
    #[cold]
    #[inline(never)]
    pub(super) fn connect(&mut self, to: usize) -> Result<()> {
        if self.endpoints.get(to).is_none() {
            self.open(to)?;
            self.send_hello(to, false)?;
            self.await_word(to);
        }
        self.listen()
    }

    /// Makes this rank's end of the connection to `to`.
    pub(super) fn open(&mut self, to: usize) -> Result<()> {
        let has_memory = self.rings < self.config.rings;
        self.rings += usize::from(has_memory);
        let mut links = Vec::new();
        let mut window = MOST;
        for rail in self.in_use.iter() {
            let (link, size) = self.open_link(to, (links.len(), rail), has_memory)?;
            links.push(link);
            window = window.min(size);
        }
        let access = Access {
            remote_write: true,
            local_write: true,
            ..Access::default()
        };
        let memory = match has_memory {
            true => {
                let (rails, bytes) = (self.in_use, srq_path::room(&self.layout));
                Some(Registered::new(&mut *self.node, rails, bytes, access)?)
            }
            false => None,
        };
        let basic = self.config.design == Design::Basic;
        let by_completion = links.iter().any(Link::by_completion);
        let inbound = Inbound::new(self.layout, RING, self.config.credit, by_completion);
        let endpoint = Endpoint::new(
            links.into(),
            RingSender::new(self.layout, basic, self.charges),
            RingReceiver::new(inbound, memory, basic, self.charges),
            Credits::new(window),
        );
        self.endpoints.add(to, endpoint);
        self.attention.connecting += 1;
        Ok(())
    }

    /// Opens the link with this position to `to` on a rail. Returns it with the number of messages
    /// that may come at once to begin with.
    fn open_link(
        &mut self,
        to: usize,
        (index, rail): (usize, usize),
        has_memory: bool,
    ) -> Result<(Link, u32)> {
        let receives = self.receives(rail);
        let messages = (MOST as usize + EMPTY).max(self.shared_notices());
        let node = &mut *self.node;
        let rail = &mut self.rails[rail];
        let completions = 2 * DEPTH as usize + receives.max(messages);
        let cq = rail.cq_for(node, completions)?;
        let (pool, receives, window) = match has_memory {
            true => {
                let window = srq_path::fit(&self.layout) as u32;
                (None, receives.max(messages), window)
            }
            false => {
                let (number, srq, window) = rail.admit(node, &self.layout)?;
                self.srq_path.activate();
                (Some((number, srq)), 0, window)
            }
        };
        let queues = LinkQueues {
            cq,
            pool,
            receives,
            window,
            notices: rail.notice_srq(),
        };
        let link = Link::open(node, rail, to, index, &queues)?;
        rail.belongs(link.bulk.qp(), to, QpRole::Bulk);
        rail.belongs(link.control.qp(), to, QpRole::Control);
        Ok((link, window))
    }

    /// Receives for notices in the queue pair for packets of a link.
    fn shared_notices(&self) -> usize {
        match self.config.rails.queue_pairs {
            QueuePairs::Separate => 0,
            QueuePairs::Shared => SHARED_NOTICES,
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
        match self.rails[rail].by_completion() {
            true => 4 * self.layout.slots() + LATE as usize,
            false => 0,
        }
    }

    fn send_hello(&mut self, to: usize, ready: bool) -> Result<()> {
        let Rdma {
            endpoints,
            node,
            config,
            rails,
            ..
        } = self;
        let endpoint = endpoints.of(to);
        let keys = endpoint.memory_keys().copied().unwrap_or_default();
        let links = endpoint.links().iter();
        let memory = endpoint.receiver.memory();
        let hello = Hello {
            config: *config,
            ready,
            rings: memory.is_some(),
            shared: config.rails.queue_pairs == QueuePairs::Shared,
            credits: endpoint.credits.window.size(),
            address: memory.map_or(0, |memory| memory.address()),
            links: links
                .map(|link| {
                    let rail = link.rail();
                    link.address(&mut **node, &rails[rail], keys.rkey(rail))
                })
                .collect::<Result<_>>()?,
        };
        let message = HandshakeMessage::Hello(Box::new(hello));
        Ok(node.oob_send(to, &message.encode())?)
    }

    /// Takes the handshake messages that have come, and goes on with the connections that a device
    /// makes.
    pub(super) fn listen(&mut self) -> Result<()> {
        for peer in std::mem::take(&mut self.attention.in_progress) {
            self.go_on(peer)?;
        }
        while let Some((from, bytes)) = self.node.oob_recv()? {
            let is_peer = from < self.endpoints.ranks() && from != self.rank;
            let message = match is_peer {
                true => HandshakeMessage::decode(&bytes, &self.config),
                false => Err("it is not a peer of this rank".to_string()),
            };
            match message {
                Ok(message) => self.hear(from, message)?,
                Err(what) => return Err(Error::broken(from, what)),
            }
        }
        Ok(())
    }

    fn hear(&mut self, from: usize, message: HandshakeMessage) -> Result<()> {
        let known = self.endpoints.get(from).is_some();
        if known && self.endpoints.of(from).connection == Connection::Lost {
            return Ok(());
        }
        self.heard_from(from);
        match message {
            HandshakeMessage::Hello(hello) => self.hear_hello(from, &hello),
            HandshakeMessage::Ready if known => self.peer_ready(from),
            HandshakeMessage::Bye if known => {
                let connection = &mut self.endpoints.of(from).connection;
                connection
                    .hear_bye()
                    .map_err(|what| Error::broken(from, what))
            }
            HandshakeMessage::Link(message) if known => self.hear_link(from, message),
            HandshakeMessage::Grant(lower) if known => self.hear_grant(from, lower),
            HandshakeMessage::GaveUp => {
                if !known {
                    self.open(from)?;
                }
                self.hear_gave_up(from)
            }
            HandshakeMessage::Ready
            | HandshakeMessage::Bye
            | HandshakeMessage::Link(_)
            | HandshakeMessage::Grant(_) => Err(Error::broken(
                from,
                "it sent a handshake message before its hello",
            )),
        }
    }

    fn hear_hello(&mut self, from: usize, hello: &Hello) -> Result<()> {
        let answer = self.endpoints.get(from).is_none();
        if answer {
            self.open(from)?;
        }
        let announced = Announced {
            rings: hello.rings,
            ready: hello.ready,
            answer,
        };
        let connection = &mut self.endpoints.of(from).connection;
        connection
            .hello(announced)
            .map_err(|what| Error::broken(from, what))?;
        self.connect_links(from, hello)?;
        self.go_on(from)
    }

    /// Pairs the links of this end with the peer's, connects their queue pairs, or begins to, and
    /// gives up links without a partner.
    fn connect_links(&mut self, to: usize, hello: &Hello) -> Result<()> {
        let Rdma {
            endpoints,
            node,
            config,
            rails,
            ..
        } = self;
        let endpoint = endpoints.of(to);
        let ours: Vec<Network> = endpoint.links().iter().map(Link::network).collect();
        let theirs: Vec<Network> = hello.links.iter().map(|link| link.network).collect();
        let pairs = pairs(&ours, &theirs);
        if pairs.is_empty() {
            return Err(unreachable(to, &ours, &theirs));
        }
        let mut failed = Vec::new();
        for &(ours, theirs) in &pairs {
            let link = &mut endpoint.links_mut()[ours];
            if let Err(why) = link.connect(&mut **node, &hello.links[theirs]) {
                failed.push((link.rail(), why));
            }
        }
        let is_paired = |link: &Link| pairs.iter().any(|(ours, _)| *ours == link.index());
        let lost = endpoint.settle_links(is_paired, |links| {
            let partner = |link: &Link| {
                let mut all = hello.links.iter();
                all.find(|theirs| theirs.rail == link.peer_rail())
            };
            let traits = links.iter().zip(links.iter().filter_map(partner));
            let traits = traits.map(|(link, theirs)| rails[link.rail()].to(theirs));
            Schedule::new(&config.rails, &traits.collect::<Vec<_>>())
        });
        for link in lost {
            let rail = &mut rails[link.rail()];
            rail.forget(link.control.qp());
            rail.forget(link.bulk.qp());
            link.close(&mut **node);
        }
        // One queue pair for packets and transfers needs rings, because there nothing else consumes
        // receives.
        let by_rings = hello.rings && endpoint.receiver.has_memory();
        let is_wanted = config.rails.queue_pairs == QueuePairs::Shared && hello.shared;
        let is_ordered = |link: &Link| !link.by_completion() && !link.peer_by_completion();
        if is_wanted && by_rings && endpoint.links().iter().all(is_ordered) {
            endpoint
                .links_mut()
                .iter_mut()
                .for_each(Link::share_control);
        }
        let grant = endpoint.credits.grant(0, hello.credits);
        let grant = grant.ok_or_else(|| {
            let what = format!("its hello grants {} messages", hello.credits);
            Error::broken(to, what)
        })?;
        endpoint.credits.accept(grant);
        endpoint.sender.learn_remote(hello.address);
        let mut failed = failed.into_iter();
        failed.try_for_each(|(rail, why)| self.cannot_connect(to, rail, &why.to_string()))
    }

    /// The connection of queue pairs is over. Where the device could connect none, the connection
    /// waits for a link that works.
    fn sever_unconnected(&mut self, peer: usize) {
        if self.endpoints.of(peer).is_cut_off() {
            self.cut_off(peer);
        }
    }

    /// Goes on with a connection whose queue pairs the device connects. When it is done, the peer
    /// is told.
    fn go_on(&mut self, peer: usize) -> Result<()> {
        let Rdma {
            endpoints, node, ..
        } = self;
        let endpoint = endpoints.of(peer);
        for link in endpoint.links() {
            let is_connecting = link.is_connecting(&mut **node);
            let why = |why: device::Error| why.to_string();
            if is_connecting.map_err(|error| Fault::Unreachable {
                peer,
                why: why(error),
            })? {
                if self.endpoints.of(peer).connection.waits_for_device() {
                    self.send_hello(peer, false)?;
                }
                self.attention.in_progress.push(peer);
                return Ok(());
            }
        }
        let Connection::Connecting(announced) = endpoint.connection else {
            unreachable!("rank {peer} is not being connected");
        };
        self.prepare_for_writes(peer, announced.rings)?;
        let connection = &mut self.endpoints.of(peer).connection;
        let reply = connection.connected();
        let is_ready = connection.is_ready();
        match reply {
            Reply::Hello => self.send_hello(peer, true)?,
            Reply::Ready => {
                let message = HandshakeMessage::Ready.encode();
                self.node.oob_send(peer, &message)?;
            }
        }
        self.sever_unconnected(peer);
        match is_ready {
            true => self.now_ready(peer),
            false => {
                self.await_word(peer);
                Ok(())
            }
        }
    }

    /// Makes what this end needs before the peer may write: staging memory and receives.
    fn prepare_for_writes(&mut self, to: usize, peer_has_memory: bool) -> Result<()> {
        let Rdma {
            endpoints,
            node,
            layout,
            srq_path,
            watch,
            ..
        } = self;
        let endpoint = endpoints.of(to);
        if !endpoint.receiver.has_memory() {
            return Ok(());
        }
        if !peer_has_memory {
            srq_path.activate();
            return endpoint.adopt_memory(&mut **node, layout, to);
        }
        let rails = endpoint.rails();
        let staging = Registered::new(&mut **node, rails, layout.bytes, Access::default())?;
        endpoint.sender.begin_ring(staging);
        let live = endpoint.live_rails();
        let ring = endpoints.has_rings_now(to);
        if let Some(watch) = watch
            && let Some(memory) = endpoints.of(to).receiver.memory()
        {
            let keys = memory.keys.rails().iter();
            watch.begin(ring, keys.map(|rail| memory.keys.rkey(rail)));
        }
        for rail in live.iter() {
            for _ in 0..self.receives(rail) {
                let link = self.endpoints.of(to).link_on(rail);
                link.control.post_receive(&mut *self.node)?;
            }
        }
        Ok(())
    }

    /// The peer's end is connected: the peer has said so, or has written to this rank.
    #[inline]
    pub(super) fn peer_ready(&mut self, peer: usize) -> Result<()> {
        match self.endpoints.of(peer).connection.peer_ready() {
            Ok(true) => self.now_ready(peer),
            Ok(false) => Ok(()),
            Err(what) => Err(Error::broken(peer, what)),
        }
    }

    /// The connection has become ready.
    fn now_ready(&mut self, peer: usize) -> Result<()> {
        self.attention.connecting -= 1;
        self.post_transfers(peer)
    }

    /// Ends all connections. True: every packet that was put is in its peer's memory, and every
    /// peer has been told what it must know. The caller repeats the call until then. Only after
    /// that may this end be dropped.
    pub(super) fn end_connections(&mut self) -> Result<bool> {
        self.listen()?;
        self.poll()?;
        // A link may fail with the last requests of the job.
        if self.attention.fencing {
            self.tend_fences()?;
        }
        let mut all = true;
        for at in 0..self.endpoints.known().len() {
            let to = self.endpoints.known()[at];
            let connection = self.endpoints.of(to).connection;
            if !connection.is_ready() {
                all &= connection.is_over();
                continue;
            }
            self.write_coalesced(to)?;
            if !self.endpoints.of(to).connection.has_said_bye() && self.is_settled(to)? {
                self.endpoints.of(to).connection.say_bye();
                let message = HandshakeMessage::Bye.encode();
                self.node.oob_send(to, &message)?;
                self.await_word(to);
            }
            all &= self.endpoints.of(to).connection.is_over();
        }
        Ok(all)
    }

    /// Every request to this peer is known to be complete. Where no expected completion will tell,
    /// this asks for one.
    fn is_settled(&mut self, to: usize) -> Result<bool> {
        let endpoint = self.endpoints.of(to);
        // Slots and pieces of a link that is being given up may have to be written again.
        if endpoint.is_fencing() {
            return Ok(false);
        }
        // A link that is not live may have a probe under way, which nothing waits for.
        let mut live = endpoint.links().iter().filter(|link| link.life.is_live());
        let idle = live.all(Link::is_idle);
        if idle {
            return Ok(endpoint.sender.is_clear() && endpoint.lost_messages.is_empty());
        }
        // A completion reports every earlier request too.
        if endpoint.home().control.has_unreported() {
            endpoint.write_tail(&mut *self.node, true)?;
        }
        endpoint.ask_for_reports(&mut *self.node)?;
        Ok(false)
    }
}

/// The error of a peer that no rail of this rank reaches.
#[cold]
fn unreachable(peer: usize, ours: &[Network], theirs: &[Network]) -> Error {
    let words = |networks: &[Network]| {
        let words = networks.iter().map(|network| {
            let layer = match network.link_layer {
                LinkLayer::InfiniBand => "InfiniBand",
                LinkLayer::Ethernet => "Ethernet",
                LinkLayer::Internet => "TCP",
            };
            format!("{layer} subnet {:#x}", network.subnet)
        });
        words.collect::<Vec<_>>().join(", ")
    };
    let why = format!(
        "no rail of the two hosts is in one network: ours are {}; those of rank {peer} are {}",
        words(ours),
        words(theirs)
    );
    Fault::Unreachable { peer, why }.into()
}
