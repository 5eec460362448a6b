//! The world: the pending events in order, and the rank whose turn it is.

use crate::Random;
use crate::heap::Heap;
use crate::memory::{Vec, WorldMemory};

/// Virtual time, in picoseconds since the beginning.
pub type Time = u64;

/// The state that ranks share, beside time.
///
/// ```
/// use sim::{Clock, Model};
///
/// /// A machine in which every event wakes a rank.
/// struct Bell;
///
/// impl Model for Bell {
///     type Event = u32;
///
///     fn handle(&mut self, rank: u32, clock: &mut Clock<u32>) {
///         clock.wake(rank);
///     }
/// }
/// ```
pub trait Model: Sized {
    /// An event. It lies in the memory of the world, and may hold no pointer out of it.
    type Event: Copy;

    /// Handles an event whose time has come. It may wake ranks and schedule further events.
    fn handle(&mut self, event: Self::Event, clock: &mut Clock<Self::Event>);

    /// The rank whose own memory the event reads, if any. If ranks are processes, the event is
    /// handled in that rank's process.
    fn owner(&self, _: &Self::Event) -> Option<u32> {
        None
    }

    /// Called before a rank continues, in its own process, where its memory can be written to.
    fn resume(&mut self, _rank: u32, _clock: &mut Clock<Self::Event>) {}

    /// True if ranks may run ahead of each other, up to [`horizon`](Model::horizon). Asked once,
    /// when the world is made.
    fn runs_ahead(&self) -> bool {
        false
    }

    /// The time before which a rank sees nothing new, if the first pending event and the first
    /// other rank are due at these times.
    fn horizon(&self, _rank: u32, event: Time, other: Time) -> Time {
        event.min(other)
    }
}

/// A world: time and a model.
pub struct World<M: Model> {
    /// The events and ranks, by time.
    pub clock: Clock<M::Event>,
    /// The state that ranks share.
    pub model: M,
}

/// The events and ranks of a world, each with its time.
pub struct Clock<E> {
    memory: WorldMemory,
    now: Time,
    events: Heap<Due<E>>,
    asked: u64,
    ready: Heap<Ready>,
    ranks: Vec<Rank>,
    /// The numbers of pending events and of ranks that are progress: without them all that can
    /// still happen is idle.
    busy_events: u64,
    busy_ranks: u32,
    /// The number of ranks that have not left.
    present: u32,
    deadlock: bool,
    /// Ranks run ahead of each other.
    ahead: bool,
    /// The time of the present event, or the last time at which the rank whose turn it is let
    /// others go first or would have done so; and the number of the rank plus one, or 0 for an
    /// event. Constant unless ranks run ahead.
    since: Time,
    cause: u64,
    /// The source of everything random.
    pub random: Random,
    /// The number of events handled.
    pub handled: u64,
}

#[derive(Clone, Copy)]
struct Due<E> {
    at: Time,
    /// The cause of the event, its number, and in the lowest bit whether it is idle. Where ranks
    /// run ahead, the cause's time and rank give the order in which the events would have been
    /// scheduled if no rank did.
    since: Time,
    order: u64,
    event: E,
}

/// Bits of the number of an event, and of the mark of idle ones.
const NUMBER_BITS: u32 = 40;

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.since, self.order).cmp(&(other.at, other.since, other.order))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    at: Time,
    rank: u32,
    ticket: u32,
}

#[derive(Clone, Copy)]
struct Rank {
    at: Time,
    /// It runs, can run, or waits until a time that is progress.
    busy: bool,
    /// The number of the valid entry among the ready; other entries of this rank are stale.
    ticket: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Running, or able to run.
    Ready,
    /// Waiting for an event, or for its deadline.
    Waiting,
    Gone,
}

/// The next step of a world.
pub(crate) enum Next<E> {
    /// An event, which the clock no longer holds.
    Event(E),
    /// An event that only this rank's process can handle.
    Owned(u32),
    Rank(u32),
    /// All ranks wait, and nothing is due but idle events and idle waits.
    Deadlock,
    /// All ranks have left.
    Over,
}

