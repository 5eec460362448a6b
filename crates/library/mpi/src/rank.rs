//! A rank: the MPI state of one process of a job, and its blocking sends and receives.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use channel::lock::{Guard, RankLock};
use channel::{RankNode, Router, Transport, VirtualTime, Waiter};
use datatype::local_work::{Clock, LocalWork, Meter};
use datatype::{Buffer, Elements, Pool};
use knobs::{CostSource, Knobs};
use pmi::{Bootstrap, Hosts};
use profile::RankProfile;

use crate::algorithms::AlgorithmTable;
use crate::attributes::Keyvals;
use crate::bootstrap::{NewPeer, Wiring, limits, transports};
use crate::buffered::AttachedBuffers;
use crate::comm::{Comm, Comms, Core, Members};
use crate::errhandler::Errhandlers;
use crate::files::Files;
use crate::group::Groups;
use crate::handle::{ObjectKind, Slab};
use crate::lanes::Lanes;
use crate::matching::Key;
use crate::message_buffer::MessageBuffer;
use crate::op::{Operation, Ops};
use crate::p2p::protocol::{self, CopyCostSource, Limits, Protocol};
use crate::p2p::{Found, Messages};
use crate::request::{Finished, Mode, RequestId, Waiting};
use crate::task::Tasks;
use crate::types::Types;
use crate::window::Windows;
use crate::{ANY_SOURCE, ANY_TAG, Class, Error, ProgramCall, Result, Status};

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
    /// The one place where this rank waits.
    pub(crate) waiter: Waiter,
    /// Algorithms of collective operations.
    pub(crate) algorithms: AlgorithmTable,
    pub(crate) limits: Limits,
    rank: usize,
    size: usize,
    /// The host of each rank. Nobody takes the rank's lock while this one is held.
    hosts: RwLock<Hosts>,
    /// The meter of work on this rank's own memory; `None` on a real machine.
    meter: Option<Arc<Meter>>,
}

/// The part of a rank that its lock protects.
pub struct State {
    /// The transports to all peers.
    pub router: Router,
    /// Point-to-point messages and requests.
    pub messages: Messages,
    /// Unfinished operations with several steps.
    pub tasks: Tasks,
    /// Collective buffers for operations with several steps.
    pub(crate) lanes: Lanes,
    /// Communicators.
    pub comms: Comms,
    /// Groups.
    pub groups: Groups,
    /// Windows of one-sided communication.
    pub windows: Windows,
    /// Datatypes.
    pub types: Types,
    /// Keys of attributes.
    pub keyvals: Keyvals,
    /// Error handlers.
    pub errhandlers: Errhandlers,
    /// Files.
    pub files: Files,
    /// Messages that matched probes have claimed.
    pub claimed: Slab<Found>,
    /// The user's reduction operations.
    pub ops: Ops,
    /// Memory for intermediate results of collectives.
    pub scratch: Pool,
    /// Buffers attached for buffered sends.
    pub(crate) attached: AttachedBuffers,
    /// The settings.
    pub knobs: Knobs,
    /// The connection to the launcher, if this rank has one.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// The last error of an operation that failed outside of its call.
    pub last_error: Option<Error>,
    /// The allowance of receives that need no request.
    pub(crate) fast_path: FastPath,
    /// Number of rounds of progress in which something moved.
    pub moved: u64,
    /// Number of the next context that this rank assigns.
    next_context: u32,
}

/// The allowance of receives that end with their first polls, without a round of progress.
#[derive(Clone, Copy, Default)]
pub(crate) struct FastPath {
    /// Number of such receives until the next round of progress.
    pub(crate) left: u32,
    /// Polls of each.
    pub(crate) polls: u32,
}
/// Advice to the user after overlapping calls without threads.
const OVERLAP: &str = "threads may call at once if MPI_Init_thread grants MPI_THREAD_MULTIPLE";

