//! The driver of the handshake: it makes endpoints, connects them, and ends them.
//!
//! The rank that first has a packet sends the addresses of its end (`Hello`). The peer connects its
//! own end, and answers with its addresses and that it is ready. If both begin at once, each takes
//! the other's hello for the answer to its own, and sends `Ready` when its end is connected. So
//! either may write as soon as it has learned that the other is ready. Where a device needs both
//! ends to connect queue pairs, the peer answers at once, and both send `Ready` when that is done.
//!
//! [`Connection`](super::connection::Connection) has the states.

use device::{Access, LinkLayer};

use super::connection::{Announced, Connection, Reply};
use super::credit::{Credits, EMPTY, MOST};
use super::endpoint::Endpoint;
use super::failover;
use super::handshake::{HandshakeMessage, Hello};
use super::inbound::Inbound;
use super::last_path;
use super::layout::RING;
use super::link::{Link, LinkQueues, SHARED_NOTICES};
use super::local::Local;
use super::message_buffers;
use super::messages;
use super::pairing::{Network, pairs};
use super::peer::{Connections, Peer};
use super::pool;
use super::qp_link::DEPTH;
use super::recovery;
use super::registered::Registered;
use super::ring_receiver::RingReceiver;
use super::ring_sender::RingSender;
use super::schedule::Schedules;
use super::srq_path;
use super::wr_id::QpRole;
use crate::{Error, Fault, Result};
use knobs::{QueuePairs, RdmaDesign};

/// Begins the connection to rank `to`, or progresses it.
#[cold]
#[inline(never)]
pub(super) fn connect(all: &mut Connections, to: usize) -> Result<()> {
    if all.endpoints.get(to).is_none() {
        open(all, to)?;
        let mut peer = all.peer(to);
        send_hello(&mut peer, false)?;
        last_path::await_word(&mut peer);
    }
    listen(all)
}

/// Makes this rank's end of the connection to rank `to`.
pub(super) fn open(all: &mut Connections, to: usize) -> Result<()> {
    let local = &mut all.local;
    let has_memory = all.endpoints.takes_memory(local.config.rings);
    let mut links = Vec::new();
    let mut window = MOST;
    for rail in local.in_use.iter() {
        let (link, size) = open_link(local, to, (links.len(), rail), has_memory)?;
        links.push(link);
        window = window.min(size);
    }
    if !has_memory {
        all.messages.activate();
    }
    let access = Access {
        remote_write: true,
        local_write: true,
        ..Access::default()
    };
    let memory = match has_memory {
        true => {
            let (rails, bytes) = (local.in_use, srq_path::room(&local.layout));
            Some(Registered::new(&mut *local.node, rails, bytes, access)?)
        }
        false => None,
    };
    let basic = local.config.design == RdmaDesign::Basic;
    let unordered = links.iter().any(Link::is_unordered);
    let inbound = Inbound::new(local.layout, RING, local.config.credit, unordered);
    let endpoint = Endpoint::new(
        links.into(),
        RingSender::new(local.layout, basic, local.charges),
        RingReceiver::new(inbound, memory, basic, local.charges),
        Credits::new(window),
    );
    all.endpoints.add(to, endpoint);
    all.attention.connecting += 1;
    Ok(())
}

/// Opens link number `index` of the endpoint to rank `to`, on rail `rail`. Returns the link and its
/// first window: the number of messages that the peer may have in flight.
fn open_link(
    local: &mut Local,
    to: usize,
    (index, rail): (usize, usize),
    has_memory: bool,
) -> Result<(Link, u32)> {
    let receives = local.receives(rail);
    let notices = match local.config.rails.queue_pairs {
        QueuePairs::Separate => 0,
        // Receives for notices in the queue pair for packets.
        QueuePairs::Shared => SHARED_NOTICES,
    };
    // A single link posts writes and reads in one order: reads need no queue pair of their own.
    let reads = notices == 0 && local.in_use.len() > 1;
    let messages = (MOST as usize + EMPTY).max(notices);
    let node = &mut *local.node;
    let rail = &mut local.rails[rail];
    let completions = (2 + usize::from(reads)) * DEPTH as usize + receives.max(messages);
    let cq = rail.cq_for(node, completions)?;
    let (pool, receives, window) = match has_memory {
        true => {
            let window = srq_path::fit(&local.layout) as u32;
            (None, receives.max(messages), window)
        }
        false => {
            let index = rail.index();
            let pool = rail.pools.admit(node, index, &local.layout)?;
            (Some(pool), 0, pool::FIRST)
        }
    };
    let queues = LinkQueues {
        cq,
        pool,
        receives,
        window,
        notices: rail.notice_srq(),
        reads,
    };
    let link = Link::open(node, rail, to, index, &queues)?;
    rail.add_queue_pair(link.bulk.qp(), to, QpRole::Bulk);
    rail.add_queue_pair(link.control.qp(), to, QpRole::Control);
    Ok((link, window))
}