impl<E: Copy> Clock<E> {
    fn new(memory: WorldMemory, ranks: u32, seed: u64) -> Clock<E> {
        let mut clock = Clock {
            memory,
            now: 0,
            events: Heap::new(memory),
            asked: 0,
            ready: Heap::new(memory),
            ranks: Vec::new_in(memory),
            busy_events: 0,
            busy_ranks: ranks,
            present: ranks,
            deadlock: false,
            ahead: false,
            since: 0,
            cause: 0,
            random: Random::new(seed),
            handled: 0,
        };
        for rank in 0..ranks {
            clock.ranks.push(Rank {
                at: 0,
                busy: true,
                ticket: 0,
                state: State::Ready,
            });
            clock.enqueue(rank, 0);
        }
        clock
    }

    /// The memory of the world.
    pub fn memory(&self) -> WorldMemory {
        self.memory
    }

    /// The time of the current event, or of the rank whose turn it is.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event. An event in the past happens now.
    #[inline]
    pub fn at(&mut self, at: Time, event: E) {
        self.busy_events += 1;
        self.push(at, event, 0);
    }

    /// Schedules an idle event: one that is no progress, such as a probe of a dead path. If all
    /// ranks wait and only idle events and idle waits are due, the world is in a deadlock.
    pub fn at_idle(&mut self, at: Time, event: E) {
        self.push(at, event, 1);
    }

    #[inline]
    fn push(&mut self, at: Time, event: E, idle: u64) {
        self.asked += 1;
        self.events.push(Due {
            at: at.max(self.now),
            since: self.since,
            order: self.cause << NUMBER_BITS | self.asked << 1 | idle,
            event,
        });
    }

    /// Makes a waiting rank continue now.
    #[inline]
    pub fn wake(&mut self, rank: u32) {
        if self.ranks[rank as usize].state == State::Waiting {
            self.enqueue(rank, self.now);
        }
    }

    /// True if a rank waits.
    pub fn is_waiting(&self, rank: u32) -> bool {
        self.ranks[rank as usize].state == State::Waiting
    }

    /// The time of a rank's clock.
    #[inline]
    pub fn of(&self, rank: u32) -> Time {
        self.ranks[rank as usize].at
    }

    pub(crate) fn advance(&mut self, rank: u32, to: Time) {
        self.ranks[rank as usize].at = to;
    }

    pub(crate) fn in_deadlock(&self) -> bool {
        self.deadlock
    }

    /// Adds a rank to the ready ones, at a time.
    fn enqueue(&mut self, rank: u32, at: Time) {
        let entry = &mut self.ranks[rank as usize];
        entry.ticket = entry.ticket.wrapping_add(1);
        entry.at = entry.at.max(at);
        entry.state = State::Ready;
        self.busy_ranks += u32::from(!std::mem::replace(&mut entry.busy, true));
        self.ready.push(Ready {
            at: entry.at,
            rank,
            ticket: entry.ticket,
        });
    }

    /// Yields a rank's turn; it continues at its own time.
    pub(crate) fn yield_turn(&mut self, rank: u32) {
        self.enqueue(rank, self.of(rank));
    }

    /// Ends a rank's turn until it is woken, or until a time. An `idle` wait is no progress.
    pub(crate) fn suspend(&mut self, rank: u32, until: Option<Time>, idle: bool) {
        let entry = &mut self.ranks[rank as usize];
        if idle || until.is_none() {
            self.busy_ranks -= u32::from(std::mem::take(&mut entry.busy));
        }
        entry.ticket = entry.ticket.wrapping_add(1);
        entry.state = State::Waiting;
        if let Some(until) = until {
            self.ready.push(Ready {
                at: until.max(entry.at),
                rank,
                ticket: entry.ticket,
            });
        }
    }

    pub(crate) fn leave(&mut self, rank: u32) {
        let entry = &mut self.ranks[rank as usize];
        entry.state = State::Gone;
        self.busy_ranks -= u32::from(std::mem::take(&mut entry.busy));
        self.present -= 1;
    }

    /// True if a running rank may continue, because nothing is earlier.
    #[inline]
    pub(crate) fn is_first(&mut self, rank: u32) -> bool {
        let at = self.of(rank);
        let first = self.is_first_at(rank, at);
        if first {
            self.stand(rank);
        }
        first
    }

    /// True if nothing comes before the turn of a rank at `at`.
    #[inline]
    fn is_first_at(&self, rank: u32, at: Time) -> bool {
        self.events.peek().is_none_or(|due| due.at > at)
            && self
                .ready
                .peek()
                .is_none_or(|ready| (ready.at, ready.rank) > (at, rank))
    }

