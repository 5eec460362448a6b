//! A rank's turn: its access to the world, its waits, and its yielding to earlier events and ranks.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::world::{Clock, Model, Next, Time, World};

/// The baton: the means by which the right to run passes from rank to rank.
pub trait Baton {
    /// Gives the turn to rank `to`; returns once this rank has it again.
    fn pass(&self, to: u32);
    /// Gives up the turn for good: this rank has left. `None`: all ranks have left.
    fn leave(&self, to: Option<u32>);
    /// True if ranks are processes, each of which has private memory that the others cannot access.
    fn is_private(&self) -> bool;
}

/// The error of a wait that cannot end: all ranks wait, and no event or deadline is due except idle
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlock;

/// A rank's handle of the world: with it the rank reads its clock, lets others run first, and
/// waits.
pub struct Turn<M: Model> {
    world: NonNull<World<M>>,
    rank: u32,
    baton: Box<dyn Baton>,
    left: Cell<bool>,
}

impl<M: Model> Turn<M> {
    /// Makes a rank's handle on a world.
    ///
    /// # Safety
    /// The world must live as long as the `Turn`, and its methods may be called only while this
    /// rank has the turn.
    pub(crate) unsafe fn new(world: NonNull<World<M>>, rank: u32, baton: Box<dyn Baton>) -> Self {
        Turn {
            world,
            rank,
            baton,
            left: Cell::new(false),
        }
    }

    /// The number of the rank that has the turn.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The world, while this rank has the turn. No reference to it is kept while another rank runs.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    fn world(&self) -> &mut World<M> {
        // SAFETY: the caller has the turn, so no other rank is inside; the methods below drop the
        // reference before they pass the turn on, and `with` does not let it escape.
        unsafe { &mut *self.world.as_ptr() }
    }

    /// The virtual time of this rank's clock.
    #[inline]
    pub fn now(&self) -> Time {
        self.world().clock.of(self.rank)
    }

    /// Advances this rank's clock by the time of some work, in picoseconds.
    #[inline]
    pub fn spend(&self, time: Time) {
        let clock = &mut self.world().clock;
        let at = clock.of(self.rank).saturating_add(time);
        clock.advance(self.rank, at);
    }

    /// Lets all events and ranks that are earlier than this rank's clock go first.
    #[inline]
    pub fn settle(&self) -> Result<(), Deadlock> {
        let clock = &mut self.world().clock;
        if clock.is_first(self.rank) {
            let World { clock, model } = self.world();
            model.resume(self.rank, clock);
            return Ok(());
        }
        clock.yield_turn(self.rank);
        self.go_on()
    }

    /// Lets the earlier events and ranks run first whose effects this rank could see. Otherwise
    /// like [`settle`](Turn::settle): for an access that only reads what has happened to this rank.
    #[inline]
    pub fn observe(&self) -> Result<(), Deadlock> {
        let World { clock, model } = self.world();
        let is_final = clock.may_run_ahead(self.rank, |event, other| {
            model.horizon(self.rank, event, other)
        });
        match is_final {
            true => {
                model.resume(self.rank, clock);
                Ok(())
            }
            false => self.settle(),
        }
    }

    /// Like [`settle`](Turn::settle), for an access to state of this rank that earlier events and
    /// ranks neither read nor change. Where ranks run ahead, no event or rank runs first.
    #[inline]
    pub fn stay(&self) -> Result<(), Deadlock> {
        let World { clock, model } = self.world();
        if !clock.runs_ahead() {
            return self.settle();
        }
        clock.stand(self.rank);
        model.resume(self.rank, clock);
        Ok(())
    }

    /// Lets all events and ranks run first that are earlier than this rank's last `settle`,
    /// `observe` or `stay`: for an access to state that ranks share. The rank's clock is then what
    /// it was.
    pub fn catch_up(&self) -> Result<(), Deadlock> {
        let clock = &mut self.world().clock;
        let Some(place) = clock.is_behind(self.rank) else {
            return Ok(());
        };
        let now = clock.of(self.rank);
        clock.advance(self.rank, place);
        clock.yield_turn(self.rank);
        let answer = self.go_on();
        self.world().clock.advance(self.rank, now);
        answer
    }

    /// Calls `then` with the model and the clock. Call `settle` first wherever order matters.
    #[inline]
    pub fn with<R>(&self, then: impl FnOnce(&mut M, &mut Clock<M::Event>) -> R) -> R {
        let World { clock, model } = self.world();
        then(model, clock)
    }

    /// Waits until an event wakes this rank, or until the time `until`.
    pub fn wait(&self, until: Option<Time>) -> Result<(), Deadlock> {
        self.world().clock.suspend(self.rank, until, false);
        self.go_on()
    }

    /// Waits like [`wait`](Turn::wait), until `until` at the latest, but as an idle wait, whose end
    /// is no progress: if all ranks wait and nothing but idle events and waits is due, it is a
    /// deadlock.
    pub fn wait_idle(&self, until: Time) -> Result<(), Deadlock> {
        self.world().clock.suspend(self.rank, Some(until), true);
        self.go_on()
    }

    /// Lets earlier events and other ranks run first, until this rank has the turn again.
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

    /// Ends this rank's part in the world: it has no further turn.
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
