//! A rank: the MPI state of one process of a job, and its blocking sends and receives.

pub(crate) mod bootstrap;
pub(crate) mod drive;
mod progress;
mod report;
mod wait;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use channel::lock::{Guard, RankLock};
use channel::{Capabilities, RankNode, Router, Transport, VirtualTime, Waiter};
use cost_cache::CostLines;
use datatype::Elements;
use datatype::local_work::{Clock, LocalWork, Meter};
use knobs::{CostSource, Knobs};
use pmi::{Bootstrap, Hosts};
use profile::RankProfile;

use crate::algorithms::AlgorithmTable;
use crate::comm::{Comm, Core, Members};
use crate::op::Operation;
use crate::p2p::protocol::{CopyCostSource, Limits, Protocol};
use crate::p2p::protocol_report;
use crate::p2p::{Body, Messages};
use crate::state::{Engine, FastPath, Objects, State};
use crate::{Class, Error, Result, Status};
use bootstrap::{NewPeer, Wiring, limits, transports};

/// A rank of a job. Threads of the process share it; its [`State`] is behind a lock.
///
/// ```no_run
/// # fn main() -> mpi::Result<()> {
/// let rank = mpi::Rank::new(None, knobs::Knobs::default())?;
/// assert_eq!((rank.rank(), rank.size()), (0, 1));
/// rank.finish("MPI_Finalize")
/// # }
/// ```
pub struct Rank {
    state: RankLock<State>,
    /// The waiter, in which all waits of this rank happen.
    pub(crate) waiter: Waiter,
    /// The table that chooses the algorithms of collective operations.
    pub(crate) algorithms: AlgorithmTable,
    pub(crate) limits: Limits,
    /// The settings of this rank.
    pub(crate) knobs: Knobs,
    /// The connection to the launcher.
    bootstrap: Arc<dyn Bootstrap>,
    rank: usize,
    size: usize,
    /// The host of each rank. The rank's lock is never taken while this one is held.
    hosts: RwLock<Hosts>,
    /// The meter of work on this rank's own memory; `None` on a real machine.
    meter: Option<Arc<Meter>>,
}

/// Advice to a user whose threads have called at once without `MPI_THREAD_MULTIPLE`.
const OVERLAP: &str = "threads may call at once if MPI_Init_thread grants MPI_THREAD_MULTIPLE";

impl Rank {
    /// Makes the rank of a job with these connections. `None`: the job has this rank alone.
    ///
    /// # Errors
    /// A setting is invalid, or a transport cannot be opened.
    pub fn new(job: Option<Wiring>, knobs: Knobs) -> Result<Rank> {
        let Wiring {
            bootstrap,
            mut peers,
            work,
            choices,
        } = job.unwrap_or_else(Wiring::alone);
        let hosts = bootstrap.hosts().clone();
        let (rank, size) = (peers.rank, peers.size);
        let settings = transports(&knobs, hosts.index(rank), bootstrap.reports_deaths());
        let meter = work.meter(&mut peers);
        let mut router = Router::build(peers, &settings)?;
        let mut limits = limits(&knobs);
        if !router.machine().abilities().measures_time {
            // The time of this process says nothing about a modelled machine, and differs from run
            // to run.
            limits.copy_costs = limits.copy_costs.without_learning();
        }
        let messages = Messages::new(&mut router, size, limits);
        let waiter = Waiter::new(&mut router, &settings.wait);
        let algorithms = AlgorithmTable::new(&knobs.collectives, knobs.tree_arity)?;
        let algorithms = algorithms.sharing(choices);
        let world = Core::new(0, Members::All(size), rank);
        let alone = Core::new((rank as u64) << 32 | 1, vec![rank as u32].into(), 0);
        let predefined = (
            Comm::new(world, "MPI_COMM_WORLD"),
            Comm::new(alone, "MPI_COMM_SELF"),
        );
        let noting = router.machine().keeps_notes().then_some(rank as u32);
        let state = State {
            engine: Engine::new(router, messages, bootstrap.clone()),
            objects: Objects::new(predefined, rank, noting, meter.clone()),
        };
        Ok(Rank {
            state: RankLock::new(state, OVERLAP),
            waiter,
            algorithms,
            limits,
            knobs,
            bootstrap,
            rank,
            size,
            hosts: RwLock::new(hosts),
            meter,
        })
    }

