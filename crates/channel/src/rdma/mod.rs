//! The RDMA transport: a ring in each receiver's registered memory, written by its sender, over the
//! devices of the rank's [`Node`]. `layout` describes the ring.
//!
//! A connection is made when a rank first puts a packet for a peer: both ends exchange the
//! addresses of their queue pairs and rings out of band. Each pair of ranks then has two queue
//! pairs for each pair of rails, one for packets and one for zero-copy transfers, so that a short
//! packet never waits behind a long transfer.
//!
//! Memory: a connection with rings costs twice `ring_bytes` at either end, and only once it is
//! used. A rank keeps rings with its first `rings` peers. With others it exchanges messages from
//! and to buffers that they share (`srq_path`): each of 10,000 peers then costs two queue pairs and
//! 2.7 buffers of the longest packet (44 KiB), and not two rings.
//!
//! [`Rdma`] is a composition of machines with private state:
//! - `rail`: a device port with its queues; `pairing`: the links between the rails of two hosts;
//!   `schedule`: the choice of links for packets and transfers;
//! - `registrations`: exposed memory, registered once for all rails of a protection domain, and the
//!   cache of it;
//! - `endpoint`: the connection to one peer, of `connection` (its state), `ring_sender`,
//!   `ring_receiver`, `credit` and a `link` for each rail;
//! - `bulk`: the account of zero-copy transfers;
//! - `outage`: the patience with a peer that no link reaches;
//! - `probe`: the schedule of probes.
//!
//! Invariants beyond those of every transport:
//! - nothing is written to a peer before it has said that its end is connected (`Ready`);
//! - memory is written to, or given back, only when no request that needs it is posted;
//! - no request that consumes a receive leaves without a receive for it at the peer (`credit`,
//!   `transfers`, and `receives` of `connect`): a peer that computes and does not poll never makes
//!   a device retry;
//! - every number that comes back from a device names its rail (`wr_id`), and means something on
//!   that rail only;
//! - a request that fails for lack of an answer ends the use of its link until the link works again
//!   (`failover`). Without a link that works the connection waits, as long as the user says
//!   (`last_path`); every other failure ends it at once. The error names peer, device and what to
//!   check.

mod awaited;
mod bulk;
mod coalesce;
mod complete;
mod config;
mod connect;
mod connection;
mod credit;
mod endpoint;
mod explain;
mod failover;
mod fence;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handshake;
mod immediate;
mod in_flight;
mod inbound;
mod interface;
mod known;
mod last_path;
mod layout;
mod lifecycle;
mod link;
mod messages;
mod notice;
mod outage;
mod outbound;
mod packet_write;
pub mod pairing;
mod paths;
mod pool;
mod probe;
mod put;
mod qp_link;
mod rail;
mod rail_set;
mod registered;
mod registrations;
mod reports;
mod ring_receiver;
mod ring_sender;
mod ring_watch;
mod schedule;
mod srq_path;
mod transfer;
mod transfers;
mod waiting;
mod wr_id;

use device::{Charges, Node};

use crate::{Error, Fault, Head, More, Result};
use awaited::AwaitedPeers;
use bulk::BulkEngine;
use complete::{PolledCompletions, no_completions};
pub use config::{Config, Design, QueuePairs, RailPolicy, RailSettings};
use endpoint::{Endpoint, Endpoints};
pub use last_path::Outages;
use layout::Layout;
pub use outage::Patience;
pub use packet_write::PacketWrite;
use paths::Paths;
use probe::Probes;
use rail::Rail;
use rail_set::{MAX_RAILS, RailSet};
pub use registrations::RegistrationCounts;
use registrations::Registrations;
use ring_watch::RingWatch;
use srq_path::SrqPath;

/// Polls of the rings from one poll of completions and handshake messages to the next, while the
/// rings are empty.
const IDLE_POLLS: u32 = 64;
/// As `IDLE_POLLS`, while the rings are not empty.
const BUSY_POLLS: u32 = 256;

