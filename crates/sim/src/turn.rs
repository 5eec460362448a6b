//! A rank's turn: how it uses the world, lets others go first, and waits.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::world::{Clock, Model, Next, Time, World};

/// How the right to run gets from one rank to another.
pub trait Baton {
    /// Gives it to `to` and comes back with it.
    fn pass(&self, to: u32);
    /// Gives it away for good; to nobody if all have left.
    fn leave(&self, to: Option<u32>);
    /// Ranks have memory of their own, which only they can touch.
    fn is_private(&self) -> bool;
}

/// All ranks wait, and nothing will ever happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlock;

/// A rank's hold on the world.
pub struct Turn<M: Model> {
    world: NonNull<World<M>>,
    rank: u32,
    baton: Box<dyn Baton>,
    left: Cell<bool>,
}

impl<M: Model> Turn<M> {
    /// # Safety
    /// The world stays for as long as the turn does, and only who holds the baton calls methods of its turn.
    pub(crate) unsafe fn new(world: NonNull<World<M>>, rank: u32, baton: Box<dyn Baton>) -> Self {
        Turn {
            world,
            rank,
            baton,
            left: Cell::new(false),
        }
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The world, while this rank holds the baton. No reference to it lives across a pass.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    fn world(&self) -> &mut World<M> {
        // SAFETY: whoever calls holds the baton, so nobody else is inside; the methods below let the reference go before
        // they pass the baton on, and `with` does not let it out.
        unsafe { &mut *self.world.as_ptr() }
    }

    /// This rank's clock.
    #[inline]
    pub fn now(&self) -> Time {
        self.world().clock.of(self.rank)
    }

    /// Time passes for this rank: it has worked.
    #[inline]
    pub fn spend(&self, time: Time) {
        let clock = &mut self.world().clock;
        let at = clock.of(self.rank).saturating_add(time);
        clock.advance(self.rank, at);
    }

    /// Lets everything happen that is earlier than this rank's clock.
    #[inline]
    pub fn settle(&self) -> Result<(), Deadlock> {
        let clock = &mut self.world().clock;
        if clock.is_first(self.rank) {
            let World { clock, model } = self.world();
            model.resume(self.rank, clock);
            return Ok(());
        }
        clock.queue_up(self.rank);
        self.go_on()
    }

    /// Uses what is shared, at this rank's time. `settle` comes first wherever order matters.
    #[inline]
    pub fn with<R>(&self, then: impl FnOnce(&mut M, &mut Clock<M::Event>) -> R) -> R {
        let World { clock, model } = self.world();
        then(model, clock)
    }

    /// Waits until an event wakes this rank, or until a time.
    pub fn wait(&self, until: Option<Time>) -> Result<(), Deadlock> {
        self.world().clock.lie_down(self.rank, until);
        self.go_on()
    }

    /// Lets others run until it is this rank's turn again.
    #[inline(never)]
    fn go_on(&self) -> Result<(), Deadlock> {
        loop {
            let world = self.world();
            match world.next(self.baton.is_private().then_some(self.rank)) {
                Next::Event(event) => world.handle(event),
                Next::Rank(rank) if rank == self.rank => {
                    world.clock.begin_turn(rank);
                    let World { clock, model } = world;
                    model.resume(rank, clock);
                    return match clock.in_deadlock() {
                        true => Err(Deadlock),
                        false => Ok(()),
                    };
                }
                Next::Rank(rank) | Next::Owned(rank) => self.baton.pass(rank),
                Next::Deadlock => world.clock.end_waiting(),
                Next::Over => return Err(Deadlock),
            }
        }
    }

    /// This rank takes no more turns.
    pub fn leave(&self) {
        if self.left.replace(true) {
            return;
        }
        self.world().clock.leave(self.rank);
        loop {
            let world = self.world();
            match world.next(self.baton.is_private().then_some(self.rank)) {
                Next::Event(event) => world.handle(event),
                Next::Rank(rank) | Next::Owned(rank) => return self.baton.leave(Some(rank)),
                Next::Deadlock => world.clock.end_waiting(),
                Next::Over => return self.baton.leave(None),
            }
        }
    }
}

impl<M: Model> Drop for Turn<M> {
    fn drop(&mut self) {
        self.leave();
    }
}
