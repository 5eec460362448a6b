//! A rank: everything that one process of a job is to MPI.

use std::sync::Arc;

use channel::lock::{Guard, RankLock};
use channel::{Router, Transport, Waiter};
use datatype::{Buffer, Pool};
use knobs::Knobs;
use pmi::{Bootstrap, Hosts};

use crate::algorithms::AlgorithmTable;
use crate::attributes::Keyvals;
use crate::bootstrap::{Wiring, limits, transports};
use crate::buffered::AttachedBuffers;
use crate::comm::{Comm, Comms, Core, Members};
use crate::errhandler::Errhandlers;
use crate::group::Groups;
use crate::handle::{ObjectKind, Slab};
use crate::matching::Key;
use crate::message_buffer::MessageBuffer;
use crate::op::Ops;
use crate::p2p::protocol::{self, Limits, Protocol};
use crate::p2p::{FastPath, Found, Messages, Mode};
use crate::request::{Finished, RequestId};
use crate::task::Tasks;
use crate::types::Types;
use crate::wait::Waiting;
use crate::{ANY_SOURCE, ANY_TAG, Class, Error, Result, Status};

pub struct Rank {
    state: RankLock<State>,
    /// The one place where this rank waits.
    pub(crate) waiter: Waiter,
    /// Algorithms of collective operations.
    pub(crate) algorithms: AlgorithmTable,
    limits: Limits,
    rank: usize,
    size: usize,
    hosts: Hosts,
}

/// What the rank's lock protects.
pub struct State {
    /// The transports to all peers.
    pub router: Router,
    pub messages: Messages,
    pub tasks: Tasks,
    pub comms: Comms,
    pub groups: Groups,
    pub types: Types,
    pub keyvals: Keyvals,
    pub errhandlers: Errhandlers,
    /// Messages taken out by matched probes.
    pub claimed: Slab<Found>,
    /// The user's operations.
    pub ops: Ops,
    /// Memory for what collectives have in between.
    pub scratch: Pool,
    /// Buffers attached for buffered sends.
    pub(crate) attached: AttachedBuffers,
    pub knobs: Knobs,
    /// The launcher, as far as this rank has one.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// The words of the last error of an operation that nobody was waiting in.
    pub last_error: Option<Error>,
    /// The allowance of receives that need no request.
    pub(crate) fast_path: FastPath,
    /// Counts rounds of progress in which something moved.
    pub moved: u64,
    /// The next context that this rank makes up.
    next_context: u32,
}

/// Advice to the user after overlapping calls without threads.
const OVERLAP: &str = "MPI_THREAD_MULTIPLE was not granted: ask for it with MPI_Init_thread, or call MPI from one thread at a time";

