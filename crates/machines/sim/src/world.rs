//! The world: the pending events in order of time, and the rank whose turn it is.

use crate::Random;
use crate::heap::Heap;
use crate::memory::{Vec, WorldMemory};

/// Virtual time, in picoseconds since the beginning of the run.
pub type Time = u64;

/// The state that ranks share, apart from time.
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
    /// An event. It is stored in the memory of the world, and may contain no pointer out of it.
    type Event: Copy;

    /// Handles an event whose time has come. It may wake ranks and schedule further events.
    fn handle(&mut self, event: Self::Event, clock: &mut Clock<Self::Event>);

    /// The rank whose private memory the event accesses, if any. If ranks are processes, the event
    /// is handled in the process of that rank.
    fn owner(&self, _: &Self::Event) -> Option<u32> {
        None
    }

    /// Called before rank `_rank` continues, in its own process, where its private memory can be
    /// written.
    fn resume(&mut self, _rank: u32, _clock: &mut Clock<Self::Event>) {}

    /// True if ranks may run ahead of each other, up to [`horizon`](Model::horizon). Called once,
    /// when the world is made.
    fn runs_ahead(&self) -> bool {
        false
    }

    /// The time before which rank `_rank` sees nothing new, if the first pending event is due at
    /// `event` and the first other rank at `other`.
    fn horizon(&self, _rank: u32, event: Time, other: Time) -> Time {
        event.min(other)
    }
}

/// A world: a clock and a model.
pub struct World<M: Model> {
    /// The pending events and the ranks, in order of their times.
    pub clock: Clock<M::Event>,
    /// The modelled state that ranks share.
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
    /// The number of pending events that are not idle. If this and `busy_ranks` are 0, only idle
    /// events and idle waits are left: a deadlock.
    busy_events: u64,
    /// The number of ranks that run, can run, or wait until some time in a wait that is not idle.
    busy_ranks: u32,
    /// The number of ranks that have not left the world.
    present: u32,
    deadlock: bool,
    /// True if ranks may run ahead of each other in virtual time.
    ahead: bool,
    /// The time of the present event, or the last time at which the running rank let others run
    /// first or would have done so. 0 unless ranks run ahead.
    since: Time,
    /// The cause of new events: 0 for an event, the rank's number plus one for a rank. 0 unless
    /// ranks run ahead.
    cause: u64,
    /// The generator of all random numbers in the world.
    pub random: Random,
    /// The number of events that have been handled.
    pub handled: u64,
}

#[derive(Clone, Copy)]
struct Due<E> {
    at: Time,
    /// The time at which the event was caused. It orders events that are due at one time: they are
    /// handled in the order in which they would be scheduled if no rank ran ahead.
    since: Time,
    /// Orders events with equal `since`: the number of the event's cause, then that of the event.
    /// The lowest bit marks an idle event.
    order: u64,
    event: E,
}

/// The number of bits of an event's number together with the mark of idle ones.
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

    /// As `cmp`, and without a branch that a processor would have to guess: the events of ranks in
    /// lockstep come in any order.
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        let (own, theirs) = (self.times(), other.times());
        (own < theirs) | (own == theirs) & (self.order < other.order)
    }
}

impl<E> Ord for Due<E> {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.times(), self.order).cmp(&(other.times(), other.order))
    }
}

impl<E> Due<E> {
    /// Both times in one number; the time at which the event is due is in the upper half.
    #[inline]
    fn times(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.since)
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
    /// True if the rank runs, can run, or waits until some time in a wait that is not idle.
    busy: bool,
    /// The number of the rank's valid entry in `ready`; its other entries there are stale.
    ticket: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The rank runs, or can run.
    Ready,
    /// The rank waits for an event, or for a deadline.
    Waiting,
    Gone,
}

/// The next step of the world: an event or a rank's turn.
pub(crate) enum Next<E> {
    /// An event to handle, which the clock no longer holds.
    Event(E),
    /// An event that only the process of this rank can handle.
    Owned(u32),
    Rank(u32),
    /// All ranks wait, and nothing is due except idle events and idle waits.
    Deadlock,
    /// All ranks have left, so there is no further step.
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

    /// The time of the present event, or of the rank whose turn it is.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event for the time `at`. An event in the past happens now.
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

    /// Makes a waiting rank continue now. Does nothing if the rank does not wait.
    #[inline]
    pub fn wake(&mut self, rank: u32) {
        if self.ranks[rank as usize].state == State::Waiting {
            self.enqueue(rank, self.now);
        }
    }

    /// True if the rank waits for an event.
    pub fn is_waiting(&self, rank: u32) -> bool {
        self.ranks[rank as usize].state == State::Waiting
    }

    /// The virtual time of the rank's clock.
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

    /// Adds a rank to the ready ones. It continues at the time `at`, or at the time of its own
    /// clock if that is later.
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

    /// Ends a rank's turn; the rank is ready again at the time of its own clock.
    pub(crate) fn yield_turn(&mut self, rank: u32) {
        self.enqueue(rank, self.of(rank));
    }

    /// Ends a rank's turn until an event wakes it, or until the time `until`. An `idle` wait is no
    /// progress.
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

    /// True if the running rank may continue, because no event and no other rank is earlier.
    #[inline]
    pub(crate) fn is_first(&mut self, rank: u32) -> bool {
        let at = self.of(rank);
        let first = self.is_first_at(rank, at);
        if first {
            self.stand(rank);
        }
        first
    }

    /// True if no event and no other rank is due before `rank` has its turn at the time `at`.
    #[inline]
    fn is_first_at(&self, rank: u32, at: Time) -> bool {
        self.events.peek().is_none_or(|due| due.at > at)
            && self
                .ready
                .peek()
                .is_none_or(|ready| (ready.at, ready.rank) > (at, rank))
    }

    /// True if the running rank may continue although something is earlier, because it sees no
    /// effect of that before the time that `horizon` gives for the first event and the first other
    /// rank.
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

    /// True if ranks may run ahead of each other in virtual time.
    pub(crate) fn runs_ahead(&self) -> bool {
        self.ahead
    }

    /// Makes this running rank the cause of events from now on, at the time of its clock.
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

    /// The time to which a running rank must go back, so that it accesses the world in the state of
    /// that time. `None`: it need not.
    pub(crate) fn is_behind(&self, rank: u32) -> Option<Time> {
        (self.ahead && !self.is_first_at(rank, self.since)).then_some(self.since)
    }

    /// The first valid entry among the ranks that are ready.
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

    /// Takes the next step. `here` is the rank of this process, or `None` if the memory of all
    /// ranks is accessible. `owner` gives the rank whose private memory an event accesses.
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

    /// Ends the waits of all ranks, which then report a deadlock.
    pub(crate) fn end_waiting(&mut self) {
        self.deadlock = true;
        for rank in 0..self.ranks.len() as u32 {
            self.wake(rank);
        }
    }
}

impl<M: Model> World<M> {
    /// Makes a world of `ranks` ranks, all ready at time 0.
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
