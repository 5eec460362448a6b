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
//! 2.7 buffers of the longest packet (44 KiB), and not two rings. Peers that wait for credit are
//! lent up to 15 buffers more, of a reserve of at most 32 times `ring_bytes` a rail (8 MiB).
//!
//! [`Rdma`] is a composition of machines with private state, and of drivers, which are functions
//! over all connections of a rank or over one of them (`peer`):
//! - `local`: this rank's side of all connections: its node and its rails;
//! - `rail`: a device port with its queues; `pairing`: the links between the rails of two hosts;
//!   `schedule`: the choice of links for packets and transfers;
//! - `endpoint`: the connection to one peer, of `connection` (its state), `ring_sender`,
//!   `ring_receiver`, `credit` and a `link` for each rail;
//! - `transfers`: zero-copy transfers, of `bulk` (their account) and `registrations` (exposed
//!   memory, registered once for all rails of a protection domain, and the cache of it);
//! - `last_path`, `failover`, `revival`: the failure and the return of links and peers; `outage`:
//!   the clocks of a peer that no link reaches;
//! - `completions`: the completions of devices; above it `recovery` and `silence`, which drive
//!   failed links and silent peers, and `probe`, the schedule of probes;
//! - `connect`: the handshake; `early`: handshake messages of ranks that this rank does not know
//!   yet; `put`: the path of a packet.
//!
//! Invariants beyond those of every transport:
//! - nothing is written to a peer before it has said that its end is connected (`Ready`);
//! - memory is written to, or given back, only when no request that needs it is posted;
//! - no request that consumes a receive leaves without a receive for it at the peer (`credit`,
//!   `transfers`, and `receives` of `local`): a peer that computes and does not poll never makes
//!   a device retry;
//! - every number that comes back from a device names its rail (`wr_id`), and means something on
//!   that rail only;
//! - a request that fails for lack of an answer ends the use of its link until the link works again
//!   (`failover`). Without a link that works the connection waits, as long as the user says
//!   (`last_path`); every other failure ends it at once. The error names peer, device and what to
//!   check.

mod attention;
mod awaited;
mod bulk;
mod coalesce;
mod completions;
mod config;
mod connect;
mod connection;
mod credit;
mod drain;
mod early;
mod endpoint;
mod endpoints;
mod explain;
mod failover;
mod fence;
mod flow;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handshake;
mod immediate;
mod in_flight;
mod inbound;
mod interface;
mod last_path;
mod layout;
mod lifecycle;
mod link;
mod local;
mod message_buffers;
mod messages;
mod notice;
mod outage;
mod outbound;
mod packet_write;
pub mod pairing;
mod paths;
mod peer;
mod polled;
mod pool;
mod probe;
mod put;
mod qp_link;
mod rail;
mod rail_set;
mod recovery;
mod registered;
mod registrations;
mod reported_packets;
mod reports;
mod revival;
mod ring_receiver;
mod ring_sender;
mod ring_watch;
mod room;
mod schedule;
mod silence;
mod srq_path;
mod transfer;
mod transfers;
mod waiting;
mod wr_id;

use device::Node;

use crate::{Capabilities, Fault, PathCosts, RailChoice, Result};
use attention::Attention;
use awaited::AwaitedPeers;
use bulk::BulkEngine;
pub use config::{Config, RailSettings};
use early::EarlyMessages;
use endpoints::Endpoints;
use handshake::HandshakeMessage;
use local::Local;
pub use outage::{Outages, Patience};
pub use packet_write::PacketWrite;
use paths::Paths;
use peer::Connections;
use polled::PolledCompletions;
use probe::Probes;
pub use registrations::RegistrationCounts;
use registrations::Registrations;
use ring_watch::RingWatch;
use srq_path::SrqPath;
use transfers::Transfers;

/// The number of polls of the rings between two polls of completions and handshake messages, while
/// the rings are empty.
const IDLE_POLLS: u32 = 64;
/// The number of polls of the rings between two polls of completions and handshake messages, while
/// the rings have packets.
const BUSY_POLLS: u32 = 256;