impl Rank {
    /// A rank of this job, or a job of one rank.
    ///
    /// # Errors
    /// A setting is invalid, or a transport cannot be opened.
    pub fn new(job: Option<Wiring>, knobs: Knobs) -> Result<Rank> {
        let Wiring {
            bootstrap,
            mut peers,
            work,
        } = job.unwrap_or_else(Wiring::alone);
        let hosts = bootstrap.hosts().clone();
        let (rank, size) = (peers.rank, peers.size);
        let settings = transports(&knobs, hosts.index(rank), bootstrap.reports_deaths());
        let meter = work.meter(&mut peers);
        let mut router = Router::build(peers, &settings)?;
        let limits = limits(&knobs);
        let mut messages = Messages::new(&mut router, size, limits);
        if let CostSource::File(file) = &knobs.costs {
            messages.take_costs_of(file.table.clone());
        }
        let waiter = Waiter::new(&mut router, &settings.wait);
        let algorithms = AlgorithmTable::new(&knobs.collectives, knobs.tree_arity)?;
        let world = Core::new(0, Members::All(size), rank);
        let alone = Core::new((rank as u64) << 32 | 1, vec![rank as u32].into(), 0);
        let comms = Comms::new(
            Comm::new(world, "MPI_COMM_WORLD"),
            Comm::new(alone, "MPI_COMM_SELF"),
        );
        let noting = router.machine().keeps_notes().then_some(rank as u32);
        let state = State {
            messages,
            router,
            tasks: Tasks::default(),
            lanes: Lanes::default(),
            comms,
            groups: Groups::new(rank),
            windows: Windows::noting(noting),
            types: Types::metered(meter.clone()),
            keyvals: Keyvals::default(),
            errhandlers: Errhandlers::default(),
            files: Files::default(),
            claimed: Slab::new(ObjectKind::Message),
            ops: Ops::default(),
            scratch: Pool::default(),
            attached: AttachedBuffers::default(),
            knobs,
            bootstrap,
            last_error: None,
            fast_path: FastPath::default(),
            moved: 0,
            next_context: 2,
        };
        Ok(Rank {
            state: RankLock::new(state, OVERLAP),
            waiter,
            algorithms,
            limits,
            rank,
            size,
            hosts: RwLock::new(hosts),
            meter,
        })
    }

    /// Nanoseconds since a fixed moment, in virtual time on a modelled machine.
    pub fn now(&self) -> u64 {
        self.waiter.now(|| self.lock().router.machine().now())
    }

    /// Begins a call of the program, after its computing.
    pub fn enter(&self, call: ProgramCall) {
        let mut state = self.lock();
        if call.computed > 0 && state.windows.has_modelled_thread() {
            state.compute_beside_thread(call.computed);
        }
        state.router.machine().enter(call);
    }

    /// A step of the program begins, between two of its calls.
    pub fn begin_step(&self) {
        self.lock().router.machine().begin_step();
    }

    /// Ends a call of the program. `is_sure` is false for a poll, whatever it has found, and
    /// for a reading of the clock.
    pub fn leave(&self, is_sure: bool) {
        self.lock().router.machine().leave(is_sure);
    }

    /// The rank's time on its modelled machine. `None` on a real machine.
    pub fn virtual_time(&self) -> Option<VirtualTime> {
        self.lock().router.machine().virtual_time()
    }

    /// Keeps the kinds of work that this rank has done on its own memory, for a recording. Times
    /// are measured by `clock`.
    pub fn keep_local_work(&self, clock: Clock) {
        if let Some(meter) = &self.meter {
            self.lock().router.machine().keep_local_work(meter, clock);
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

    /// Combines elements that are a part of vectors of `whole` bytes. The functions of programs
    /// count their time themselves.
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
    /// The operation is not for elements of this type, or the vectors are one.
    pub fn reduce_local(&self, input: &Elements, inout: &Elements, op: &Operation) -> Result<()> {
        op.check_local(input, inout)?;
        self.combine(op, input, inout, inout.bytes())
    }

    /// Counts this rank's messages in `profile` from now on.
    pub fn count_messages(&self, profile: Arc<RankProfile>) {
        self.lock().messages.count_in(profile);
    }

    /// The protocols for messages to a peer: the length from which on each is used, the protocol,
    /// and the estimated time of a message of that length in nanoseconds.
    pub fn explain(&self, peer: usize) -> Vec<(usize, Protocol, u64)> {
        let capabilities = self.lock().router.capabilities(peer);
        protocol::explain(&capabilities, &self.limits)
    }

    /// This rank can learn from the times of collective operations.
    pub(crate) fn learns(&self) -> bool {
        let is_wanted = self.limits.copy_costs == CopyCostSource::Learned;
        is_wanted && self.algorithms.is_free() && !self.is_virtual()
    }

    /// True if the rank runs on a modelled machine, in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.lock().router.machine().is_virtual()
    }

    /// This rank's number in the job.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The host of each rank at this moment.
    pub fn hosts(&self) -> Hosts {
        self.placement().clone()
    }

    /// The host of a world rank.
    pub(crate) fn host_of(&self, world: usize) -> u32 {
        self.placement().of(world)
    }

    fn placement(&self) -> RwLockReadGuard<'_, Hosts> {
        self.hosts.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes ranks peers of this one that its job has got since this rank started. They are
    /// numbered by the bootstrap behind all ranks that are known, and alike on all ranks.
    ///
    /// A new peer may begin to send before this call: its messages then wait. Nothing but this call
    /// makes it a peer. Devices reach it, because shared memory has room for the ranks only that
    /// were there when it was made. `node` is for a rank that has no devices yet; others ignore it.
    ///
    /// # Errors
    /// The numbers do not follow those that are known, or this rank has no device.
    pub fn add_peers(&self, new: &[NewPeer], node: Option<RankNode>) -> Result<()> {
        let mut guard = self.lock();
        let State {
            router,
            messages,
            knobs,
            bootstrap,
            ..
        } = &mut *guard;
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
        let settings = transports(knobs, local_rank, bootstrap.reports_deaths());
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

    /// The state, locked.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// The address of the word of the rank's lock, which is odd while a call is in MPI.
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
        self.lock().fast_path = FastPath::default();
        self.state.allow_threads();
    }

    /// Lets the progress thread take the lock between calls. To be called without a guard.
    pub(crate) fn admit_progress_thread(&self) {
        self.state.admit_progress_thread();
    }

    /// The progress thread has ended. To be called without a guard.
    pub(crate) fn dismiss_progress_thread(&self) {
        self.state.dismiss_progress_thread();
    }

    /// Takes the lock for the progress thread, if nobody holds it.
    pub(crate) fn try_lock_for_progress(&self) -> Option<Guard<'_, State>> {
        self.state.try_lock_for_progress()
    }