/// The RDMA transport of one rank.
pub struct Rdma {
    rank: usize,
    /// The word for the rails in use.
    transport: &'static str,
    node: Box<dyn Node>,
    charges: Charges,
    config: Config,
    layout: Layout,
    rails: Box<[Rail]>,
    /// The rails that endpoints use.
    in_use: RailSet,
    /// Packets may arrive that only completions report.
    by_completion: bool,
    /// A device in use works only while its owner polls it, and each post to it costs much.
    needs_polls: bool,
    endpoints: Endpoints,
    /// The rings with news. `None`: the node does not know them, or packets arrive that only
    /// completions report.
    watch: Option<Box<RingWatch>>,
    /// Peers for which this rank has memory for rings.
    rings: usize,
    bulk: BulkEngine,
    registrations: Registrations,
    srq_path: SrqPath,
    polled: PolledCompletions,
    attention: Attention,
    awaited: AwaitedPeers,
    probes: Probes,
    /// The node knows when no path to a peer carries anything.
    knows_cuts: bool,
    paths: Paths,
}

/// The events that a rank has to poll for besides its rings.
#[derive(Default)]
struct Attention {
    /// Polls of the rings so far.
    polls: u32,
    /// Connections that are not ready.
    connecting: usize,
    /// Peers whose queue pairs a device is connecting.
    in_progress: Vec<usize>,
    /// Writes that wait for a completion: coalesced packets and head pointers.
    deferred: usize,
    /// Receives that are to be posted again.
    receives_due: u32,
    /// The next poll covers everything.
    all: bool,
    /// Polls of the rings that found nothing.
    idle_polls: u32,
    /// The time of the last poll of completions while transfers over several rails are under way,
    /// in nanoseconds.
    polled_at: u64,
    /// The most by which completions were found late then, in nanoseconds, as far as it is known.
    late: Option<u64>,
    /// Peers with links that are not live.
    impaired: Vec<usize>,
    /// Links are being given up, or something that they carried is not written again yet.
    fencing: bool,
    /// Peers whose silence is counted, and lost ones whose links are not drained.
    silent: Vec<usize>,
    /// The outages that have ended.
    outages: Outages,
    /// Rails whose failure has been reported.
    reported: [bool; MAX_RAILS],
    /// Reports for the user: a topic, and the words.
    reports: Vec<(String, String)>,
}

impl Rdma {
    /// The transport of rank `rank` of `ranks` ranks, over the rails of `node`.
    pub fn attach(node: Box<dyn Node>, rank: usize, ranks: usize, config: Config) -> Result<Rdma> {
        let mut node = device::with_immediates(node);
        let config = config.on(&*node);
        if rank >= ranks {
            return Err(Fault::Mismatch(format!(
                "rank {rank} does not exist in a job of {ranks} ranks"
            ))
            .into());
        }
        let count = node.rails().min(MAX_RAILS);
        let in_use = RailSet::below(match config.design {
            Design::ZeroCopy => count.min(config.rails.most.max(1)),
            // The other designs are those of one rail.
            _ => 1,
        });
        let rails: Box<[Rail]> = (0..count)
            .map(|index| Rail::open(&mut *node, index, in_use.contains(index)))
            .collect::<Result<_>>()?;
        let by_completion = in_use.iter().any(|rail| rails[rail].by_completion());
        let needs_polls = in_use.iter().any(|rail| rails[rail].polled());
        let layout = Layout::of(&config);
        let of = (config.design, layout.max_body());
        let paths = Paths::of(&mut *node, (rank, in_use), of);
        let layers = in_use.iter().map(|rail| rails[rail].network().link_layer);
        Ok(Rdma {
            rank,
            transport: explain::transport(layers),
            layout,
            paths,
            by_completion,
            needs_polls,
            watch: RingWatch::on(&mut *node).filter(|_| !by_completion),
            rails,
            in_use,
            endpoints: Endpoints::new(ranks),
            rings: 0,
            bulk: BulkEngine::default(),
            registrations: Registrations::new(&mut *node, in_use, config.keep_registrations),
            srq_path: SrqPath::default(),
            polled: no_completions(),
            attention: Attention::default(),
            awaited: AwaitedPeers::default(),
            probes: Probes::default(),
            charges: Charges::of(&mut *node),
            knows_cuts: node.knows_cuts(),
            config,
            node,
        })
    }