fn send_hello(peer: &mut Peer, ready: bool) -> Result<()> {
    let Local {
        node,
        config,
        rails,
        ..
    } = &mut *peer.local;
    let endpoint = &peer.endpoint;
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
    peer.send_oob(&HandshakeMessage::Hello(Box::new(hello)))
}

/// Handles the handshake messages that have arrived, and progresses the connections whose queue
/// pairs a device is connecting.
pub(super) fn listen(all: &mut Connections) -> Result<()> {
    for peer in std::mem::take(&mut all.attention.in_progress) {
        go_on(all, peer)?;
    }
    loop {
        let ranks = all.endpoints.ranks();
        let next = match all.early.next(ranks) {
            None => all.local.node.oob_recv()?,
            early => early,
        };
        match next {
            None => return Ok(()),
            Some((from, bytes)) if from < ranks => on_bytes(all, from, &bytes)?,
            Some((from, bytes)) => {
                if !all.early.keep(from, bytes) {
                    let what = "too many ranks begin connections that this rank does not know";
                    return Err(Error::broken(from, what));
                }
            }
        }
    }
}

/// Makes every rank below `ranks` a peer. The next poll handles the hellos of those that have begun
/// a connection.
pub(super) fn add_peers(all: &mut Connections, ranks: usize) -> Result<()> {
    all.local.node.add_ranks(ranks)?;
    all.endpoints.grow(ranks);
    all.attention.all = true;
    Ok(())
}

/// Decodes and handles a handshake message of rank `from`, which exists.
fn on_bytes(all: &mut Connections, from: usize, bytes: &[u8]) -> Result<()> {
    let message = match from == all.local.rank {
        true => Err("it is not a peer of this rank".to_string()),
        false => HandshakeMessage::decode(bytes, &all.local.config),
    };
    match message {
        Ok(message) => on_message(all, from, message),
        Err(what) => Err(Error::broken(from, what)),
    }
}

fn on_message(all: &mut Connections, from: usize, message: HandshakeMessage) -> Result<()> {
    let known = all.endpoints.get(from).is_some();
    if known {
        let mut peer = all.peer(from);
        if peer.endpoint.connection == Connection::Lost {
            return Ok(());
        }
        last_path::heard_from(&mut peer);
    }
    match message {
        HandshakeMessage::Hello(hello) => on_hello(all, from, &hello),
        HandshakeMessage::Ready if known => all.peer(from).peer_ready(),
        HandshakeMessage::Bye if known => {
            let connection = &mut all.endpoints.of(from).connection;
            connection
                .on_bye()
                .map_err(|what| Error::broken(from, what))
        }
        HandshakeMessage::Link(message) if known => recovery::on_link(all, from, message),
        HandshakeMessage::Grant(lower) if known => {
            messages::on_grant(all.endpoints.of(from), from, lower)
        }
        HandshakeMessage::GaveUp => {
            if !known {
                open(all, from)?;
            }
            last_path::on_gave_up(&mut all.peer(from))
        }
        HandshakeMessage::Ready
        | HandshakeMessage::Bye
        | HandshakeMessage::Link(_)
        | HandshakeMessage::Grant(_) => {
            let what = "it sent a handshake message before its hello";
            Err(Error::broken(from, what))
        }
    }
}

fn on_hello(all: &mut Connections, from: usize, hello: &Hello) -> Result<()> {
    let answer = all.endpoints.get(from).is_none();
    if answer {
        open(all, from)?;
    }
    let announced = Announced {
        rings: hello.rings,
        ready: hello.ready,
        answer,
    };
    let mut peer = all.peer(from);
    let heard = peer.endpoint.connection.hello(announced);
    heard.map_err(|what| Error::broken(from, what))?;
    connect_links(&mut peer, hello)?;
    go_on(all, from)
}

