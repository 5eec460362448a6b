//! The fast way: the messages of a trace on a modelled machine, each by its cost line, without
//! running the protocols.
//!
//! The exact way (crate `replay`) runs the library for each rank, some thousand instructions a
//! message. Here a message is an event: its times come from lines that are measured at the start
//! (`lines`), and it waits for the engines, buses and links that other messages occupy
//! (`resources`). Copies of one host share its memory (`shared_memory`). A collective operation is
//! the algorithm of the library itself, whose messages are carried here (`mpi::coll::Carrier`):
//! there are as many as in the exact way.
//!
//! Each rank is a future; nothing has a stack. Buffers have a length and no memory.
//!
//! Invariant: a rank is continued at its time, and no event before that is left, so what reaches it
//! is known.
//!
//! Never here: windows, files, what a protocol does.

mod counts;
mod engine;
mod lines;
mod memory;
mod own;
mod passed;
mod player;
mod program;
mod resources;
mod shared_memory;
mod slab;
#[cfg(test)]
mod tests;
mod world;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};

use datatype::local_work::{Meter, Rates};
use fabric::{Bytes, Costs};
use knobs::Knobs;
use model::config::MachineConfig;
use mpi::algorithms::{AlgorithmTable, SharedChoices};
use mpi::shape::Shape;
use profile::SizeClass;
use trace::Trace;

use engine::{Engine, Event};
use memory::Addresses;
use resources::Resources;
use shared_memory::Memories;
use world::{Parts, World};

/// The bytes of work whose time is that of a machine's processors.
const MANY: u64 = 1 << 20;

/// The result of the fast way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The virtual time at which the last rank ended, in picoseconds.
    pub picos: u64,
    /// The times at which the ranks ended, in picoseconds.
    pub ends: Vec<u64>,
    /// The number of messages, those of collective operations among them.
    pub messages: u64,
    /// The messages by size, without empty classes.
    pub sizes: Vec<SizeClass>,
    /// The times at which the marked steps of each rank began, in picoseconds.
    pub steps: Vec<Vec<u64>>,
}

/// True if the fast way has all procedures of a trace.
///
/// # Errors
/// The procedure that it does not have.
pub fn check(trace: &Trace) -> Result<(), String> {
    program::actions(trace).map(drop)
}

/// Replays a trace on a machine whose ranks have these settings.
///
/// # Errors
/// The trace has a call that the fast way does not have, or its ranks wait for messages that nobody
/// sends.
pub fn replay(
    trace: Arc<Trace>,
    scene: &MachineConfig,
    settings: &[(String, String)],
) -> Result<Outcome, String> {
    let ranks = trace.ranks.len();
    if scene.hosts.len() != ranks {
        let size = scene.hosts.len();
        return Err(format!(
            "the trace is of {ranks} ranks, and this job has {size}"
        ));
    }
    let knobs = Knobs::parse(settings.iter().cloned()).map_err(|why| why.to_string())?;
    let actions = program::actions(&trace)?;
    let mut rates = Rates::none();
    for line in &trace.work {
        let read = rates.read(line);
        read.ok_or_else(|| format!("`{line}` is no time of work inside MPI"))?;
    }
    let lines = lines::measure(scene, &knobs)?;
    let striped = knobs.stripe_threshold.0 as u64;
    let mut resources = Resources::new(&scene.system, striped);
    if scene.wide_links {
        resources.widen_links();
    }
    let shape = Arc::new(Shape::of(scene.hosts.iter().copied()));
    let memories = Memories::new(&scene.system, &scene.hosts);
    let engine = Engine::new(lines, resources, memories, scene.hosts.clone());
    let algorithms = AlgorithmTable::new(&knobs.collectives, knobs.tree_arity);
    let algorithms = algorithms.map_err(|why| why.to_string())?;
    let owed = Arc::new(AtomicU64::new(0));
    let local = Costs::of(&scene.system, 0).local(Bytes(MANY)).picos() * 1024 / MANY;
    let world = Arc::new(World::new(Parts {
        actions,
        algorithms: algorithms.sharing(Some(SharedChoices::default())),
        shape,
        engine,
        addresses: Addresses::new().map_err(|why| format!("memory: {why}"))?,
        meter: Meter::new(owed.clone(), local, rates, false),
        owed,
        trace,
    }));
    run(&world)
}

type Rank = Pin<Box<dyn Future<Output = Result<(), String>>>>;

fn run(world: &Arc<World>) -> Result<Outcome, String> {
    let play = |rank| Some(Box::pin(player::play(world.clone(), rank)) as Rank);
    let mut ranks: Vec<Option<Rank>> = (0..world.size as u32).map(play).collect();
    let mut left = ranks.len();
    let mut context = Context::from_waker(Waker::noop());
    while left > 0 {
        let event = world.engine().next();
        match event {
            Some(Event::Reaches { message, rail }) => world.engine().reaches(message, rail),
            Some(Event::Hops { piece }) => world.engine().hops(piece),
            Some(Event::PieceReaches { piece }) => world.engine().piece_reaches(piece),
            Some(Event::Leaves { message }) => world.engine().leaves_now(message),
            Some(Event::Turn { rank, .. }) => {
                let own = &mut ranks[rank as usize];
                world.engine().begin_turn(rank);
                if let Some(future) = own {
                    match turn(world, rank, future, &mut context) {
                        Poll::Pending => (),
                        Poll::Ready(done) => {
                            done?;
                            *own = None;
                            left -= 1;
                        }
                    }
                }
            }
            None => {
                let waiting = world.engine().waiting();
                return Err(format!(
                    "{waiting} of {} ranks wait for messages that nobody sends",
                    world.size
                ));
            }
        }
    }
    let mut engine = world.engine();
    let ends = (0..world.size as u32).map(|rank| engine.clock(rank));
    let ends: Vec<u64> = ends.collect();
    let sizes = engine.counts.sizes();
    Ok(Outcome {
        picos: ends.iter().copied().max().unwrap_or(0),
        ends,
        messages: sizes.iter().map(|class| class.count).sum(),
        sizes,
        steps: std::mem::take(&mut engine.steps),
    })
}

/// Continues a rank until it waits for what is not there, or computes.
fn turn(
    world: &World,
    rank: u32,
    future: &mut Rank,
    context: &mut Context<'_>,
) -> Poll<Result<(), String>> {
    loop {
        if !world.engine().advance(rank) {
            return Poll::Pending;
        }
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        let mut engine = world.engine();
        if engine.is_idle(rank) && !engine.wait(rank) {
            return Poll::Pending;
        }
    }
}