    /// A blocking send: `MPI_Send`, `MPI_Ssend`, `MPI_Rsend` or `MPI_Bsend`.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    #[inline(always)]
    pub fn send(
        &self,
        operation: &'static str,
        mode: Mode,
        buffer: impl MessageBuffer,
        dest: i32,
        tag: i32,
        comm: impl Into<u32>,
    ) -> Result<()> {
        let mode = match mode {
            Mode::Standard => Mode::Blocking,
            other => other,
        };
        let mut state = self.lock();
        let buffer = buffer.resolve(&state.types)?;
        let id = state.send(mode, &buffer, dest, tag, comm.into())?;
        if id == state.messages.requests.done() {
            return Ok(());
        }
        drop(state);
        self.wait_sent(operation, id)
    }

    /// Waits for the send of a blocking call.
    #[inline(never)]
    fn wait_sent(&self, operation: &'static str, id: RequestId) -> Result<()> {
        let status = self.wait(operation, id)?;
        match status.error {
            Class::SUCCESS => Ok(()),
            _ => status.into_result(&mut self.lock()).map(|_| ()),
        }
    }

    /// A blocking receive. A message longer than the buffer is an error in the status.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    pub fn receive(
        &self,
        operation: &'static str,
        buffer: impl MessageBuffer,
        source: i32,
        tag: i32,
        comm: impl Into<u32>,
    ) -> Result<Status> {
        self.receive_then(operation, buffer, source, tag, comm, Ok)
    }

    /// A blocking receive followed by `then`: `MPI_Recv`. Each path to a status ends in its own
    /// call of `then`, so the status is not copied.
    ///
    /// # Errors
    /// An argument is invalid, progress failed, or `then` failed.
    #[inline(always)]
    pub fn receive_then<T>(
        &self,
        operation: &'static str,
        buffer: impl MessageBuffer,
        source: i32,
        tag: i32,
        comm: impl Into<u32>,
        then: impl FnOnce(Status) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock();
        let buffer = buffer.resolve(&state.types)?;
        let Some(key) = state.receive_key(source, tag, comm.into())? else {
            drop(state);
            return then(Status::PROC_NULL);
        };
        if let Some(status) = state.receive_here(&buffer, &key)? {
            drop(state);
            return then(status);
        }
        then(self.receive_later(state, operation, &buffer, key)?)
    }

    /// The rest of [`Rank::receive_then`] if the message has not arrived.
    #[inline(never)]
    fn receive_later(
        &self,
        mut state: Guard<State>,
        operation: &'static str,
        buffer: &Buffer,
        key: Key,
    ) -> Result<Status> {
        if !state.messages.expects_long(&key) {
            let waits = state.messages.probe(&key).is_none();
            if let Some(status) = self.receive_soon(&mut state, buffer, &key)? {
                return Ok(status);
            }
            if waits {
                state.messages.waited_for(&key);
            }
        }
        let id = state.receive_by_key(buffer.clone(), key)?;
        drop(state);
        self.wait_blocked(operation, id)
    }

    /// Waits for the receive of a blocking call. One that is left active has only reported a loss:
    /// nobody else will wait for it.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    #[inline]
    pub fn wait_blocked(&self, operation: &'static str, id: RequestId) -> Result<Status> {
        let finished = self.wait_request(operation, id)?;
        if !finished.gone {
            let mut state = self.lock();
            state.cancel(id)?;
            state.messages.requests.detach(id)?;
        }
        Ok(finished.status)
    }

    /// Sends all queued packets, and closes the connections to all peers, which must close theirs
    /// too. This is the last step before a rank leaves its job.
    ///
    /// # Errors
    /// Progress failed.
    pub fn finish(&self, operation: &'static str) -> Result<()> {
        self.end_progress_thread();
        let waiting = Waiting::in_call(operation);
        self.wait_until(&waiting, |state| {
            let sent = !state.messages.has_work()
                && state.buffered_sends_are_done()
                && state.files.are_quiet();
            let is_closed = match sent.then(|| state.router.close()) {
                Some(Err(error)) => {
                    state.contain(error.into())?;
                    false
                }
                Some(Ok(is_closed)) => is_closed,
                None => false,
            };
            Ok(is_closed.then_some(()))
        })?;
        // The thread of a worker ends without the lock.
        let worker = self.lock().files.worker.take();
        drop(worker);
        let mut state = self.lock();
        state.report_rails();
        state.report_strangers();
        Ok(())
    }

    /// Waits until a request is complete, finishes it, and returns its status.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    #[inline]
    pub fn wait(&self, operation: &'static str, id: RequestId) -> Result<Status> {
        Ok(self.wait_request(operation, id)?.status)
    }

    /// Waits until a request is complete and finishes it: `MPI_Wait`, and the wait of every
    /// blocking call.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    #[inline]
    pub fn wait_request(&self, operation: &'static str, id: RequestId) -> Result<Finished> {
        let waiting = Waiting {
            operation,
            requests: &[id],
        };
        self.wait_until(&waiting, |state| state.messages.requests.finish(id))
    }
}

