//! The calls of one rank, as a future that the schedule continues.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use datatype::local_work::LocalWork;
use datatype::{Elements, Op, Predefined, Type};
use mpi::algorithms::{AlgorithmTable, Network};
use mpi::coll::{self, Carrier, Counts, Key, Member, Reduction, Work};
use mpi::comm::Core;
use mpi::group::Members;
use mpi::op::Operation;

use crate::engine::{CALL, Engine};
use crate::program::{
    Action, Amount, Blocks, Collective, Handle, Making, Message, Moves, Peer, Reduces,
};
use crate::world::{Vote, World};

type Result<T> = std::result::Result<T, String>;
type Task = Pin<Box<dyn Future<Output = mpi::Result<()>>>>;

/// MPI_COMM_WORLD and MPI_COMM_SELF, with the ABI's values.
const WORLD: Handle = 0x101;
const SELF: Handle = 0x102;
/// MPI_REQUEST_NULL, with the ABI's value.
const NULL: Handle = 0x180;

/// What carries the messages of one rank.
pub(crate) struct Own {
    pub world: Arc<World>,
    pub rank: u32,
}

impl Own {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.world.engine()
    }
}

impl Carrier for Own {
    fn send(&self, to: usize, key: Key, bytes: usize) -> u64 {
        let mut engine = self.engine();
        engine
            .send(self.rank, to as u32, key, bytes as u64, false)
            .into()
    }

    fn receive(&self, key: Key, _bytes: usize) -> u64 {
        self.engine().receive(self.rank, key).into()
    }

    fn is_done(&self, message: u64) -> bool {
        self.engine().is_done(message as u32)
    }

    fn elements(&self, count: usize, ty: &Type) -> mpi::Result<Elements> {
        let elements = self.world.addresses().elements(count, ty);
        elements.ok_or_else(|| too_long(count.saturating_mul(ty.size())))
    }

    fn worked(&self, work: LocalWork, amount: usize, of: usize) {
        let time = self.world.work(work, amount, of);
        self.engine().spend(self.rank, time);
    }

    fn network(&self) -> Network {
        self.engine().network()
    }

    fn host_of(&self, world: usize) -> u32 {
        self.engine().host_of(world)
    }

    fn algorithms(&self) -> &AlgorithmTable {
        &self.world.algorithms
    }
}

fn too_long(bytes: usize) -> mpi::Error {
    let what = format!("{bytes} bytes are more than a buffer of the fast way can have");
    mpi::Error::new(mpi::Class::NO_MEM, what)
}

/// A request of the program.
enum Request {
    /// A send or a receive.
    Operation(u32),
    /// A collective operation.
    Task(Task),
    /// A send or a receive that is started many times, and the one in progress.
    Persistent(Message, Kind, Option<u32>),
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
    own: Arc<Own>,
    comms: BTreeMap<Handle, Communicator>,
    types: BTreeMap<Handle, u64>,
    ops: BTreeMap<Handle, bool>,
    requests: BTreeMap<Handle, Request>,
    /// The number of collective operations in progress.
    tasks: usize,
}