    /// The rank of this end.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The user's choices.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The rank's place in its machine.
    pub fn node(&mut self) -> &mut dyn Node {
        &mut *self.node
    }

    /// The work of the registration cache so far.
    pub fn registration_counts(&self) -> RegistrationCounts {
        self.registrations.counts()
    }

    /// Lets time pass until something may have changed, at most `nanos` nanoseconds. The caller has
    /// found nothing to do.
    pub fn wait(&mut self, nanos: u64) -> Result<()> {
        let attention = &mut self.attention;
        attention.all = true;
        attention.idle_polls = attention.idle_polls.wrapping_add(put::IDLE);
        self.send_grants()?;
        if !self.node.is_virtual() {
            self.probe()?;
        }
        self.tend_last_paths()?;
        let [urgent, retry] = self.next_retries();
        let judged = [self.next_judgement(), self.end_of_awaited()];
        let due = judged.into_iter().flatten().chain(urgent).min();
        if due.is_none() && retry.is_none() {
            self.node.wait(nanos)?;
            self.note_wake();
            return Ok(());
        }
        let now = self.node.now();
        let until = |at: u64| at.saturating_sub(now).max(1);
        let (due, retry) = (due.map(until), retry.map(until));
        let longest = [due, retry].into_iter().flatten().fold(nanos, u64::min);
        // While another link works, an attempt to take one back is no progress.
        match due.is_none() && longest < nanos {
            true => self.node.wait_idle(longest)?,
            false => self.node.wait(longest)?,
        }
        self.note_wake();
        Ok(())
    }

    /// Judges silent peers. An error: a peer is lost.
    pub(crate) fn tend_last_paths(&mut self) -> Result<()> {
        if self.knows_cuts {
            self.find_cuts();
        }
        match self.attention.silent.is_empty() {
            true => Ok(()),
            false => self.tend_silence(),
        }
    }

    /// The node knows when no path to a peer carries anything.
    pub(crate) fn knows_cuts(&self) -> bool {
        self.knows_cuts
    }

    /// The outages that have ended so far.
    pub(crate) fn outages(&self) -> Outages {
        self.attention.outages
    }

    /// The next poll must not be left out: this rank is about to sleep, or moves long messages.
    #[inline]
    pub(crate) fn must_poll(&self) -> bool {
        self.attention.all || self.bulk.is_moving()
    }

    /// A device in use works only while its owner polls it.
    pub(crate) fn needs_polls(&self) -> bool {
        self.needs_polls
    }

    /// Requests for devices to which a post costs much leave together from now on, or leave now.
    #[inline(never)]
    fn cork(&mut self, on: bool) {
        for rail in self.in_use.iter().filter(|rail| self.rails[*rail].polled()) {
            match on {
                true => self.node.rail(rail).cork(),
                false => self.node.rail(rail).uncork(),
            }
        }
    }

    /// This host's processors do the work of a device in use: a rank that spins keeps them from it.
    pub fn needs_processors(&self) -> bool {
        let mut in_use = self.in_use.iter();
        in_use.any(|rail| self.rails[rail].by_processor())
    }

    /// Zero-copy transfers of this rank are under way, or notices of peers are expected.
    #[inline(always)]
    pub fn is_moving(&self) -> bool {
        self.bulk.is_active()
    }

    /// The number of packets that have left for a peer, at most: a slot of coalesced packets counts
    /// as one.
    pub fn sent(&self, peer: usize) -> u64 {
        self.endpoints.get(peer).map_or(0, |endpoint| {
            endpoint.sender.last() + u64::from(endpoint.sender.is_coalescing())
        })
    }

    /// The number of a peer's packets that have been handed on, as the peer counts them.
    pub fn taken(&self, peer: usize) -> u64 {
        let endpoint = self.endpoints.get(peer);
        endpoint.map_or(0, |endpoint| endpoint.receiver.consumed())
    }