/// The RDMA transport of one rank: its connections over all rails.
pub struct Rdma {
    /// The capabilities towards peers on other hosts, and towards those of this host.
    offers: [Capabilities; 2],
    connections: Connections,
    awaited: AwaitedPeers,
    probes: Probes,
    paths: Paths,
}

impl Rdma {
    /// The transport of rank `rank` of `ranks` ranks, over the rails of `node`.
    pub fn attach(node: Box<dyn Node>, rank: usize, ranks: usize, config: Config) -> Result<Rdma> {
        let node = device::with_immediates(node);
        if rank >= ranks {
            return Err(Fault::Mismatch(format!(
                "rank {rank} does not exist in a job of {ranks} ranks"
            ))
            .into());
        }
        let mut local = Local::open(node, rank, config)?;
        let of = (local.config.design, local.layout.max_body());
        let (node, in_use) = (&mut *local.node, local.in_use);
        let paths = Paths::of(node, (rank, in_use), of);
        let watch = RingWatch::on(node).filter(|_| !local.unordered);
        let transfers = Transfers {
            bulk: BulkEngine::default(),
            registrations: Registrations::new(node, in_use, local.config.keep_registrations),
        };
        Ok(Rdma {
            offers: paths.both().map(|cost| explain::offer(&local, cost)),
            connections: Connections {
                endpoints: Endpoints::new(ranks),
                early: EarlyMessages::default(),
                transfers,
                messages: SrqPath::default(),
                attention: Attention::default(),
                watch,
                polled: PolledCompletions::none(),
                local,
            },
            awaited: AwaitedPeers::default(),
            probes: Probes::default(),
            paths,
        })
    }

    /// Makes all ranks below `ranks` peers of this rank.
    pub(crate) fn add_peers(&mut self, ranks: usize) -> Result<()> {
        connect::add_peers(&mut self.connections, ranks)
    }

    /// The world rank of this rank.
    pub fn rank(&self) -> usize {
        self.connections.local.rank
    }

    /// The settings of the transport.
    pub fn config(&self) -> &Config {
        &self.connections.local.config
    }

    /// The rank's node: its devices, its clock and its out-of-band messages.
    pub fn node(&mut self) -> &mut dyn Node {
        &mut *self.connections.local.node
    }

    /// The hits and misses of the registration cache.
    pub fn registration_counts(&self) -> RegistrationCounts {
        self.connections.transfers.registrations.counts()
    }

    /// Lets time pass until something may have changed, at most `nanos` nanoseconds. The caller has
    /// found nothing to do.
    pub fn wait(&mut self, nanos: u64) -> Result<()> {
        self.pass(nanos, |node, longest, idle| match idle {
            // While another link works, an attempt to take one back is no progress.
            true => node.wait_idle(longest),
            false => node.wait(longest),
        })
    }

    /// Lets the announced computing of the program pass, on a modelled machine, until something may
    /// have changed. False: all of it has passed.
    pub(crate) fn compute(&mut self) -> Result<bool> {
        self.pass(u64::MAX, |node, longest, _| match node.accounting() {
            Some(accounting) => accounting.compute(longest),
            None => Ok(false),
        })
    }

    /// Lets time pass by `then`, until something may have changed or is due. `then` gets the limit,
    /// at most `nanos`, and true if only an attempt to connect a dead link is due.
    fn pass<T>(
        &mut self,
        nanos: u64,
        then: impl FnOnce(&mut dyn Node, u64, bool) -> device::Result<T>,
    ) -> Result<T> {
        let attention = &mut self.connections.attention;
        attention.all = true;
        attention.idle_polls = attention.idle_polls.wrapping_add(put::IDLE);
        self.send_grants()?;
        if !self.connections.local.node.is_virtual() {
            self.probes.probe(&mut self.connections)?;
        }
        self.check_last_paths()?;
        let all = &mut self.connections;
        let [urgent, retry] = recovery::next_retries(all);
        let patience = all.local.config.patience;
        let awaited = self.awaited.end_of_wait(patience);
        let judged = [silence::next_judgement(all), awaited];
        let due = judged.into_iter().flatten().chain(urgent).min();
        let node = &mut all.local.node;
        if due.is_none() && retry.is_none() {
            let passed = then(&mut **node, nanos, false)?;
            completions::note_wake(all);
            return Ok(passed);
        }
        let now = node.now();
        let until = |at: u64| at.saturating_sub(now).max(1);
        let (due, retry) = (due.map(until), retry.map(until));
        let longest = [due, retry].into_iter().flatten().fold(nanos, u64::min);
        let is_idle = due.is_none() && longest < nanos;
        let passed = then(&mut **node, longest, is_idle)?;
        completions::note_wake(all);
        Ok(passed)
    }

