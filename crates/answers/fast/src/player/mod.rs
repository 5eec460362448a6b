//! The calls of one rank, as a future that the schedule continues.

mod comms;
mod work;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use datatype::{Predefined, Type};
use mpi::coll::carried::{Key, Member, Operation};
use mpi::comm::Core;
use mpi::group::Members;

use crate::engine::{CALL, Command, Engine, Sending};
use crate::own::Own;
use crate::program::{Action, Amount, Collective, Handle, Message, Peer};
use crate::world::World;

type Result<T> = std::result::Result<T, String>;
type Task = Pin<Box<dyn Future<Output = mpi::Result<()>>>>;

/// MPI_COMM_WORLD and MPI_COMM_SELF, with the ABI's values.
const WORLD: Handle = 0x101;
const SELF: Handle = 0x102;
/// MPI_REQUEST_NULL, with the ABI's value.
const NULL: Handle = 0x180;

/// A request of the program.
enum Request {
    /// A send or a receive.
    Operation(u32),
    /// A collective operation.
    Task(Task),
    /// A send or a receive that is started many times, and the one in progress.
    Persistent(Box<(Message, Kind)>, Option<u32>),
    Done,
}

#[derive(Clone, Copy)]
enum Kind {
    Send { synchronous: bool },
    Receive,
}

/// A communicator of a rank.
struct Communicator {
    member: Member,
    /// The number of communicators that were made from it.
    made: u64,
    dims: Box<[i64]>,
}

/// A rank that makes its calls.
pub(crate) struct Player {
    own: Own,
    comms: BTreeMap<Handle, Communicator>,
    types: BTreeMap<Handle, u64>,
    ops: BTreeMap<Handle, bool>,
    requests: BTreeMap<Handle, Request>,
    /// The number of collective operations in progress.
    tasks: usize,
}

/// Makes all calls of a rank.
pub(crate) async fn play(world: Arc<World>, rank: u32) -> Result<()> {
    let own = Own {
        world: world.clone(),
        rank,
    };
    let mut player = Player::new(own);
    for (call, nanos) in world.trace.calls_of(rank as usize) {
        if nanos > 0 {
            player.compute(nanos).await;
        }
        let name = || &world.trace.signature(call).name;
        match &world.actions[call as usize] {
            Action::End => {
                player.end().await?;
                return Ok(());
            }
            action => {
                let done = player.act(action).await;
                done.map_err(|why| format!("rank {rank}: {}: {why}", name()))?;
            }
        }
    }
    Err(format!("rank {rank}: its calls end without MPI_Finalize"))
}

impl Player {
    fn new(own: Own) -> Player {
        let (rank, world) = (own.rank as usize, &own.world);
        let all = Core::new(0, Members::All(world.size), rank).shaped(world.shape.clone());
        let alone = Core::new(own_context(rank), vec![rank as u32].into(), 0);
        let communicator = |core| Communicator {
            member: Member::new(core),
            made: 0,
            dims: Box::default(),
        };
        Player {
            comms: [(WORLD, communicator(all)), (SELF, communicator(alone))].into(),
            types: BTreeMap::new(),
            ops: BTreeMap::new(),
            requests: BTreeMap::new(),
            tasks: 0,
            own,
        }
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.own.engine()
    }