    /// Nanoseconds since a fixed moment, in virtual time on a modelled machine.
    pub fn now(&self) -> u64 {
        self.waiter
            .now(|| self.lock().engine.router.machine().now())
    }

    /// The rank's time on its modelled machine. `None` on a real machine.
    pub fn virtual_time(&self) -> Option<VirtualTime> {
        self.lock().engine.router.machine().virtual_time()
    }

    /// Adds the kinds of work that this rank has done on its own memory so far to the recording.
    /// `clock` measures their times.
    pub fn keep_local_work(&self, clock: Clock) {
        if let Some(meter) = &self.meter {
            self.lock()
                .engine
                .router
                .machine()
                .keep_local_work(meter, clock);
        }
    }

    /// The meter of work on this rank's own memory. `None` on a real machine, where the work itself
    /// takes the time.
    pub fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    /// Counts work on `amount` bytes of this rank's own memory, a part of a vector of `of` bytes.
    #[inline(always)]
    pub fn worked(&self, work: LocalWork, amount: usize, of: usize) {
        if let Some(meter) = &self.meter {
            meter.add(work, amount, of);
        }
    }

    /// Reduces `input` into `inout`, parts of vectors of `whole` bytes. Only predefined operations
    /// are counted here: users' functions count their time themselves.
    #[inline]
    pub(crate) fn combine(
        &self,
        op: &Operation,
        input: &Elements,
        inout: &Elements,
        whole: usize,
    ) -> Result<()> {
        op.combine(input, inout)?;
        if let Some(meter) = &self.meter
            && let Some(work) = op.local_work(inout.ty())
        {
            meter.add(work, inout.bytes().min(input.bytes()), whole);
        }
        Ok(())
    }

    /// `MPI_Reduce_local`.
    ///
    /// # Errors
    /// The operation is not for elements of this type, or both vectors are the same memory.
    pub fn reduce_local(&self, input: &Elements, inout: &Elements, op: &Operation) -> Result<()> {
        op.check_local(input, inout)?;
        self.combine(op, input, inout, inout.bytes())
    }

    /// Counts this rank's messages in `profile` from now on.
    pub fn count_messages(&self, profile: Arc<RankProfile>) {
        self.lock().engine.messages.count_in(profile);
    }

    /// Number of bytes of unexpected messages that this rank keeps.
    pub fn unexpected_bytes(&self) -> usize {
        let state = self.lock();
        let bodies = state.engine.messages.unexpected().map(|(_, one)| &one.body);
        bodies.map(Body::kept).sum()
    }

    /// True if this rank announces the receives that it has posted to their senders.
    pub fn announces_receives(&self) -> bool {
        self.lock().engine.messages.announces()
    }

    /// The capabilities of the transport that reaches a peer.
    pub fn capabilities(&self, peer: usize) -> Capabilities {
        self.lock().engine.router.capabilities(peer)
    }

    /// The protocols for messages to a peer: the least length in bytes at which each is used, the
    /// protocol, and the estimated time of a message of that length in nanoseconds.
    pub fn explain(&self, peer: usize) -> Vec<(usize, Protocol, u64)> {
        let capabilities = self.capabilities(peer);
        protocol_report::explain(&capabilities, &self.limits)
    }

    /// Takes costs that earlier jobs of the user have measured on this host, for all its ranks.
    /// They have no effect where nothing is learned from time.
    pub fn begin_with_costs(&self, kept: &CostLines) {
        self.lock().engine.messages.begin_with(kept);
    }

    /// The costs of this host to be kept for later jobs. `None`: its ranks have measured none.
    pub fn costs_to_keep(&self) -> Option<CostLines> {
        self.lock().engine.messages.costs_to_keep()
    }

    /// True if the costs that this rank measures are to be kept for later jobs.
    pub fn keeps_costs(&self) -> bool {
        self.learns_costs() && self.knobs.costs == CostSource::Keep
    }

    /// True if this rank chooses paths within its host by times that it measures.
    fn learns_costs(&self) -> bool {
        self.limits.copy_costs == CopyCostSource::Learned
    }

    /// True if this rank may choose the method of a collective operation by measured times.
    pub(crate) fn learns(&self) -> bool {
        self.learns_costs() && self.algorithms.is_free()
    }