    /// Some of the packets that a peer coalesced in one slot have been handed on, and some not.
    pub fn is_amid(&self, peer: usize) -> bool {
        let endpoint = self.endpoints.get(peer);
        endpoint.is_some_and(|endpoint| endpoint.receiver.is_amid_slot())
    }

    /// Does what must be done before the rings are polled.
    #[inline]
    fn attend(&mut self) -> Result<()> {
        if self.attention.connecting > 0 {
            self.listen()?;
        }
        if self.by_completion
            || self.attention.deferred > 0
            || self.bulk.is_active()
            || self.srq_path.is_active()
        {
            self.poll()?;
        }
        if self.attention.deferred > 0 {
            self.send_deferred()?;
        }
        match self.attention.fencing {
            true => self.tend_fences(),
            false => Ok(()),
        }
    }

    /// Does what need be done only now and then: hears new peers, and finds requests that have
    /// failed.
    #[inline(never)]
    fn attend_to_all(&mut self) -> Result<()> {
        self.attention.all = false;
        self.listen()?;
        self.poll_all()?;
        if !self.attention.silent.is_empty() {
            self.tend_silence()?;
            // A program that computes between its polls makes few of them.
            self.attention.all = !self.attention.silent.is_empty();
        }
        match self.attention.impaired.is_empty() {
            true => Ok(()),
            false => self.tend_dead(),
        }
    }

    /// Takes packets out of all rings that may hold some.
    #[inline]
    fn drain_rings(
        &mut self,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        if self.watch.is_some() {
            return self.drain_watched(handler);
        }
        let mut packets = 0;
        for ring in 0..self.endpoints.ringed().len() {
            packets += self.drain(self.endpoints.ringed()[ring], handler)?;
        }
        Ok(packets)
    }

    /// As [`drain_rings`](Rdma::drain_rings), on a node that knows which rings have news. Where
    /// links have failed, every ring is polled: tails are due there without packets.
    fn drain_watched(
        &mut self,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let mut packets = 0;
        let is_whole = self.attention.impaired.is_empty() && !self.attention.fencing;
        let due = match &mut self.watch {
            Some(watch) => watch.take_due(&mut *self.node).filter(|_| is_whole),
            None => None,
        };
        let due = due.unwrap_or_else(|| (0..self.endpoints.ringed().len()).collect());
        for &ring in &due {
            let from = self.endpoints.ringed()[ring];
            let taken = self.drain(from, handler)?;
            packets += taken;
            let may_hold_more = taken > 0 || self.endpoints.of(from).receiver.tail_due();
            if let Some(watch) = &mut self.watch
                && may_hold_more
            {
                watch.demand(ring);
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.recycle(due);
        }
        Ok(packets)
    }

    /// Takes packets of one peer out of its ring.
    #[inline]
    fn drain(
        &mut self,
        from: usize,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> Result<usize> {
        let Rdma {
            endpoints, node, ..
        } = self;
        let endpoint = endpoints.of(from);
        let Endpoint {
            receiver, sender, ..
        } = endpoint;
        let packets = receiver
            .drain(sender, &mut **node, from, handler)
            .map_err(|what| Error::broken(from, what))?;
        let (is_due, is_ready) = (receiver.tail_due(), endpoint.connection.is_ready());
        if packets > 0 && !is_ready {
            self.peer_ready(from)?;
        }
        if is_due {
            self.endpoints.of(from).write_tail(&mut *self.node, false)?;
        }
        Ok(packets)
    }
}

impl Drop for Rdma {
    fn drop(&mut self) {
        let node = &mut *self.node;
        for endpoint in self.endpoints.drain() {
            endpoint.end(node);
        }
        self.registrations.end(node);
        for rail in &mut self.rails {
            rail.end(node);
        }
        self.srq_path.end(node);
    }
}

#[cfg(test)]
mod failover_tests;
#[cfg(test)]
mod full_tests;
#[cfg(test)]
mod last_path_tests;
#[cfg(test)]
mod mixed_tests;
#[cfg(test)]
mod rail_tests;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod tcp_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verbs_tests;