impl Rank {
    /// Joins the job, or is a job of its own.
    pub fn new(job: Option<Wiring>, knobs: Knobs) -> Result<Rank> {
        let Wiring { bootstrap, peers } = job.unwrap_or_else(Wiring::alone);
        let hosts = bootstrap.hosts().clone();
        let (rank, size) = (peers.rank, peers.size);
        let settings = transports(&knobs);
        let mut router = Router::build(peers, &settings)?;
        let limits = limits(&knobs);
        let waiter = Waiter::new(&mut router, &settings.wait);
        let algorithms = AlgorithmTable::new(&knobs.collectives)?;
        let world = Core {
            context: 0,
            members: Members::All(size),
            rank,
        };
        let alone = Core {
            context: (rank as u64) << 32 | 1,
            members: vec![rank as u32].into(),
            rank: 0,
        };
        let comms = Comms {
            world: Comm::new(world, "MPI_COMM_WORLD"),
            alone: Comm::new(alone, "MPI_COMM_SELF"),
            others: Slab::new(ObjectKind::Comm),
        };
        let state = State {
            messages: Messages::new(&router, size, limits),
            router,
            tasks: Tasks::default(),
            comms,
            groups: Groups::new(rank),
            types: Types::default(),
            keyvals: Keyvals::default(),
            errhandlers: Errhandlers::default(),
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
            hosts,
        })
    }

    /// Nanoseconds since some fixed moment, by the clock that this rank lives by.
    pub fn now(&self) -> u64 {
        self.waiter.now(|| self.lock().router.device_now())
    }

    /// The program makes a call, after `computed` nanoseconds of computing.
    pub fn enter(&self, call: &'static str, computed: u64) {
        self.lock().router.enter(call, computed);
    }

    /// The call returns to the program.
    pub fn leave(&self) {
        self.lock().router.leave_call();
    }

    /// The protocols for messages of all lengths to a peer: the length from which each is used, its name, and its estimated
    /// cost there in nanoseconds.
    pub fn explain(&self, peer: usize) -> Vec<(usize, Protocol, u64)> {
        let capabilities = self.lock().router.capabilities(peer);
        protocol::explain(&capabilities, &self.limits)
    }

    /// Time is virtual: the rank runs on a modelled machine.
    pub fn is_virtual(&self) -> bool {
        self.lock().router.is_virtual()
    }

    /// This rank's number in the job.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Which rank is on which host.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// How many ranks the job has.
    pub fn size(&self) -> usize {
        self.size
    }

    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    #[inline(always)]
    pub fn threads(&self) -> bool {
        self.state.threads()
    }

    /// Several threads may call from now on (`MPI_THREAD_MULTIPLE`).
    pub fn allow_threads(&self) {
        self.lock().fast_path = FastPath::default();
        self.state.allow_threads();
    }

    /// A blocking send: all of `MPI_Send`, `MPI_Ssend`, `MPI_Rsend` and `MPI_Bsend` behind their
    /// C entry points.
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
        let mut state = self.lock();
        let buffer = buffer.resolve(&state)?;
        let id = state.send(mode, &buffer, dest, tag, comm.into())?;
        if id == state.messages.requests.done() {
            return Ok(());
        }
        drop(state);
        self.wait(operation, id)?;
        Ok(())
    }

    /// A blocking receive. A message longer than the buffer is an error in the status.
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

    /// A blocking receive, and what follows it: all of `MPI_Recv` behind its C entry point. The
    /// continuation lets each way to a status end by itself, without a copy of the status.
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
        let buffer = buffer.resolve(&state)?;
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
        self.wait(operation, id)
    }

    /// Sends everything that is still queued, and ends the connections with all peers, who must do so too: the last thing to do before a rank leaves its job.
    pub fn finish(&self, operation: &'static str) -> Result<()> {
        let waiting = Waiting::in_call(operation);
        self.wait_until(&waiting, |state| {
            let sent = !state.messages.has_work() && state.buffered_sends_are_done();
            Ok((sent && state.router.close()?).then_some(()))
        })
    }

    /// Waits until a request is complete, finishes it, and returns its status.
    #[inline]
    pub fn wait(&self, operation: &'static str, id: RequestId) -> Result<Status> {
        Ok(self.wait_request(operation, id)?.status)
    }

    /// Waits until a request is complete and finishes it: all of `MPI_Wait` behind its C entry
    /// point, and of what every blocking call waits for.
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
    /// Starts a send; the answer is `messages.requests.done()` if it was complete at once.
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
            self.messages.announce(&mut self.router, id, key)?;
        }
        // A sender may wait to hear that its message has been matched.
        self.messages.flush(&mut self.router)?;
        Ok(id)
    }

    /// Begins to cancel an operation; it then completes, cancelled or not.
    pub fn cancel(&mut self, id: RequestId) -> Result<()> {
        let State {
            router, messages, ..
        } = self;
        messages.cancel(router, id)?;
        // A message to this very rank is taken back by three packets, and nobody else will move them.
        for _ in 0..3 {
            if !self.progress()? {
                break;
            }
        }
        Ok(())
    }

    /// What a receive or probe matches; `None` from `MPI_PROC_NULL`.
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

    /// A context that no other communicator of the job has: to be told to all its members.
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