    /// The world rank of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The host of each rank of the job at this moment.
    pub fn hosts(&self) -> Hosts {
        self.placement().clone()
    }

    /// The number of the host of a world rank.
    pub(crate) fn host_of(&self, world: usize) -> u32 {
        self.placement().of(world)
    }

    fn placement(&self) -> RwLockReadGuard<'_, Hosts> {
        self.hosts.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds peers: ranks that have joined the job since this rank started. The bootstrap numbers
    /// them after all known ranks, alike on all ranks.
    ///
    /// A new peer may begin to send before this call: its messages wait until then. Only this call
    /// makes it a peer. It is reached over devices, because shared memory has room only for the
    /// ranks that existed when it was made. `node`: the devices of a rank that has none yet;
    /// otherwise ignored.
    ///
    /// # Errors
    /// The new ranks' numbers do not follow the known ones, or this rank has no device.
    pub fn add_peers(&self, new: &[NewPeer], node: Option<RankNode>) -> Result<()> {
        let Engine {
            router, messages, ..
        } = &mut self.lock().engine;
        let known = self.placement().ranks();
        if let Some((peer, next)) = new
            .iter()
            .zip(known..)
            .find(|(peer, next)| peer.rank != *next)
        {
            let rank = peer.rank;
            return Err(Error::new(
                Class::INTERN,
                format!("rank {rank} cannot be added: the next new rank has the number {next}"),
            ));
        }
        let ranks = known + new.len();
        let local_rank = self.placement().index(self.rank);
        let settings = transports(&self.knobs, local_rank, self.bootstrap.reports_deaths());
        if router.add_peers(ranks, node, settings.rdma)? {
            self.waiter.add_devices(router);
        }
        messages.add_peers(router, known..ranks);
        let mut hosts = self.hosts.write().unwrap_or_else(PoisonError::into_inner);
        new.iter().for_each(|peer| hosts.add(peer.host));
        Ok(())
    }

    /// Number of ranks of the job at its start, which MPI_COMM_WORLD has.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The connection to the launcher.
    pub fn bootstrap(&self) -> &Arc<dyn Bootstrap> {
        &self.bootstrap
    }

    /// Locks the state of the rank.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Locks the rank's state, and gives access to the program's objects.
    #[inline(always)]
    pub fn objects(&self) -> LockedObjects<'_> {
        LockedObjects(self.lock())
    }

    /// Leaves the modelled machine: the other ranks do not wait for this rank any more.
    pub fn leave_machine(&self) {
        self.lock().engine.router.leave();
    }

    /// The address of the rank's lock: a number in memory that is odd while a call is inside MPI.
    pub fn lock_address(&self) -> usize {
        self.state.word_address()
    }

    /// True if several threads may call at the same time.
    #[inline(always)]
    pub fn threads(&self) -> bool {
        self.state.threads()
    }

    /// Allows several threads to call at the same time (`MPI_THREAD_MULTIPLE`).
    pub fn allow_threads(&self) {
        self.lock().engine.fast_path = FastPath::default();
        self.state.allow_threads();
    }

    /// Lets the progress thread take the lock between calls. Must be called without the rank's
    /// lock.
    pub(crate) fn admit_progress_thread(&self) {
        self.state.admit_progress_thread();
    }

    /// Records that the progress thread has ended. Must be called without the rank's lock.
    pub(crate) fn dismiss_progress_thread(&self) {
        self.state.dismiss_progress_thread();
    }

    /// Takes the rank's lock for the progress thread. `None`: the lock is held.
    pub(crate) fn try_lock_for_progress(&self) -> Option<Guard<'_, State>> {
        self.state.try_lock_for_progress()
    }

    /// The status; or an error, if the status has an error class.
    ///
    /// # Errors
    /// The operation of the status failed. The text is that of the rank's last error, if that has
    /// the class of the status.
    pub fn result_of(&self, status: Status) -> Result<Status> {
        self.lock().result_of(status)
    }
}

/// The objects of a rank, locked until this is dropped.
pub struct LockedObjects<'a>(Guard<'a, State>);

impl Deref for LockedObjects<'_> {
    type Target = Objects;

    #[inline(always)]
    fn deref(&self) -> &Objects {
        &self.0.objects
    }
}

impl DerefMut for LockedObjects<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Objects {
        &mut self.0.objects
    }
}