    /// Times the silence of `peer`, for which this rank waits. To be called repeatedly in a wait.
    #[cold]
    pub(crate) fn contact(&mut self, peer: usize) -> Result<()> {
        self.awaited.contact(&mut self.connections, peer)
    }

    /// Gives up the peers whose silence has lasted too long. An error: at least one peer is lost.
    pub(crate) fn check_last_paths(&mut self) -> Result<()> {
        silence::check(&mut self.connections)
    }

    /// Gives up a peer because another part of this rank has given it up.
    pub(crate) fn give_up_peer(&mut self, peer: usize) {
        silence::give_up(&mut self.connections, peer);
    }

    /// True if the node detects that no path to a peer carries anything.
    pub(crate) fn knows_cuts(&self) -> bool {
        self.connections.local.knows_cuts
    }

    /// The outages of this rank that have ended until now.
    pub(crate) fn outages(&self) -> Outages {
        self.connections.attention.outages
    }

    /// True if the next poll is needed: this rank is about to sleep, or moves long messages.
    #[inline]
    pub(crate) fn must_poll(&self) -> bool {
        self.connections.attention.all || self.connections.transfers.bulk.is_moving()
    }

    /// True if a device in use works only while its owner polls it.
    pub(crate) fn needs_polls(&self) -> bool {
        self.connections.local.needs_polls
    }

    /// True if processors of this host do the work of a device in use. A spinning rank then delays
    /// that work.
    pub fn needs_processors(&self) -> bool {
        let mut in_use = self.connections.local.rails_in_use();
        in_use.any(|rail| rail.by_processor())
    }

    /// True if zero-copy transfers of this rank are in flight, or notices of peers are expected.
    #[inline(always)]
    pub fn is_moving(&self) -> bool {
        self.connections.transfers.bulk.is_active()
    }

    /// The costs of the path to another host, and of the path within this host.
    pub(crate) fn paths(&self) -> [PathCosts; 2] {
        self.paths.both()
    }

    /// The choice of rails for a message of `len` bytes to `peer`, and the choices not taken.
    pub(crate) fn explain_rails(&mut self, peer: usize, len: usize) -> RailChoice {
        let Connections {
            local, endpoints, ..
        } = &mut self.connections;
        explain::rails(local, endpoints.get(peer), len)
    }

    /// The names of the devices in use, in the order of rails. Empty in virtual time.
    pub(crate) fn rail_names(&mut self) -> Vec<String> {
        let local = &mut self.connections.local;
        if local.node.is_virtual() {
            return Vec::new();
        }
        let in_use = local.in_use;
        in_use.iter().map(|rail| local.device(rail)).collect()
    }

    /// Takes the reports about rails since the last call, each with its topic and its text.
    pub fn take_reports(&mut self) -> Vec<(String, String)> {
        let failed = self.connections.attention.take_reports().into_iter();
        let warnings = self.connections.local.node.warnings().into_iter();
        let warnings = warnings.map(|(rail, words)| (format!("stranger-{rail}"), words));
        failed.chain(warnings).collect()
    }

    /// The rails to which strangers have connected: number, device, number of connections.
    pub fn strangers(&mut self) -> Vec<(usize, String, u64)> {
        let local = &mut self.connections.local;
        let counts = local.node.strangers().into_iter().enumerate();
        let visited: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        let named = visited.into_iter();
        let named = named.map(|(rail, count)| (rail, local.device(rail), count));
        named.collect()
    }

    /// An upper bound of the number of packets that have left for a peer. A slot of coalesced
    /// packets counts as one.
    pub fn sent(&self, peer: usize) -> u64 {
        self.connections.endpoints.get(peer).map_or(0, |endpoint| {
            endpoint.sender.last() + u64::from(endpoint.sender.is_coalescing())
        })
    }

