//! Ranks as coroutines of one process: one computer runs ten thousand of them.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::memory::{Memory, WorldMemory};
use crate::stacks::StackPool;
use crate::turn::{Baton, Turn};
use crate::world::{Model, World};

/// The parameters of a world whose ranks are coroutines.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of ranks of the world.
    pub ranks: u32,
    /// The seed of all random numbers in the world.
    pub seed: u64,
    /// The size of each rank's stack, in bytes.
    pub stack: usize,
}

/// Runs `body` once for each rank, in virtual time. Returns the results of the ranks, in order of
/// rank, and the number of events that were handled.
pub fn run<M: Model + 'static, R: 'static>(
    plan: Plan,
    model: impl FnOnce(WorldMemory) -> M,
    body: impl Fn(Turn<M>) -> R + 'static,
) -> io::Result<(Vec<R>, u64)> {
    let (answers, handled, ()) = run_then(plan, model, body, |_| ())?;
    Ok((answers, handled))
}

/// Runs `body` once for each rank, like [`run`], and then calls `then` with the model. Returns the
/// result of `then` last.
pub fn run_then<M: Model + 'static, R: 'static, T>(
    plan: Plan,
    model: impl FnOnce(WorldMemory) -> M,
    body: impl Fn(Turn<M>) -> R + 'static,
    then: impl FnOnce(&mut M) -> T,
) -> io::Result<(Vec<R>, u64, T)> {
    run_within(Memory::private()?, plan, model, body, then)
}

/// Runs `body` once for each rank, like [`run`], in a world in this file of zeros, which keeps the
/// model's data for readers after the run.
pub fn run_in_file<M: Model + 'static, R: 'static>(
    file: &OwnedFd,
    plan: Plan,
    model: impl FnOnce(WorldMemory) -> M,
    body: impl Fn(Turn<M>) -> R + 'static,
) -> io::Result<Vec<R>> {
    let memory = Memory::open(file)?;
    memory.shared().prepare();
    let (answers, _, ()) = run_within(memory, plan, model, body, |_| ())?;
    Ok(answers)
}

fn run_within<M: Model + 'static, R: 'static, T>(
    memory: Memory,
    plan: Plan,
    model: impl FnOnce(WorldMemory) -> M,
    body: impl Fn(Turn<M>) -> R + 'static,
    then: impl FnOnce(&mut M) -> T,
) -> io::Result<(Vec<R>, u64, T)> {
    let model = model(memory.shared());
    let mut world = Box::new(World::new(memory.shared(), plan.ranks, plan.seed, model));
    let world_at = NonNull::from(&mut *world);
    let body = Rc::new(body);
    let after = Rc::new(Cell::new(None));
    let stacks = StackPool::new(plan.ranks as usize, plan.stack)?;
    let mut ranks = Vec::new();
    for rank in 0..plan.ranks {
        let (body, after) = (body.clone(), after.clone());
        let stack = stacks.stack(rank as usize);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), u32>, ()| {
            let baton = Switch {
                yielder: yielder.into(),
                after,
            };
            // SAFETY: the world outlives all coroutines, and only one of them runs at a time.
            let turn = unsafe { Turn::new(world_at, rank, Box::new(baton)) };
            // The first turn of a rank begins like any other, after all that is earlier.
            turn.settle().ok();
            body(turn)
        });
        ranks.push((coroutine, None));
    }
    let mut current = (plan.ranks > 0).then_some(0);
    while let Some(rank) = current {
        let (coroutine, answer) = &mut ranks[rank as usize];
        match coroutine.resume(()) {
            CoroutineResult::Yield(to) => current = Some(to),
            CoroutineResult::Return(value) => {
                *answer = Some(value);
                current = after.take();
            }
        }
    }
    let handled = world.clock.handled;
    let answers = ranks.into_iter().filter_map(|(_, answer)| answer).collect();
    let last = then(&mut world.model);
    drop(world);
    Ok((answers, handled, last))
}

struct Switch {
    yielder: NonNull<Yielder<(), u32>>,
    /// The rank that has the turn after a coroutine has ended; `None`: all ranks have left.
    after: Rc<Cell<Option<u32>>>,
}

impl Baton for Switch {
    fn pass(&self, to: u32) {
        // SAFETY: the yielder is valid as long as its coroutine, inside which this runs.
        unsafe { self.yielder.as_ref() }.suspend(to);
    }

    fn leave(&self, to: Option<u32>) {
        self.after.set(to);
    }

    fn is_private(&self) -> bool {
        false
    }
}