    /// Computes for this time.
    async fn compute(&self, nanos: u64) {
        let operation = self
            .engine()
            .compute(self.own.rank, nanos.saturating_mul(1000));
        poll_fn(|_| match self.engine().is_done(self.own.rank, operation) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    async fn act(&mut self, action: &Action) -> Result<()> {
        match action {
            Action::Nothing | Action::End => (),
            Action::Step => self.engine().command(self.own.rank, Command::Step),
            Action::Poll => {
                let mut engine = self.engine();
                engine.command(self.own.rank, Command::Spend(CALL));
                engine.command(self.own.rank, Command::Poll);
            }
            Action::Send {
                message,
                synchronous,
                request,
                persistent,
            } => {
                let kind = Kind::Send {
                    synchronous: *synchronous,
                };
                self.message(message, kind, *request, *persistent).await?;
            }
            Action::Receive {
                message,
                request,
                persistent,
            } => {
                self.message(message, Kind::Receive, *request, *persistent)
                    .await?
            }
            Action::Exchange { send, receive } => {
                let into = self.start(receive, Kind::Receive)?;
                let out = self.start(send, Kind::Send { synchronous: false })?;
                for operation in [into, out].into_iter().flatten() {
                    self.finish(operation).await?;
                }
            }
            Action::Start(requests) => {
                for request in requests {
                    let Some(Request::Persistent(made, _)) = self.requests.get(request) else {
                        return Err("a request that is not persistent".into());
                    };
                    let (message, kind) = **made;
                    let started = self.start(&message, kind)?;
                    let request = self.requests.get_mut(request);
                    if let Some(Request::Persistent(_, active)) = request {
                        *active = started;
                    }
                }
            }
            Action::Wait(requests) => self.wait(requests).await?,
            Action::Forget(request) => {
                self.requests.remove(request);
            }
            Action::Collective {
                work,
                comm,
                request,
            } => self.collective(work, *comm, *request).await?,
            Action::MakeComm { making, comm, new } => {
                self.make_comm(making, *comm, *new).await?;
            }
            Action::FreeComm(comm) => {
                self.comms.remove(comm);
            }
            Action::MakeType { parts, new } => {
                let sizes = parts.iter().map(|part| self.bytes(*part));
                let size = sizes.sum::<Result<u64>>()?;
                self.types.insert(*new, size);
            }
            Action::MakeOp { new, commutes } => {
                self.ops.insert(*new, *commutes);
            }
        }
        Ok(())
    }

    fn comm(&self, comm: Handle) -> Result<&Communicator> {
        let found = self.comms.get(&comm);
        found.ok_or_else(|| "a communicator that the fast way does not have".into())
    }

    /// The bytes of an element of a datatype.
    fn size(&self, datatype: Handle) -> Result<u64> {
        if let Some(size) = self.types.get(&datatype) {
            return Ok(*size);
        }
        let ty = predefined(datatype).ok_or("a datatype that the fast way does not have")?;
        Ok(Type::Predefined(ty).size() as u64)
    }

    fn bytes(&self, amount: Amount) -> Result<u64> {
        let count = u64::try_from(amount.count).map_err(|_| "a count below 0")?;
        Ok(count.saturating_mul(self.size(amount.datatype)?))
    }

    /// Makes a send or a receive, or the request of one.
    async fn message(
        &mut self,
        message: &Message,
        kind: Kind,
        request: Option<Handle>,
        persistent: bool,
    ) -> Result<()> {
        if let (Some(request), true) = (request, persistent) {
            let made = Request::Persistent(Box::new((*message, kind)), None);
            self.requests.insert(request, made);
            return Ok(());
        }
        let started = self.start(message, kind)?;
        match (request, started) {
            (Some(request), started) => {
                let made = started.map_or(Request::Done, Request::Operation);
                self.requests.insert(request, made);
            }
            (None, Some(operation)) => self.finish(operation).await?,
            (None, None) => (),
        }
        Ok(())
    }

    /// Starts a send or a receive. `None`: its peer is MPI_PROC_NULL.
    fn start(&self, message: &Message, kind: Kind) -> Result<Option<u32>> {
        let core = self.comm(message.comm)?.member.core();
        let bytes = self.bytes(message.amount)?;
        let peer = match message.peer {
            Peer::At(distance) => core.rank as i64 + distance,
            Peer::Rank(number) => number,
        };
        let number = i32::try_from(peer).map_err(|_| "no such rank")?;
        if number == mpi::PROC_NULL {
            return Ok(None);
        }
        let tag = message.tag as i32;
        let rank = self.own.rank;
        Ok(Some(match kind {
            Kind::Send { synchronous } => {
                let to = core.peer(number).map_err(|why| why.to_string())?;
                let to = to.ok_or("no such rank")? as u32;
                let key = Key {
                    context: core.context,
                    source: core.rank as i32,
                    tag,
                };
                let sending = match synchronous {
                    true => Sending::Synchronous,
                    false => Sending::Standard,
                };
                self.engine().send(rank, to, key, bytes, sending)
            }
            Kind::Receive => {
                let key = Key {
                    context: core.context,
                    source: number,
                    tag,
                };
                self.engine().receive(rank, key)
            }
        }))
    }

    /// Waits for a send or a receive.
    async fn finish(&mut self, operation: u32) -> Result<()> {
        poll_fn(|context| {
            self.progress(context)?;
            match self.engine().is_done(self.own.rank, operation) {
                true => Poll::Ready(Ok(())),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Continues the collective operations in progress.
    fn progress(&mut self, context: &mut Context<'_>) -> Result<()> {
        if self.tasks == 0 {
            return Ok(());
        }
        for request in self.requests.values_mut() {
            if let Request::Task(task) = request
                && let Poll::Ready(done) = task.as_mut().poll(context)
            {
                *request = Request::Done;
                self.tasks -= 1;
                done.map_err(|why| why.to_string())?;
            }
        }
        Ok(())
    }

    /// Waits for requests, and forgets them unless they are persistent.
    async fn wait(&mut self, requests: &[Handle]) -> Result<()> {
        // The first that is not complete, and its operation: those before it stay complete.
        let (mut first, mut awaited) = (0, None);
        poll_fn(|context| {
            self.progress(context)?;
            let engine = self.own.engine();
            let is_complete = |operation| engine.is_complete(self.own.rank, operation);
            if awaited.is_some_and(|operation| !is_complete(operation)) {
                return Poll::Pending;
            }
            while let Some(handle) = requests.get(first) {
                awaited = match self.requests.get(handle) {
                    Some(Request::Operation(operation)) => Some(*operation),
                    Some(Request::Persistent(_, active)) => *active,
                    Some(Request::Task(_)) => return Poll::Pending,
                    _ => None,
                };
                if awaited.is_some_and(|operation| !is_complete(operation)) {
                    return Poll::Pending;
                }
                first += 1;
            }
            Poll::Ready(Ok::<(), String>(()))
        })
        .await?;
        for handle in requests.iter().filter(|handle| **handle != NULL) {
            match self.requests.get_mut(handle) {
                Some(Request::Persistent(_, active)) => {
                    if let Some(operation) = active.take() {
                        self.engine().is_done(self.own.rank, operation);
                    }
                }
                _ => {
                    if let Some(Request::Operation(operation)) = self.requests.remove(handle) {
                        self.engine().is_done(self.own.rank, operation);
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a collective operation, or the request of one.
    async fn collective(
        &mut self,
        work: &Collective,
        comm: Handle,
        request: Option<Handle>,
    ) -> Result<()> {
        let work = self.work(work, comm)?;
        let operation = self.operation(comm)?;
        let own = self.own.clone();
        let task = Box::pin(async move { operation.run(&own, &work).await });
        match request {
            Some(request) => {
                self.tasks += 1;
                self.requests.insert(request, Request::Task(task));
                poll_fn(|context| Poll::Ready(self.progress(context))).await
            }
            None => self.run(task).await,
        }
    }

    fn operation(&mut self, comm: Handle) -> Result<Operation> {
        let found = self.comms.get_mut(&comm);
        let found = found.ok_or("a communicator that the fast way does not have")?;
        Ok(found.member.operation())
    }

    /// Runs a collective operation to its end.
    async fn run(&mut self, mut task: Task) -> Result<()> {
        poll_fn(|context| {
            self.progress(context)?;
            let done = task.as_mut().poll(context);
            done.map_err(|why| why.to_string())
        })
        .await
    }

    /// Ends the rank, which waits for those that it has connected with.
    async fn end(&mut self) -> Result<()> {
        let rank = self.own.rank;
        self.engine().command(rank, Command::End);
        poll_fn(|_| match self.engine().may_end(rank) {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        })
        .await
    }
}

fn predefined(datatype: Handle) -> Option<Predefined> {
    Predefined::from_handle(usize::try_from(datatype).ok()?)
}

/// The context of the communicator of a rank alone.
fn own_context(rank: usize) -> u64 {
    1 << 48 | rank as u64
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
