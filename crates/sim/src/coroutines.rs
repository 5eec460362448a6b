//! Ranks as coroutines of one process: ten thousand of them fit on one machine.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::memory::{Memory, Shared};
use crate::turn::{Baton, Turn};
use crate::world::{Clock, Model, World};

/// What a world of coroutines is made with.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub ranks: u32,
    pub seed: u64,
    /// Bytes of each rank's stack.
    pub stack: usize,
}

/// Runs `body` once for each rank, in virtual time. The answer is what each returned, and how
/// many events there were.
pub fn run<M: Model + 'static, R: 'static>(
    plan: Plan,
    model: impl FnOnce(Shared) -> M,
    body: impl Fn(Turn<M>) -> R + 'static,
) -> io::Result<(Vec<R>, u64)> {
    let (answers, handled, ()) = run_then(plan, model, body, |_| ())?;
    Ok((answers, handled))
}

/// The same, with a last look at what the ranks shared.
pub fn run_then<M: Model + 'static, R: 'static, T>(
    plan: Plan,
    model: impl FnOnce(Shared) -> M,
    body: impl Fn(Turn<M>) -> R + 'static,
    then: impl FnOnce(&mut M) -> T,
) -> io::Result<(Vec<R>, u64, T)> {
    let memory = Memory::private()?;
    let mut world = Box::new(World {
        clock: Clock::new(memory.shared(), plan.ranks, plan.seed),
        model: model(memory.shared()),
    });
    let world_at = NonNull::from(&mut *world);
    let body = Rc::new(body);
    let after = Rc::new(Cell::new(None));
    let mut ranks = Vec::new();
    for rank in 0..plan.ranks {
        let (body, after) = (body.clone(), after.clone());
        let stack = DefaultStack::new(plan.stack)?;
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), u32>, ()| {
            let baton = Switch {
                yielder: yielder.into(),
                after,
            };
            // SAFETY: the world outlives all coroutines, and only one of them runs at a time.
            let turn = unsafe { Turn::new(world_at, rank, Box::new(baton)) };
            // It begins its first turn like any other.
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
    /// Who runs after a coroutine that ends.
    after: Rc<Cell<Option<u32>>>,
}

impl Baton for Switch {
    fn pass(&self, to: u32) {
        // SAFETY: the yielder lives for as long as its coroutine, inside which we are.
        unsafe { self.yielder.as_ref() }.suspend(to);
    }

    fn leave(&self, to: Option<u32>) {
        self.after.set(to);
    }

    fn is_private(&self) -> bool {
        false
    }
}