/// Pairs the links of both ends, lets the devices connect their queue pairs, and closes links
/// without a partner.
fn connect_links(peer: &mut Peer, hello: &Hello) -> Result<()> {
    let Local {
        node,
        config,
        rails,
        ..
    } = &mut *peer.local;
    let endpoint = &mut *peer.endpoint;
    let ours: Vec<Network> = endpoint.links().iter().map(Link::network).collect();
    let theirs: Vec<Network> = hello.links.iter().map(|link| link.network).collect();
    let pairs = pairs(&ours, &theirs);
    if pairs.is_empty() {
        return Err(unreachable(peer.rank, &ours, &theirs));
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
        let traits: Vec<_> = traits.collect();
        Schedules::new(&config.rails, &traits)
    });
    for link in lost {
        let rail = &mut rails[link.rail()];
        rail.remove_queue_pair(link.control.qp());
        rail.remove_queue_pair(link.bulk.qp());
        link.close(&mut **node);
    }
    // Transfers may share the queue pair of packets only with rings, where packets consume no
    // receives.
    let by_rings = hello.rings && endpoint.receiver.has_memory();
    let is_wanted = config.rails.queue_pairs == QueuePairs::Shared && hello.shared;
    let is_ordered = |link: &Link| !link.is_unordered() && !link.peer_is_unordered();
    if is_wanted && by_rings && endpoint.links().iter().all(is_ordered) {
        endpoint
            .links_mut()
            .iter_mut()
            .for_each(Link::share_control);
    }
    let grant = endpoint.credits.grant(0, hello.credits);
    let grant = grant.ok_or_else(|| {
        let what = format!("its hello grants {} messages", hello.credits);
        Error::broken(peer.rank, what)
    })?;
    endpoint.credits.accept(grant);
    endpoint.sender.learn_remote(hello.address);
    let mut failed = failed.into_iter();
    failed.try_for_each(|(rail, why)| failover::cannot_connect(peer, rail, &why.to_string()))
}

/// Progresses a connection whose queue pairs the device is connecting. Once they are connected, the
/// peer gets a reply.
fn go_on(all: &mut Connections, to: usize) -> Result<()> {
    let mut peer = all.peer(to);
    for link in peer.endpoint.links() {
        let is_connecting = link.is_connecting(&mut *peer.local.node);
        let why = |why: device::Error| why.to_string();
        if is_connecting.map_err(|error| Fault::Unreachable {
            peer: to,
            why: why(error),
        })? {
            if peer.endpoint.connection.waits_for_device() {
                send_hello(&mut peer, false)?;
            }
            peer.attention.in_progress.push(to);
            return Ok(());
        }
    }
    let Connection::Connecting(announced) = peer.endpoint.connection else {
        unreachable!("rank {to} is not being connected");
    };
    prepare_for_writes(all, to, announced.rings)?;
    let mut peer = all.peer(to);
    let connection = &mut peer.endpoint.connection;
    let reply = connection.connected();
    let is_ready = connection.is_ready();
    match reply {
        Reply::Hello => send_hello(&mut peer, true)?,
        Reply::Ready => peer.send_oob(&HandshakeMessage::Ready)?,
    }
    // If the device could connect no queue pairs, the connection waits for a link that works.
    if peer.endpoint.is_cut_off() {
        last_path::cut_off(&mut peer);
    }
    match is_ready {
        true => peer.now_ready(),
        false => {
            last_path::await_word(&mut peer);
            Ok(())
        }
    }
}

/// Makes what this end needs before the peer may write to it: staging memory and receives.
fn prepare_for_writes(all: &mut Connections, to: usize, peer_has_memory: bool) -> Result<()> {
    let local = &mut all.local;
    let endpoint = all.endpoints.of(to);
    if !endpoint.receiver.has_memory() {
        return Ok(());
    }
    if !peer_has_memory {
        all.messages.activate();
        return message_buffers::adopt_memory(endpoint, &mut *local.node, &local.layout, to);
    }
    let rails = endpoint.rails();
    let bytes = local.layout.bytes;
    let staging = Registered::new(&mut *local.node, rails, bytes, Access::default())?;
    endpoint.sender.begin_ring(staging);
    let ring = all.endpoints.has_rings_now(to);
    let endpoint = all.endpoints.of(to);
    if let Some(watch) = &mut all.watch
        && let Some(memory) = endpoint.receiver.memory()
    {
        let keys = memory.keys.rails().iter();
        watch.begin(ring, keys.map(|rail| memory.keys.rkey(rail)));
    }
    for rail in endpoint.live_rails().iter() {
        for _ in 0..local.receives(rail) {
            let link = endpoint.link_on(rail);
            link.control.post_receive(&mut *local.node)?;
        }
    }
    Ok(())
}

/// True if every request to this peer is known to be complete. Requests a completion if none is
/// expected that reports the remaining requests.
pub(super) fn is_settled(peer: &mut Peer) -> Result<bool> {
    let endpoint = &mut *peer.endpoint;
    // Slots and pieces of a link that is being given up may have to be written again.
    if endpoint.is_fencing() {
        return Ok(false);
    }
    // A link that is not live may have a probe in flight, which nothing waits for.
    let mut live = endpoint.links().iter().filter(|link| link.life.is_live());
    let idle = live.all(Link::is_idle);
    if idle {
        return Ok(endpoint.sender.is_clear() && endpoint.lost_messages.is_empty());
    }
    // A completion reports every earlier request too.
    if endpoint.home().control.has_unreported() {
        endpoint.write_tail(&mut *peer.local.node, true)?;
    }
    endpoint.ask_for_reports(&mut *peer.local.node)?;
    Ok(false)
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