/// Makes all calls of a rank.
pub(crate) async fn play(world: Arc<World>, rank: u32) -> Result<()> {
    let own = Arc::new(Own {
        world: world.clone(),
        rank,
    });
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
    fn new(own: Arc<Own>) -> Player {
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
        let rank = self.own.rank;
        let until = self.engine().clock(rank).saturating_add(nanos * 1000);
        self.own.world.sleep(rank, until);
        let mut woken = false;
        poll_fn(|_| match std::mem::replace(&mut woken, true) {
            false => Poll::Pending,
            true => Poll::Ready(()),
        })
        .await;
    }

    async fn act(&mut self, action: &Action) -> Result<()> {
        match action {
            Action::Nothing | Action::End => (),
            Action::Step => self.own.world.begin_step(self.own.rank),
            Action::Poll => {
                let mut engine = self.engine();
                engine.spend(self.own.rank, CALL);
                engine.poll(self.own.rank);
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
                    let Some(Request::Persistent(message, kind, _)) = self.requests.get(request)
                    else {
                        return Err("a request that is not persistent".into());
                    };
                    let (message, kind) = (*message, *kind);
                    let started = self.start(&message, kind)?;
                    let request = self.requests.get_mut(request);
                    if let Some(Request::Persistent(_, _, active)) = request {
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
            let made = Request::Persistent(*message, kind, None);
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
                self.engine().send(rank, to, key, bytes, synchronous)
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
            match self.engine().is_done(operation) {
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
        poll_fn(|context| {
            self.progress(context)?;
            let engine = self.own.engine();
            let is_complete = |handle: &Handle| match self.requests.get(handle) {
                Some(Request::Operation(operation)) => engine.is_complete(*operation),
                Some(Request::Persistent(_, _, Some(operation))) => engine.is_complete(*operation),
                Some(Request::Task(_)) => false,
                _ => true,
            };
            match requests.iter().all(is_complete) {
                true => Poll::Ready(Ok::<(), String>(())),
                false => Poll::Pending,
            }
        })
        .await?;
        for handle in requests.iter().filter(|handle| **handle != NULL) {
            match self.requests.get_mut(handle) {
                Some(Request::Persistent(_, _, active)) => {
                    if let Some(operation) = active.take() {
                        self.engine().is_done(operation);
                    }
                }
                _ => {
                    if let Some(Request::Operation(operation)) = self.requests.remove(handle) {
                        self.engine().is_done(operation);
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
        let task = Box::pin(async move { operation.run(&*own, &work).await });
        match request {
            Some(request) => {
                self.tasks += 1;
                self.requests.insert(request, Request::Task(task));
                poll_fn(|context| Poll::Ready(self.progress(context))).await
            }
            None => self.run(task).await,
        }
    }

    fn operation(&mut self, comm: Handle) -> Result<coll::Operation> {
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

    fn buffer(&self, bytes: u64) -> Result<datatype::Buffer> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let buffer = self.own.world.addresses().buffer(bytes);
        buffer.ok_or_else(|| too_long(bytes).to_string())
    }

    fn blocks(&self, blocks: &Blocks, members: usize) -> Result<Option<coll::Blocks>> {
        Ok(match blocks {
            Blocks::InPlace => None,
            Blocks::Even(each) => {
                let whole = self.bytes(*each)?.saturating_mul(members as u64);
                Some(coll::Blocks::even(self.buffer(whole)?, members))
            }
            Blocks::Each(all) => {
                let parts = all.iter().map(|part| self.buffer(self.bytes(*part)?));
                let parts: Result<Box<[_]>> = parts.collect();
                Some(coll::Blocks::Each(parts?))
            }
        })
    }

    /// The block that a rank gives or gets; `None`: it is in the other buffer.
    fn block(&self, blocks: &Blocks) -> Result<Option<datatype::Buffer>> {
        match blocks {
            Blocks::InPlace => Ok(None),
            Blocks::Even(amount) => self.buffer(self.bytes(*amount)?).map(Some),
            Blocks::Each(all) => {
                let own = all.first().ok_or("no count")?;
                self.buffer(self.bytes(*own)?).map(Some)
            }
        }
    }

    fn work(&self, work: &Collective, comm: Handle) -> Result<Work> {
        let core = self.comm(comm)?.member.core();
        let (size, me) = (core.size(), core.rank as i64);
        Ok(match work {
            Collective::Barrier => Work::Barrier,
            Collective::Bcast { amount, root } => Work::Bcast {
                buffer: self.buffer(self.bytes(*amount)?)?,
                root: *root as i32,
            },
            Collective::Move {
                kind,
                send,
                receive,
                root,
            } => {
                let is_root = *root == me;
                let root = *root as i32;
                let all = |blocks: &Blocks| match is_root {
                    true => self.blocks(blocks, size),
                    false => Ok(None),
                };
                match kind {
                    Moves::Gather => Work::Gather {
                        send: self.block(send)?,
                        receive: all(receive)?,
                        root,
                    },
                    Moves::Gatherv => Work::Gatherv {
                        send: self.block(send)?,
                        receive: all(receive)?,
                        root,
                    },
                    Moves::Scatter => Work::Scatter {
                        send: all(send)?,
                        receive: self.block(receive)?,
                        root,
                    },
                    Moves::Scatterv => Work::Scatterv {
                        send: all(send)?,
                        receive: self.block(receive)?,
                        root,
                    },
                    Moves::Allgather => Work::Allgather {
                        send: self.block(send)?,
                        receive: self.blocks(receive, size)?.ok_or("no receive buffer")?,
                    },
                    Moves::Alltoall => Work::Alltoall {
                        send: self.blocks(send, size)?,
                        receive: self.blocks(receive, size)?.ok_or("no receive buffer")?,
                    },
                }
            }
            Collective::Reduce {
                kind,
                amount,
                op,
                in_place,
            } => self.reduction(kind, *amount, *op, *in_place, (size, me))?,
        })
    }

    fn reduction(
        &self,
        kind: &Reduces,
        amount: Amount,
        op: Handle,
        in_place: bool,
        (size, me): (usize, i64),
    ) -> Result<Work> {
        let count = usize::try_from(amount.count).map_err(|_| "a count below 0")?;
        let (count, counts) = match kind {
            Reduces::ReduceScatter(counts) => {
                let each = counts.iter().map(|count| (*count).max(0) as usize);
                let each: Box<[usize]> = each.collect();
                (each.iter().sum(), Counts::Each(each))
            }
            Reduces::ReduceScatterBlock => (count.saturating_mul(size), Counts::Even(count)),
            _ => (count, Counts::Even(count)),
        };
        let known = Op::from_handle(op as usize);
        // Sums of bytes stand for an operation of the program, whose time the trace does not have
        // for single calls.
        let (op, ty, count) = match known {
            Some(op) => {
                let ty = predefined(amount.datatype).ok_or("a datatype that no operation takes")?;
                (op, ty, count)
            }
            None => {
                if !self.ops.get(&op).copied().unwrap_or(false) {
                    return Err("an operation whose operands have an order".into());
                }
                let size = self.size(amount.datatype)? as usize;
                (Op::Bor, Predefined::BYTE, count.saturating_mul(size))
            }
        };
        let ty = Type::Predefined(ty);
        let elements = |count: usize| {
            let elements = self.own.world.addresses().elements(count, &ty);
            let bytes = count.saturating_mul(ty.size());
            elements.ok_or_else(|| too_long(bytes).to_string())
        };
        let gets = match kind {
            Reduces::Reduce(root) => *root == me,
            _ => true,
        };
        let reduction = Reduction {
            send: match in_place {
                true => None,
                false => Some(elements(count)?),
            },
            receive: match gets {
                true => Some(elements(match (kind, in_place) {
                    (Reduces::ReduceScatter(_) | Reduces::ReduceScatterBlock, false) => {
                        counts.of(me as usize)
                    }
                    _ => count,
                })?),
                false => None,
            },
            op: Operation::Predefined(op),
        };
        Ok(match kind {
            Reduces::Reduce(root) => Work::Reduce {
                reduction,
                root: *root as i32,
            },
            Reduces::Allreduce => Work::Allreduce(reduction),
            Reduces::ReduceScatter(_) | Reduces::ReduceScatterBlock => {
                Work::ReduceScatter { reduction, counts }
            }
            Reduces::Scan => Work::Scan {
                reduction,
                exclusive: false,
            },
            Reduces::Exscan => Work::Scan {
                reduction,
                exclusive: true,
            },
        })
    }

    /// Makes a communicator. The members agree by messages to one of them and back.
    async fn make_comm(&mut self, making: &Making, comm: Handle, new: Handle) -> Result<()> {
        let rank = self.own.rank;
        let found = self.comms.get_mut(&comm);
        let parent = found.ok_or("a communicator that the fast way does not have")?;
        parent.made += 1;
        let (of, size) = (
            (parent.member.core().context, parent.made),
            parent.member.core().size(),
        );
        let me = parent.member.core().rank as i64;
        let dims = parent.dims.clone();
        let vote = vote(making, me, &dims, self.own.host_of(rank as usize));
        self.own.world.votes(of, size, me as usize, vote);
        let work = |root: i32, me: i64| -> Result<[Work; 2]> {
            let each = 16;
            let all = coll::Blocks::even(self.buffer(each * size as u64)?, size);
            let gather = Work::Gather {
                send: Some(self.buffer(each)?),
                receive: (me == i64::from(root)).then_some(all),
                root,
            };
            let bcast = Work::Bcast {
                buffer: self.buffer(each * size as u64)?,
                root,
            };
            Ok([gather, bcast])
        };
        for work in work(0, me)? {
            let operation = self.operation(comm)?;
            let own = self.own.clone();
            self.run(Box::pin(async move { operation.run(&*own, &work).await }))
                .await?;
        }
        let Some((context, members)) = self.own.world.made(of, me as usize) else {
            return Ok(());
        };
        let parent = self.comm(comm)?;
        let member = |world: &u32| *world as usize;
        let worlds: Vec<u32> = members
            .iter()
            .filter_map(|number| parent.member.core().members.world(member(number)))
            .map(|world| world as u32)
            .collect();
        let place = worlds.iter().position(|world| *world == rank);
        let core = Core::new(context, worlds.into(), place.ok_or("no member")?);
        let made = Communicator {
            member: parent.member.making(core),
            made: 0,
            dims: match making {
                Making::Cart { dims } => dims.clone(),
                Making::Dup => dims,
                _ => Box::default(),
            },
        };
        self.comms.insert(new, made);
        Ok(())
    }

    /// Ends the rank, which waits for those that it has connected with.
    async fn end(&mut self) -> Result<()> {
        let rank = self.own.rank;
        self.engine().begin_end(rank);
        poll_fn(|_| match self.engine().may_end(rank) {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        })
        .await
    }
}

/// The vote of a member for a new communicator: its group and its place there. `None`: it is in no
/// group.
fn vote(making: &Making, me: i64, dims: &[i64], host: u32) -> Vote {
    let (color, key) = match making {
        Making::Dup => (Some(0), me),
        Making::Split { color, key } => ((*color >= 0).then_some(*color), *key),
        Making::SplitByHost { key } => (Some(host.into()), *key),
        Making::Cart { dims } => {
            let places = dims.iter().product::<i64>();
            ((me < places).then_some(0), me)
        }
        Making::CartSub { remains } => {
            let (mut rest, mut color) = (me, 0);
            let mut stride = dims.iter().product::<i64>().max(1);
            for (at, dim) in dims.iter().enumerate() {
                stride /= (*dim).max(1);
                let place = rest / stride.max(1);
                rest -= place * stride;
                if remains.get(at).is_none_or(|remains| *remains == 0) {
                    color = color * dim + place;
                }
            }
            (Some(color), me)
        }
    };
    Vote { color, key }
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