impl State {
    /// Starts a send. The result is `messages.requests.done()` if the send is complete at once.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    #[inline(always)]
    pub fn send(
        &mut self,
        mode: Mode,
        buffer: &Buffer,
        dest: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        if mode == Mode::Buffered {
            self.buffered_send(buffer, dest, tag, comm)?;
            return Ok(self.messages.requests.done());
        }
        let State {
            router,
            messages,
            comms,
            ..
        } = self;
        let core = &comms.get(comm)?.core;
        let Some(peer) = core.peer(dest)? else {
            return Ok(messages.requests.done());
        };
        if tag < 0 {
            return Err(bad_tag(tag));
        }
        let key = Key {
            context: core.context,
            source: core.rank as i32,
            tag,
        };
        messages.send(router, mode, buffer, peer, key)
    }

    /// Starts a receive.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    #[inline(always)]
    pub fn receive(
        &mut self,
        buffer: Buffer,
        source: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        match self.receive_key(source, tag, comm)? {
            Some(key) => self.receive_by_key(buffer, key),
            None => self.messages.requests.add_complete(Status::PROC_NULL),
        }
    }

    #[inline(always)]
    fn receive_by_key(&mut self, buffer: Buffer, key: Key) -> Result<RequestId> {
        let id = self.messages.receive(buffer, key)?;
        if self.messages.announces() {
            self.announce(id, key)?;
        }
        // A synchronous sender waits for the report of the match.
        self.messages.flush(&mut self.router)?;
        Ok(id)
    }

    #[inline(never)]
    fn announce(&mut self, id: RequestId, key: Key) -> Result<()> {
        if self.has_losses() {
            self.check_posted(id, &key);
        }
        let sender = match self.messages.announces_short() {
            true => self.comms.sender_of(&key),
            false => None,
        };
        self.messages.announce(&mut self.router, id, key, sender)
    }

    /// Begins to cancel an operation, which then completes, cancelled or not.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    pub fn cancel(&mut self, id: RequestId) -> Result<()> {
        let State {
            router, messages, ..
        } = self;
        messages.cancel(router, id)?;
        // The cancellation of a message to this rank itself takes three packets, which only this
        // rank moves.
        for _ in 0..3 {
            if !self.progress()? {
                break;
            }
        }
        Ok(())
    }

    /// The envelope that a receive or probe matches. `None`: the source is `MPI_PROC_NULL`.
    ///
    /// # Errors
    /// An argument is invalid.
    #[inline(always)]
    pub fn receive_key(&self, source: i32, tag: i32, comm: u32) -> Result<Option<Key>> {
        let core = &self.comms.get(comm)?.core;
        if source != ANY_SOURCE && core.peer(source)?.is_none() {
            return Ok(None);
        }
        if tag < 0 {
            check_negative(tag)?;
        }
        Ok(Some(Key {
            context: core.context,
            source,
            tag,
        }))
    }

    /// A context that no other communicator of the job has. All members must learn it.
    pub fn new_context(&mut self, rank: usize) -> u64 {
        let number = self.next_context;
        self.next_context += 1;
        (rank as u64) << 32 | u64::from(number)
    }
}

#[cold]
#[inline(never)]
fn check_negative(tag: i32) -> Result<()> {
    match tag {
        ANY_TAG => Ok(()),
        _ => Err(bad_tag(tag)),
    }
}

#[cold]
fn bad_tag(tag: i32) -> Error {
    Error::new(
        Class::TAG,
        format!("tag {tag} is not allowed: tags are 0 to {}", crate::TAG_UB),
    )
}