    /// True if a running rank may continue although something is earlier, because it sees nothing
    /// of that before the time that `horizon` gives for the first event and the first other rank.
    #[inline]
    pub(crate) fn may_run_ahead(
        &mut self,
        rank: u32,
        horizon: impl FnOnce(Time, Time) -> Time,
    ) -> bool {
        if !self.ahead {
            return false;
        }
        let event = self.events.peek().map_or(Time::MAX, |due| due.at);
        let other = self.first_ready().map_or(Time::MAX, |ready| ready.at);
        let may = self.of(rank) < horizon(event, other);
        if may {
            self.stand(rank);
        }
        may
    }

    /// Ranks run ahead of each other.
    pub(crate) fn runs_ahead(&self) -> bool {
        self.ahead
    }

    /// Events of a running rank are from now on caused at the time of its clock.
    #[inline]
    pub(crate) fn stand(&mut self, rank: u32) {
        self.now = self.of(rank);
        self.caused_by(u64::from(rank) + 1);
    }

    #[inline]
    fn caused_by(&mut self, cause: u64) {
        if self.ahead {
            (self.since, self.cause) = (self.now, cause);
        }
    }

    /// The time to which a running rank must go back so that everything is as it was there. None:
    /// it need not.
    pub(crate) fn is_behind(&self, rank: u32) -> Option<Time> {
        (self.ahead && !self.is_first_at(rank, self.since)).then_some(self.since)
    }

    /// The first valid entry among the ready ranks.
    #[inline]
    fn first_ready(&mut self) -> Option<Ready> {
        loop {
            match self.ready.peek() {
                Some(ready) if self.ranks[ready.rank as usize].ticket != ready.ticket => {
                    self.ready.pop();
                }
                other => return other.copied(),
            }
        }
    }

    /// Takes the next step. `here`: the rank of this process; `None` if all memory is accessible.
    pub(crate) fn next(
        &mut self,
        here: Option<u32>,
        owner: impl FnOnce(&E) -> Option<u32>,
    ) -> Next<E> {
        if self.busy_events == 0 && self.busy_ranks == 0 {
            return match self.present {
                0 => Next::Over,
                _ => Next::Deadlock,
            };
        }
        let rank = self.first_ready();
        match (self.events.peek(), rank) {
            (Some(due), rank) if rank.is_none_or(|rank| due.at <= rank.at) => {
                if let (Some(here), Some(owner)) = (here, owner(&due.event))
                    && here != owner
                    && self.ranks[owner as usize].state != State::Gone
                {
                    return Next::Owned(owner);
                }
                let due = *due;
                self.events.pop();
                self.busy_events -= u64::from(due.order & 1 == 0);
                self.now = due.at;
                self.caused_by(0);
                self.handled += 1;
                Next::Event(due.event)
            }
            (_, Some(ready)) => {
                let entry = &mut self.ranks[ready.rank as usize];
                entry.at = ready.at;
                Next::Rank(ready.rank)
            }
            (_, None) => unreachable!("a busy rank is ready"),
        }
    }

    /// Begins the turn of a rank.
    pub(crate) fn begin_turn(&mut self, rank: u32) {
        self.ready.pop();
        let entry = &mut self.ranks[rank as usize];
        entry.state = State::Ready;
        self.busy_ranks += u32::from(!std::mem::replace(&mut entry.busy, true));
        self.stand(rank);
    }

    /// Ends all waits, with a deadlock.
    pub(crate) fn end_waiting(&mut self) {
        self.deadlock = true;
        for rank in 0..self.ranks.len() as u32 {
            self.wake(rank);
        }
    }
}

impl<M: Model> World<M> {
    /// A world of `ranks` ranks.
    pub(crate) fn new(memory: WorldMemory, ranks: u32, seed: u64, model: M) -> World<M> {
        let mut clock = Clock::new(memory, ranks, seed);
        clock.ahead = model.runs_ahead();
        World { clock, model }
    }

    #[inline]
    pub(crate) fn next(&mut self, here: Option<u32>) -> Next<M::Event> {
        let model = &self.model;
        self.clock.next(here, |event| model.owner(event))
    }

    #[inline]
    pub(crate) fn handle(&mut self, event: M::Event) {
        self.model.handle(event, &mut self.clock);
    }
}
