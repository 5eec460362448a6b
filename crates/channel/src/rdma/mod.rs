//! The channel of ranks that reach each other by RDMA: a ring in each receiver's registered memory, written by its
//! sender (`layout` says how), over whatever device the rank's [`Node`] has.
//!
//! A connection is made when a rank first puts a packet for a peer: both ends tell each other, by the node's slow way,
//! where their queue pairs and rings are. Each pair of ranks then has two queue pairs, one for packets and one for
//! bulk transfers, so that a short packet never waits behind a long transfer.
//!
//! Memory: a connection with rings costs twice `ring_bytes` at either end, and only once it is used. A rank keeps rings
//! with its first `rings` peers; with others it exchanges messages from and to buffers that they share (`shared`), so
//! each of 10,000 peers costs two queue pairs and 2.7 buffers of the longest packet (44 KiB), and not two rings.
//!
//! What must always hold, besides what the channel promises:
//! - nothing is written to a peer before it has said that its end is connected (`Ready`);
//! - memory is written to, or given back, only when no request that needs it is under way;
//! - nothing leaves that takes a receive at the peer unless there is one (`credit`, `bulk`, and `receives` of `connect`): a
//!   peer that computes, and looks at nothing, never makes a device retry;
//! - a request that fails ends the connection, and the error names peer, device and what to check: it is never retried
//!   quietly, for what the device could not deliver in all its retries is lost.

mod bulk;
mod coalesce;
mod complete;
mod config;
mod connect;
mod credit;
pub mod explain;
mod handshake;
mod inbound;
mod interface;
mod layout;
mod outbound;
mod pool;
mod probe;
mod put;
mod qp_link;
mod registered;
mod srq_path;

use device::{Cq, Effort, Node, Placement, Remote, Srq};

use crate::{Fault, Head, More, Result};
use bulk::Bulk;
use complete::{Taken, none_taken};
pub use config::{Config, Design};
use credit::Window;
use inbound::Inbound;
use layout::Layout;
use outbound::Outbound;
use probe::Probes;
use qp_link::Link;
use registered::Registered;
use srq_path::Shared;

/// Packets taken from one ring before the next gets its turn.
const BATCH: usize = 32;
/// Looks from one look at completions and words of peers to the next, while there is nothing in the rings and while
/// there is.
const IDLE_LOOKS: u32 = 64;
const BUSY_LOOKS: u32 = 256;

pub struct Rdma {
    rank: usize,
    node: Box<dyn Node>,
    config: Config,
    layout: Layout,
    /// Only completions tell that a write is whole.
    by_completion: bool,
    cqs: Vec<Cq>,
    /// Completions that the last of them may have to hold.
    reserved: usize,
    srq: Srq,
    peers: Vec<Option<Box<Peer>>>,
    /// Peers with which there is memory for rings.
    rings: usize,
    /// Peers with a connection, or the beginning of one.
    known: Vec<usize>,
    /// Those whose packets come by rings.
    ringed: Vec<usize>,
    bulk: Bulk,
    shared: Shared,
    taken: Taken,
    attention: Attention,
    probes: Probes,
}

/// What a rank has to look at besides its rings.
#[derive(Default)]
struct Attention {
    looks: u32,
    /// Connections under way.
    connecting: usize,
    /// Of these, whose queue pairs the device is connecting.
    in_progress: Vec<connect::Connecting>,
    /// Peers with something that goes out once a completion has come.
    deferred: usize,
    /// Receives that are to be posted again.
    receives_due: u32,
    /// Look at everything next time.
    all: bool,
}

struct Peer {
    /// Its end is connected: it may be written to.
    ready: bool,
    /// Receives for its writes that are used up and not posted again.
    receives_due: u32,
    said_bye: bool,
    heard_bye: bool,
    /// Since when a read waits that shows whether the peer can be reached.
    asked: Option<u64>,
    control: Link,
    bulk: Link,
    out: Outbound,
    inbound: Inbound,
    /// What the peer may send by messages, and up to which message this rank may.
    window: Window,
    allowed: u64,
    /// Where the receives for its messages are, if not in `memory`.
    pool: usize,
    /// The word that the peer writes its tail to, a word of our own, and the ring that the peer writes to; if this end has
    /// memory for rings with this peer. If the peer has none, its messages come into it.
    memory: Option<Registered>,
    /// Where packets for the peer's ring are built, if both ends have memory for rings.
    staging: Option<Registered>,
    /// The peer's memory.
    remote: Option<Remote>,
}

/// Where things lie in the memory for a peer.
const TAIL: usize = 0;
const OWN: usize = 8;
const RING: usize = 64;

