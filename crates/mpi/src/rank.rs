//! A rank: everything that one process of a job is to MPI.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

use channel::Channels;
use channel::lock::{Guard, RankLock};
use channel::shm::Bell;
use datatype::{Buffer, Pool};
use knobs::{Knobs, Rendezvous};
use pmi::{Control, Hosts};

use crate::attributes::Keyvals;
use crate::bootstrap::Wiring;
use crate::buffered::Rooms;
use crate::clock::Host;
use crate::coll::Lanes;
use crate::coll::table::Choice;
use crate::comm::{Comm, Comms, Core, Members};
use crate::errhandler::Errhandlers;
use crate::event_thread::Watcher;
use crate::group::Groups;
use crate::handle::{Kind, Slab};
use crate::matching::Key;
use crate::message_buffer::MessageBuffer;
use crate::op::Ops;
use crate::p2p::{Found, Limits, Messages, Mode, Short};
use crate::policy::Policy;
use crate::request::{Finished, RequestId};
use crate::task::Tasks;
use crate::types::Types;
use crate::wait::Waiting;
use crate::{ANY_SOURCE, ANY_TAG, Class, Error, Result, Status};

pub struct Rank {
    state: RankLock<State>,
    pub host: Box<dyn Host>,
    pub(crate) policy: Policy,
    /// Which algorithms collectives take.
    pub(crate) collectives: Choice,
    /// What peers ring when they write to this rank; none if it is alone.
    pub(crate) bell: Option<Bell>,
    /// Threads of this rank asleep on it.
    pub(crate) sleepers: AtomicUsize,
    /// Rings it for devices, once the rank has slept.
    pub(crate) watcher: OnceLock<Watcher>,
    rank: usize,
    size: usize,
    hosts: Hosts,
}

/// What the rank's lock protects.
pub struct State {
    pub channels: Channels,
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
    pub lanes: Lanes,
    /// Room for buffered sends.
    pub(crate) rooms: Rooms,
    pub knobs: Knobs,
    /// The line to the launcher.
    pub control: Option<Control>,
    /// The words of the last error of an operation that nobody was waiting in.
    pub last_error: Option<Error>,
    /// Looks in a row that found nothing.
    pub(crate) idle_looks: u32,
    /// Whether and for how long receives may take the short way.
    pub(crate) short: Short,
    /// Counts rounds of progress in which something moved.
    pub moved: u64,
    /// The next context that this rank makes up.
    next_context: u32,
}

impl Rank {
    /// Joins the job, or is a job of its own.
    pub fn new(job: Option<Wiring>, knobs: Knobs, host: Box<dyn Host>) -> Result<Rank> {
        let mut job = job.unwrap_or_else(Wiring::alone);
        let mut channels = job.channels(&knobs)?;
        let Wiring {
            rank,
            size,
            hosts,
            control,
            ..
        } = job;
        let near = knobs.cores == knobs::Cores::Near;
        let limits = Limits {
            whole: knobs.eager_limit.0.min(channels.least_piece()),
            eager: knobs.eager_limit.0,
            past_cache: match near {
                true => usize::MAX,
                false => knobs.past_cache_limit.0,
            },
            single_copy: knobs.single_copy_limit.0,
            // Until it is known that each has a core to do so.
            together: usize::MAX,
            unexpected: knobs.unexpected_limit.0,
            rendezvous: match knobs.rendezvous {
                // A write is worked by whoever posts it, who has a processor at that time; the answer of a read by whoever
                // is interrupted for it.
                Rendezvous::Auto if channels.needs_processors() => Rendezvous::Write,
                chosen => chosen,
            },
        };
        let policy = match channels.waits_by_node() {
            true => Policy::by_node(),
            false => Policy::new(knobs.wait, knobs.spin.as_nanos() as u64),
        };
        let policy = match channels.node().is_some() {
            true => policy.with_devices(channels.only_devices(), channels.needs_processors()),
            false => policy,
        };
        let collectives = Choice::new(&knobs.collectives)?;
        let bell = channels.shm().map(|shm| shm.bell());
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
            others: Slab::new(Kind::Comm),
        };
        let state = State {
            messages: Messages::new(size, limits),
            channels,
            tasks: Tasks::default(),
            comms,
            groups: Groups::new(rank),
            types: Types::default(),
            keyvals: Keyvals::default(),
            errhandlers: Errhandlers::default(),
            claimed: Slab::new(Kind::Message),
            ops: Ops::default(),
            scratch: Pool::default(),
            lanes: Lanes::default(),
            rooms: Rooms::default(),
            knobs,
            control,
            last_error: None,
            idle_looks: 0,
            short: Short::default(),
            moved: 0,
            next_context: 2,
        };
        let rank = Rank {
            state: RankLock::new(state),
            host,
            policy,
            collectives,
            bell,
            sleepers: AtomicUsize::new(0),
            watcher: OnceLock::new(),
            rank,
            size,
            hosts,
        };
        rank.ask_for_cores();
        Ok(rank)
    }

    /// Finds out whether each rank here has a core, if that is still open, and takes the ways of those who have one.
    #[cold]
    #[inline(never)]
    pub(crate) fn ask_for_cores(&self) {
        let mut state = self.lock();
        let Some(each) = state.channels.has_core_each() else {
            return;
        };
        let may_spin = each && !state.channels.needs_processors();
        if may_spin {
            state.messages.limits.together = state.knobs.together_limit.0;
        }
        self.policy.decide(each, may_spin);
    }

    /// Nanoseconds since some fixed moment, by the clock that this rank lives by.
    pub fn now(&self) -> u64 {
        match self.policy.is_by_node() {
            true => self.node_now(),
            false => self.host.now(),
        }
    }

    #[cold]
    fn node_now(&self) -> u64 {
        let mut state = self.lock();
        state.channels.node().map_or(0, |node| node.now())
    }

    /// The program makes a call, and has computed for so many nanoseconds before it.
    pub fn enter(&self, call: &'static str, computed: u64) {
        if let Some(node) = self.lock().channels.node() {
            node.enter(call, computed);
        }
    }

    /// The call goes back to the program.
    pub fn leave(&self) {
        if let Some(node) = self.lock().channels.node() {
            node.leave();
        }
    }

    /// Time is virtual: the rank runs on a modelled machine.
    pub fn is_virtual(&self) -> bool {
        let mut state = self.lock();
        state.channels.node().is_some_and(|node| node.is_virtual())
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
        self.lock().short = Short::default();
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
            let sent = !state.messages.has_work() && state.rooms_are_empty();
            Ok((sent && state.channels.close()?).then_some(()))
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
            channels,
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
        messages.send(channels, mode, buffer, peer, key)
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
        if self.messages.tells_ahead() {
            self.messages.tell_ahead(&mut self.channels, id, key)?;
        }
        // A sender may wait to hear that its message has been matched.
        self.messages.flush(&mut self.channels)?;
        Ok(id)
    }

    /// Begins to cancel an operation; it then completes, cancelled or not.
    pub fn cancel(&mut self, id: RequestId) -> Result<()> {
        let State {
            channels, messages, ..
        } = self;
        messages.cancel(channels, id)?;
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