    /// The number of a peer's packets that have been passed to the handler, counted as the peer's
    /// [`sent`](Rdma::sent) counts them.
    pub fn taken(&self, peer: usize) -> u64 {
        let endpoint = self.connections.endpoints.get(peer);
        endpoint.map_or(0, |endpoint| endpoint.receiver.consumed())
    }

    /// True if some packets of a coalesced slot of this peer have been passed to the handler, and
    /// others have not.
    pub fn is_amid(&self, peer: usize) -> bool {
        let endpoint = self.connections.endpoints.get(peer);
        endpoint.is_some_and(|endpoint| endpoint.receiver.is_amid_slot())
    }

    /// Progresses handshakes, completions and failed links before the rings are polled.
    #[inline]
    fn attend(&mut self) -> Result<()> {
        let all = &mut self.connections;
        if all.attention.connecting > 0 {
            connect::listen(all)?;
        }
        if all.local.unordered
            || all.attention.deferred > 0
            || all.transfers.bulk.is_active()
            || all.messages.is_active()
        {
            completions::poll(all)?;
        }
        if all.attention.deferred > 0 {
            coalesce::send_deferred(all)?;
        }
        match all.attention.fencing {
            true => self.progress_fences(),
            false => Ok(()),
        }
    }

    /// Progresses links that are being given up. To be called while there are some.
    #[cold]
    #[inline(never)]
    fn progress_fences(&mut self) -> Result<()> {
        let all = &mut self.connections;
        completions::poll_all(all)?;
        connect::listen(all)?;
        recovery::progress_fences(all)
    }

    /// Does the rare work of a poll: receives the hellos of new peers, and polls all completion
    /// queues, where failed requests show.
    #[inline(never)]
    fn attend_to_all(&mut self) -> Result<()> {
        let all = &mut self.connections;
        all.attention.all = false;
        connect::listen(all)?;
        completions::poll_all(all)?;
        if !all.attention.silent.is_empty() {
            silence::check_silent(all)?;
            // A program that computes between its polls makes few: each of them checks again.
            all.attention.all = !all.attention.silent.is_empty();
        }
        match all.attention.impaired.is_empty() {
            true => Ok(()),
            false => recovery::progress_dead(all),
        }
    }

    /// Sends grants of credits that no packet has carried.
    fn send_grants(&mut self) -> Result<()> {
        let all = &mut self.connections;
        messages::send_grants(&mut all.messages, &mut all.local, &mut all.endpoints)
    }

    /// Ends all connections. True: every packet that was put is in its peer's memory, and every
    /// peer has got the reports that it needs. The caller repeats the call until then. Only after
    /// that may this end be dropped.
    fn end_connections(&mut self) -> Result<bool> {
        connect::listen(&mut self.connections)?;
        completions::poll(&mut self.connections)?;
        // A link may fail with the last requests of the job.
        if self.connections.attention.fencing {
            self.progress_fences()?;
        }
        let all = &mut self.connections;
        let mut ended = true;
        for at in 0..all.endpoints.known().len() {
            let to = all.endpoints.known()[at];
            let connection = all.endpoints.of(to).connection;
            if !connection.is_ready() {
                ended &= connection.is_over();
                continue;
            }
            coalesce::write_coalesced(all, to)?;
            let mut peer = all.peer(to);
            if !peer.endpoint.connection.has_said_bye() && connect::is_settled(&mut peer)? {
                peer.endpoint.connection.say_bye();
                peer.send_oob(&HandshakeMessage::Bye)?;
                last_path::await_word(&mut peer);
            }
            ended &= peer.endpoint.connection.is_over();
        }
        Ok(ended)
    }
}

impl Drop for Rdma {
    fn drop(&mut self) {
        let all = &mut self.connections;
        let node = &mut *all.local.node;
        for endpoint in all.endpoints.drain() {
            endpoint.end(node);
        }
        all.transfers.registrations.end(node);
        for rail in &mut all.local.rails {
            rail.end(node);
        }
        all.messages.end(node);
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