impl Rdma {
    pub fn attach(node: Box<dyn Node>, rank: usize, ranks: usize, config: Config) -> Result<Rdma> {
        let mut node = device::with_immediates(node);
        if rank >= ranks {
            return Err(Fault::Mismatch(format!(
                "rank {rank} does not exist in a job of {ranks} ranks"
            ))
            .into());
        }
        let device = node.rail(0);
        let by_completion = device.attributes().placement == Placement::Completion;
        let srq = device.create_srq(bulk::NOTICES)?;
        Ok(Rdma {
            rank,
            layout: Layout::of(&config),
            by_completion,
            cqs: Vec::new(),
            reserved: 0,
            srq,
            peers: (0..ranks).map(|_| None).collect(),
            rings: 0,
            known: Vec::new(),
            ringed: Vec::new(),
            bulk: Bulk::default(),
            shared: Shared::default(),
            taken: none_taken(),
            attention: Attention::default(),
            probes: Probes::default(),
            config,
            node,
        })
    }

    /// This host's processors do the work of its devices, so a rank that spins keeps them from it.
    pub fn by_processor(&mut self) -> bool {
        self.node.rail(0).attributes().by_processor
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn node(&mut self) -> &mut dyn Node {
        &mut *self.node
    }

    /// Nothing was found: lets time pass until something may have changed, at most so many nanoseconds.
    pub fn wait(&mut self, nanos: u64) -> Result<()> {
        self.attention.all = true;
        self.tell_grants()?;
        if !self.node.is_virtual() {
            self.probe()?;
        }
        Ok(self.node.wait(nanos)?)
    }

    /// Transfers are under way, ours or those that peers will tell of.
    #[inline(always)]
    pub fn is_moving(&self) -> bool {
        self.bulk.is_active()
    }

    /// How many packets have left for a peer, at most: that which is gathering counts.
    pub fn sent(&self, peer: usize) -> u64 {
        self.peers[peer].as_ref().map_or(0, |peer| {
            peer.out.last + u64::from(peer.out.gathering.is_some())
        })
    }

    /// How many of a peer's packets have been handed on, counted as the peer counts them.
    pub fn taken(&self, peer: usize) -> u64 {
        let peer = self.peers[peer].as_ref();
        peer.map_or(0, |peer| peer.inbound.taken())
    }

    /// The next look is at everything, and what comes after it raises an event. False: packets may come without one.
    pub fn arm(&mut self) -> Result<bool> {
        self.attention.all = true;
        self.tell_grants()?;
        self.probe()?;
        self.node.arm()?;
        Ok(self.by_completion)
    }

    #[inline(always)]
    fn peer(&mut self, peer: usize) -> &mut Peer {
        self.peers[peer].as_mut().expect("a peer with a connection")
    }

    /// What must be known before the rings are looked at.
    #[inline]
    fn attend(&mut self) -> Result<()> {
        if self.attention.connecting > 0 {
            self.listen()?;
        }
        if self.by_completion
            || self.attention.deferred > 0
            || self.bulk.is_active()
            || self.shared.is_active()
        {
            self.poll()?;
        }
        if self.attention.deferred > 0 {
            self.send_deferred()?;
        }
        Ok(())
    }

    /// What is looked at now and then: whether a new peer has spoken, whether a request has failed.
    #[inline(never)]
    fn attend_to_all(&mut self) -> Result<()> {
        self.attention.all = false;
        self.listen()?;
        self.poll()
    }

    /// Takes packets of one peer.
    #[inline]
    fn drain(
        &mut self,
        from: usize,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let nonsense = |what| Fault::Broken { peer: from, what }.into();
        let Rdma { peers, node, .. } = self;
        let Some(peer) = &mut peers[from] else {
            return Ok(0);
        };
        let Peer {
            memory: Some(Registered { block, .. }),
            inbound,
            out,
            ready,
            ..
        } = &mut **peer
        else {
            return Ok(0);
        };
        let mut packets = 0;
        while packets < BATCH {
            let Some(arrived) = inbound.look(block).map_err(nonsense)? else {
                break;
            };
            if !out.heard_tail(arrived.tail) {
                return Err(nonsense(put::TOO_MANY.into()));
            }
            packets += 1;
            let body = arrived.body.clone();
            if !body.is_empty() {
                node.charge(Effort::Copy(body.len()));
            }
            let more = handler(from, arrived.head, block.bytes(body.start, body.len()));
            node.charge(Effort::Receive);
            inbound.take(arrived);
            if self.config.design == Design::Basic {
                inbound.owes = true;
            }
            if more == More::Enough {
                break;
            }
        }
        let (owes, ready) = (inbound.owes, *ready);
        if packets > 0 && !ready {
            self.now_ready(from)?;
        }
        if owes {
            self.send_tail(from, false)?;
        }
        Ok(packets)
    }
}

impl Drop for Rdma {
    fn drop(&mut self) {
        for peer in self.peers.iter_mut().filter_map(|peer| peer.take()) {
            let device = self.node.rail(peer.control.rail);
            // What the device says to this no longer matters; first the queue pairs, so that nothing writes any more.
            let _ = device.destroy_qp(peer.control.qp);
            let _ = device.destroy_qp(peer.bulk.qp);
            for memory in peer.memory.into_iter().chain(peer.staging) {
                memory.end(device);
            }
        }
        self.shared.end(&mut *self.node);
    }
}

#[cfg(test)]
mod full_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verbs_tests;
