//! Waiting: poll, then yield, then sleep. The [`Waiter`] is the one owner of the doorbell, the
//! devices' event descriptors and the clock.
//!
//! With a core for every rank a waiter polls without a pause, because a peer answers sooner than
//! the scheduler; after the spin time it sleeps on its doorbell. Where another rank was last on its
//! core, it sleeps at once: that rank cannot answer meanwhile. With more ranks than cores it
//! yields at once, because its peer may need this core, and sleeps instead while tasks of other
//! jobs make yields dear. Nonblocking calls never sleep for long, so a rank that loses its core to
//! others while it makes them yields, too. A sleeper wakes at least every [`NAP`], to answer the
//! launcher and to notice its end.
//!
//! Invariants:
//! - no lock is held while the rank sleeps or runs tasks;
//! - a sleeper arms its doorbell and its devices, and polls once more, before it sleeps.

mod clock;
mod event_thread;
mod lost_time;
mod policy;
#[cfg(test)]
mod progress_tests;
mod progress_thread;
mod thread;
mod yields;

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::core_counts::CoreWatch;
use crate::doorbell::Bell;
use crate::lock::Guard;
use crate::transports::each;
use crate::waitable::{Waitable, Wakes};
use crate::{Error, Fault, Result, Router};
use clock::WallClock;
use event_thread::EventThread;
use lost_time::LostTime;
use policy::{Patience, Policy};
pub use policy::{Polls, WaitSettings};
pub use progress_thread::{ProgressThread, Watch};

use yields::Yields;

/// Longest sleep, in nanoseconds.
const NAP: u64 = 50_000_000;
/// Longest sleep where a wake-up can be missed, in nanoseconds.
const BLIND_NAP: u64 = 500_000;
/// Longer waits may be for a peer that no network reaches, in nanoseconds.
const USUAL_WAIT: u64 = 1_000_000_000;
/// Fruitless polls of nonblocking calls between two yields, and between two answers to the
/// launcher.
const POLLS_PER_YIELD: u32 = 4;
/// Fruitless polls of nonblocking calls between two looks for other ranks on the core.
const POLLS_PER_LOOK: u32 = 64;
/// Fruitless polls of nonblocking calls between two readings of the clock for lost time: within a
/// slice of another task there are more.
const POLLS_PER_LOSS: u32 = 256;
/// Longest sleep between two nonblocking calls, in nanoseconds.
const DOZE: u64 = 50_000;
const POLLS_PER_ANSWER: u32 = 65_536;

/// The rank that waits, as its waiter sees it: a small handle.
///
/// ```
/// use channel::lock::{Guard, RankLock};
/// use channel::{Error, More, Party, Put, Result, Router, Transport};
/// use channel::{WaitSettings, Waiter};
/// use knobs::Wait;
///
/// struct State {
///     router: Router,
///     packets: usize,
/// }
///
/// #[derive(Clone, Copy)]
/// struct Rank<'a>(&'a RankLock<State>);
///
/// impl Party for Rank<'_> {
///     type State = State;
///     type Error = Error;
///     fn lock(&self) -> Guard<'_, State> {
///         self.0.lock()
///     }
///     fn has_threads(&self) -> bool {
///         false
///     }
///     fn router(state: &mut State) -> &mut Router {
///         &mut state.router
///     }
///     fn progress(state: &mut State) -> Result<bool> {
///         let packets = state.router.poll(|_, _, _| More::Wanted)?;
///         state.packets += packets;
///         Ok(packets > 0)
///     }
///     fn needs_room(_: &State) -> bool {
///         false
///     }
///     fn has_tasks(_: &State) -> bool {
///         false
///     }
///     fn run_tasks(&self) -> bool {
///         false
///     }
///     fn attend(&self) -> Result<()> {
///         Ok(())
///     }
///     fn contact_awaited(_: &mut State) -> Result<()> {
///         Ok(())
///     }
///     fn contain(_: &mut State, error: Error) -> Result<()> {
///         Err(error)
///     }
///     fn deadlock(&self, _: &mut State) -> Error {
///         unreachable!("only a modelled machine has deadlocks")
///     }
/// }
///
/// let mut router = Router::alone();
/// let settings = WaitSettings { mode: Wait::Auto, spin_ns: 1000 };
/// let waiter = Waiter::new(&mut router, &settings);
/// assert_eq!(router.put(0, [1, 2, 3], 0, |_| ())?, Put::Accepted);
/// let lock = RankLock::new(State { router, packets: 0 }, "call from one thread at a time");
/// let packets = waiter.wait_until(&Rank(&lock), |state| {
///     Ok((state.packets > 0).then_some(state.packets))
/// })?;
/// assert_eq!(packets, 1);
/// # Ok::<(), Error>(())
/// ```
pub trait Party: Copy {
    /// State that the rank's lock protects.
    type State;
    /// The error of the rank's calls.
    type Error: From<Error>;

    /// Takes the rank's lock.
    fn lock(&self) -> Guard<'_, Self::State>;
    /// Several threads may call the library.
    fn has_threads(&self) -> bool;
    /// The rank's transports.
    fn router(state: &mut Self::State) -> &mut Router;
    /// One round of progress, without tasks. True if anything moved.
    fn progress(state: &mut Self::State) -> std::result::Result<bool, Self::Error>;
    /// Packets of this rank wait for room at a peer.
    fn needs_room(state: &Self::State) -> bool;
    /// Tasks are under way.
    fn has_tasks(state: &Self::State) -> bool;
    /// Runs the tasks, without the lock. True if the condition of a wait may hold now, because
    /// something has changed since the last run, by a task or before it. A change is reported once,
    /// so a rank whose tasks only wait goes to sleep.
    fn run_tasks(&self) -> bool;
    /// The thread that works for this rank, and rings its doorbell, if there is one. A task takes
    /// its results.
    fn helper(_: &Self::State) -> Helper {
        Helper::Absent
    }
    /// The moment of virtual time at which a task or a call goes on, if one waits for nothing
    /// else.
    fn deadline(_: &Self::State) -> Option<u64> {
        None
    }
    /// Answers the launcher, if it has asked. An error if the launcher is gone.
    fn attend(&self) -> std::result::Result<(), Self::Error>;
    /// Names the peers that the rank waits for to the router, so that a dead path to one is noticed
    /// though the rank sends nothing. Called where a wait may never end otherwise.
    fn contact_awaited(state: &mut Self::State) -> std::result::Result<(), Self::Error>;
    /// A transport failed. Ok: the failure concerns one peer only, and the rank has taken note of
    /// it, so the wait goes on.
    fn contain(state: &mut Self::State, error: Error) -> std::result::Result<(), Self::Error>;
    /// All ranks of the modelled machine wait, and no event is due.
    fn deadlock(&self, state: &mut Self::State) -> Self::Error;
}

/// A rank, as its progress thread sees it. [`Party::progress`] is a round of this thread.
pub trait Assisted: Party {
    /// Takes the rank's lock, if nobody holds it.
    fn try_lock(&self) -> Option<Guard<'_, Self::State>>;
    /// A number that changes whenever a round has moved something.
    fn rounds(state: &Self::State) -> u64;
}

/// The one place where a rank waits.
pub struct Waiter {
    policy: Policy,
    clock: WallClock,
    /// The rank lives by the clock of the node that it has had from its start.
    by_node_clock: bool,
    /// Rung by peers that write to this rank; `None` if no memory is shared.
    bell: Option<Bell>,
    /// The ranks on this host's cores; `None` where the rank does not give way to others.
    cores: Option<CoreWatch>,
    yields: Yields,
    /// The time that tasks of other jobs take from nonblocking calls.
    lost: LostTime,
    /// Number of the rank's threads that sleep on the doorbell.
    sleepers: AtomicUsize,
    /// Threads that ring the doorbell for events; started at the rank's first sleep.
    events: OnceLock<Box<[EventThread]>>,
    /// Consecutive fruitless polls of nonblocking calls.
    idle_polls: AtomicU32,
    /// The time of an early one of these.
    idle_since: AtomicU64,
    /// The progress thread has moved something since a call last wanted to sleep: the call must
    /// look again. Written under the rank's lock.
    thread_moved: AtomicBool,
}

/// A thread that works for a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// There is none.
    Absent,
    /// It has nothing for the rank at this moment.
    Works,
    /// It has results that the rank has not taken.
    HasResults,
}

/// The depth of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    /// No wake-up is missed, at the price of a fence on all cores.
    Deep,
    /// A wake-up can be missed, so the sleep has a limit in nanoseconds.
    Light(u64),
}

impl Waiter {
    /// The waiter of a rank with these transports.
    pub fn new(router: &mut Router, settings: &WaitSettings) -> Waiter {
        let (bell, has_devices) = (router.bell(), router.passes_time());
        // Without a doorbell that a peer could ring, time passes only through the node.
        let policy = match has_devices && bell.is_none() {
            true => Policy::through_node(),
            false => Policy::new(settings),
        };
        if has_devices {
            policy.add_devices(router.only_devices(), router.by_processor());
        }
        let waiter = Waiter {
            cores: router.core_watch().filter(|_| policy.gives_way()),
            by_node_clock: policy.is_through_node(),
            policy,
            clock: WallClock::start(),
            bell,
            yields: Yields::new(),
            lost: LostTime::new(),
            sleepers: AtomicUsize::new(0),
            events: OnceLock::new(),
            idle_polls: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            thread_moved: AtomicBool::new(false),
        };
        waiter.count_cores(router);
        waiter
    }

    /// The rank has got its first devices, late. What it has learned of its cores stays.
    pub fn add_devices(&self, router: &mut Router) {
        let by_processor = router.by_processor();
        self.policy.add_devices(router.only_devices(), by_processor);
        router.may_spin &= !by_processor;
        if self.bell.is_none() {
            self.policy.wait_through_node();
        }
    }

    /// Nanoseconds since some fixed moment, by the clock by which the rank lives.
    pub fn now(&self, router: impl FnOnce() -> u64) -> u64 {
        match self.by_node_clock {
            true => router(),
            false => self.clock.now(),
        }
    }

    /// The rank yields its core early, because others may need it.
    pub fn is_crowded(&self) -> bool {
        self.policy.is_crowded()
    }

    /// The numbers of polls that a blocking receive makes before it becomes a request.
    #[inline]
    pub fn polls(&self) -> Polls {
        self.policy.polls()
    }

    /// Waits until `done` gives an answer, and makes progress meanwhile.
    #[inline]
    pub fn wait_until<P: Party, T>(
        &self,
        party: &P,
        mut done: impl FnMut(&mut P::State) -> std::result::Result<Option<T>, P::Error>,
    ) -> std::result::Result<T, P::Error> {
        let mut patience = Patience::default();
        let mut state = party.lock();
        loop {
            if let Some(answer) = done(&mut state)? {
                return Ok(answer);
            }
            let mut moved = P::progress(&mut state)?;
            if P::has_tasks(&state) {
                drop(state);
                moved |= party.run_tasks();
                state = party.lock();
            }
            if moved {
                patience = Patience::default();
                if party.has_threads() {
                    drop(state);
                    self.wake_threads();
                    state = party.lock();
                }
                continue;
            }
            patience.polls += 1;
            patience.moves_bulk = P::router(&mut state).moves_bulk();
            if !party.has_threads() && !self.policy.is_due(&patience) {
                if !self.policy.polls_devices() && !P::needs_room(&state) {
                    // A poll of a device, or a try to send, takes long enough. In a virtual machine
                    // the hint may cost more than the poll.
                    std::hint::spin_loop();
                }
                continue;
            }
            drop(state);
            let sleep = self.lose_patience(party, &mut patience)?;
            state = party.lock();
            if let Some(sleep) = sleep {
                if let Some(answer) = self.nap(party, state, sleep, &mut done)? {
                    return Ok(answer);
                }
                state = party.lock();
            }
        }
    }

    /// Polls for a nonblocking call: once, and again after a round of progress. A program that
    /// makes such calls in a loop must neither keep its peers from a core that they share nor
    /// deafen the rank to its launcher.
    #[inline(always)]
    pub fn poll<P: Party, T>(
        &self,
        party: P,
        mut done: impl FnMut(&mut P::State) -> std::result::Result<Option<T>, P::Error>,
    ) -> std::result::Result<Option<T>, P::Error> {
        let mut state = party.lock();
        let (mut moved, mut again) = (false, false);
        loop {
            let answer = done(&mut state)?;
            if answer.is_some() || moved {
                self.idle_polls.store(0, Ordering::Relaxed);
                return Ok(answer);
            }
            if again {
                break;
            }
            moved = P::progress(&mut state)?;
            if !moved && !P::has_tasks(&state) {
                break;
            }
            drop(state);
            moved |= party.run_tasks();
            if moved && party.has_threads() {
                self.wake_threads();
            }
            state = party.lock();
            again = true;
        }
        let idle = self.idle_polls.load(Ordering::Relaxed).wrapping_add(1);
        self.idle_polls.store(idle, Ordering::Relaxed);
        if idle.is_multiple_of(POLLS_PER_YIELD) {
            drop(state);
            self.idle(party, idle)?;
        }
        Ok(None)
    }

    /// A message has arrived outside of a wait: another thread of this rank may sleep for it.
    pub fn wake_threads(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0
            && let Some(bell) = &self.bell
        {
            bell.ring();
        }
    }

    /// Several polls in a row have found nothing.
    #[inline(never)]
    fn idle<P: Party>(&self, party: P, polls: u32) -> std::result::Result<(), P::Error> {
        if self.policy.is_crowded() || self.lost.is_losing() {
            if self.policy.is_open() {
                self.count_cores(P::router(&mut party.lock()));
            }
            if self.lost.is_losing() {
                self.look_at_loss(polls);
            }
            if self.sleeps_instead() {
                self.doze(&party)?;
            } else {
                self.give_way();
            }
        } else if polls.is_multiple_of(POLLS_PER_LOOK) {
            self.look_at_loss(polls);
            if self.core_is_shared() {
                self.doze(&party)?;
            }
        }
        if polls.is_multiple_of(POLLS_PER_ANSWER) {
            party.attend()?;
        }
        match self.is_long_idle(polls) {
            true => self.look_for_losses(&party),
            false => Ok(()),
        }
    }

    /// Looks at the time that this rank loses to tasks of others, now and then.
    #[cold]
    #[inline(never)]
    fn look_at_loss(&self, polls: u32) {
        if polls.is_multiple_of(POLLS_PER_LOSS) && self.cores.is_some() {
            self.lost.look(self.clock.now());
        }
    }

    /// Polls have found nothing for so long that a peer may be out of reach. Only a modelled
    /// machine knows of dead paths sooner.
    #[inline]
    fn is_long_idle(&self, polls: u32) -> bool {
        if !self.policy.polls_devices() {
            return false;
        }
        if self.policy.is_through_node() {
            return true;
        }
        if !polls.is_multiple_of(POLLS_PER_LOOK) {
            return false;
        }
        let now = self.clock.now();
        if polls == POLLS_PER_LOOK {
            self.idle_since.store(now, Ordering::Relaxed);
        }
        now.saturating_sub(self.idle_since.load(Ordering::Relaxed)) > USUAL_WAIT
    }

    #[cold]
    fn look_for_losses<P: Party>(&self, party: &P) -> std::result::Result<(), P::Error> {
        let mut state = party.lock();
        let router = P::router(&mut state);
        if router.machine().is_virtual() && !router.knows_cuts() {
            return Ok(());
        }
        P::contact_awaited(&mut state)?;
        match P::router(&mut state).tend_last_paths() {
            Err(error) => P::contain(&mut state, error),
            Ok(()) => Ok(()),
        }
    }

    /// Another rank was last on this core, too.
    #[inline]
    fn core_is_shared(&self) -> bool {
        self.cores.as_ref().is_some_and(CoreWatch::core_is_shared)
    }

    /// Yields are dear at this moment, and a sleep is possible.
    fn sleeps_instead(&self) -> bool {
        let sleeps = self.cores.is_some() && !self.yields.are_cheap();
        if sleeps {
            self.yields.rested();
        }
        sleeps
    }

    /// Yields the core, and notes the price.
    fn give_way(&self) {
        let turn = self.cores.as_ref().map(|cores| (cores, cores.begin_turn()));
        let before = self.clock.now();
        std::thread::yield_now();
        let nanos = self.clock.now().saturating_sub(before);
        let among_ranks = turn.is_some_and(|(cores, turn)| cores.others_had(&turn));
        self.yields.took(nanos, among_ranks);
    }

    /// Sleeps for a short time between two nonblocking calls.
    fn doze<P: Party>(&self, party: &P) -> std::result::Result<(), P::Error> {
        self.nap(party, party.lock(), Sleep::Light(DOZE), &mut |_| {
            Ok(None::<()>)
        })
        .map(|_| ())
    }

    /// Finds out whether each rank of this host has a core, if that is open, and tells the router.
    #[cold]
    #[inline(never)]
    fn count_cores(&self, router: &mut Router) {
        if let Some(each) = router.has_core_each() {
            let may_spin = each && !router.by_processor();
            router.may_spin = may_spin;
            self.policy.decide(each, may_spin);
        }
    }

    /// Lets time pass, unless it is time to sleep.
    #[inline(never)]
    fn lose_patience<P: Party>(
        &self,
        party: &P,
        patience: &mut Patience,
    ) -> std::result::Result<Option<Sleep>, P::Error> {
        if self.policy.is_crowded() && !self.policy.has_polled(patience) {
            return Ok(None);
        }
        if self.policy.is_open() {
            self.count_cores(P::router(&mut party.lock()));
        }
        if self.policy.is_through_node() && !party.has_threads() {
            return self.wait_through_node(party, patience).map(|()| None);
        }
        let now = self.clock.now();
        let since = *patience.since.get_or_insert(now);
        let waited = now.saturating_sub(since);
        if waited > patience.attended + NAP {
            patience.attended = waited;
            party.attend()?;
            if waited > USUAL_WAIT {
                P::contact_awaited(&mut party.lock())?;
            }
        }
        if self.policy.spins(waited) {
            if party.has_threads() {
                std::hint::spin_loop();
            } else if self.core_is_shared() {
                return Ok(Some(Sleep::Deep));
            }
        } else if waited < self.policy.spin_time(patience) || self.bell.is_none() {
            if self.sleeps_instead() {
                return Ok(Some(Sleep::Deep));
            }
            // Without a doorbell only another thread of this rank could help.
            self.give_way();
        } else if self.policy.only_devices() && !party.has_threads() && !self.has_helper(party) {
            // Neither the doorbell nor the thread that rings it is needed.
            let mut state = party.lock();
            if self.takes_note_of_thread() {
                return Ok(None);
            }
            if let Err(error) = P::router(&mut state).pass_time(NAP) {
                P::contain(&mut state, error)?;
            }
        } else {
            return Ok(Some(Sleep::Deep));
        }
        Ok(None)
    }

    fn has_helper<P: Party>(&self, party: &P) -> bool {
        P::helper(&party.lock()) != Helper::Absent
    }

    /// Waits through the rank's node. In virtual time nothing else happens: no launcher asks.
    fn wait_through_node<P: Party>(
        &self,
        party: &P,
        patience: &mut Patience,
    ) -> std::result::Result<(), P::Error> {
        let mut state = party.lock();
        if self.takes_note_of_thread() {
            return Ok(());
        }
        if P::router(&mut state).knows_cuts() {
            P::contact_awaited(&mut state)?;
        }
        let has_helper = P::helper(&state) != Helper::Absent;
        let deadline = P::deadline(&state);
        let router = P::router(&mut state);
        let is_virtual = router.machine().is_virtual();
        let longest = match (is_virtual, has_helper) {
            (true, _) => match deadline {
                Some(moment) => moment.saturating_sub(router.machine().now()).max(1),
                None => u64::MAX,
            },
            // It cannot ring.
            (false, true) => BLIND_NAP,
            (false, false) => NAP,
        };
        if let Err(error) = router.pass_time(longest) {
            if let Fault::Deadlock = error.fault() {
                return Err(party.deadlock(&mut state));
            }
            P::contain(&mut state, error)?;
        }
        drop(state);
        match !is_virtual || patience.polls.is_multiple_of(1024) {
            true => party.attend(),
            false => Ok(()),
        }
    }

    /// Sleeps until a peer or a device rings, or a nap has passed, unless `done` has an answer now.
    fn nap<P: Party, T>(
        &self,
        party: &P,
        mut state: Guard<'_, P::State>,
        sleep: Sleep,
        done: &mut impl FnMut(&mut P::State) -> std::result::Result<Option<T>, P::Error>,
    ) -> std::result::Result<Option<T>, P::Error> {
        if self.takes_note_of_thread() {
            return Ok(None);
        }
        // A peer rings only if it finds a sleeper, so this rank polls again once it counts as one.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let (longest, fence) = match sleep {
            Sleep::Deep => (NAP, true),
            Sleep::Light(longest) => (longest, false),
        };
        let ordered = self.bell.as_ref().is_some_and(|bell| bell.arm(fence));
        let nap = self.prepare_nap(party, &mut state, ordered);
        let answer = done(&mut state);
        drop(state);
        match (&nap, &answer) {
            (Ok(nap), Ok(None)) => self.sleep(longest.min(*nap)),
            _ => self.sleep(0),
        }
        nap?;
        answer
    }

    /// The progress thread has moved something since the last call of this function. To be called
    /// under the rank's lock before a sleep: what the caller waits for may have come.
    fn takes_note_of_thread(&self) -> bool {
        let moved = self.thread_moved.load(Ordering::Relaxed);
        if moved {
            self.thread_moved.store(false, Ordering::Relaxed);
        }
        moved
    }

    /// Polls once more, now that every writer rings. The answer is the longest sleep, in
    /// nanoseconds.
    fn prepare_nap<P: Party>(
        &self,
        _party: &P,
        state: &mut P::State,
        ordered: bool,
    ) -> std::result::Result<u64, P::Error> {
        let (nap, has_events) = self.arm::<P>(state, ordered)?;
        if nap > 0 && has_events {
            self.watch_events(P::router(state))?;
        }
        Ok(nap)
    }

    /// Arms the transports and polls once more. The answer is the longest sleep in nanoseconds, and
    /// whether devices raise events.
    fn arm<P: Party>(
        &self,
        state: &mut P::State,
        ordered: bool,
    ) -> std::result::Result<(u64, bool), P::Error> {
        let rings = match P::router(state).arm() {
            Ok(Some(rings)) => rings,
            Ok(None) => return Ok((nap_of::<P>(state, ordered), false)),
            Err(error) => {
                P::contain(state, error)?;
                return Ok((0, true));
            }
        };
        // Only a whole poll finds what devices have brought.
        if P::progress(state)? {
            return Ok((0, true));
        }
        Ok((nap_of::<P>(state, ordered && rings), true))
    }

    /// Lets the devices' events ring this rank's doorbell.
    fn watch_events(&self, router: &mut Router) -> Result<()> {
        let Some(bell) = &self.bell else {
            return Ok(());
        };
        if self.events.get().is_none() {
            let start = |events| EventThread::new(events, bell.clone());
            let threads = router.events()?.into_iter().map(start);
            let threads = threads.collect::<std::io::Result<_>>().map_err(|why| {
                Fault::System("cannot start the thread that awaits device events", why)
            })?;
            // The rank's lock is held, so no other thread sets it.
            let _ = self.events.set(threads);
        }
        let threads = self.events.get().into_iter().flatten();
        threads.for_each(EventThread::watch);
        Ok(())
    }

    /// Sleeps for at most `nap` nanoseconds, and gets up.
    fn sleep(&self, nap: u64) {
        let Some(bell) = &self.bell else { return };
        if nap > 0 {
            bell.wait(nap);
            // A peer may look before this rank waits again.
            self.core_is_shared();
        }
        self.get_up(bell);
    }

    /// Ends the rank's progress thread.
    pub fn end_thread(&self, thread: ProgressThread) {
        thread.end(self.bell.as_ref());
    }

    /// One look of the progress thread: a round if nobody else makes one, and a sleep if there is
    /// nothing to do.
    ///
    /// # Errors
    /// Progress failed.
    pub fn look<P: Assisted>(
        &self,
        party: &P,
        watch: &mut Watch,
    ) -> std::result::Result<(), P::Error> {
        let Some(mut state) = party.try_lock() else {
            watch.pause();
            return Ok(());
        };
        // A call that sleeps is awake as soon as this thread would be.
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(state);
            watch.pause();
            return Ok(());
        }
        let is_active = watch.seen != self.rounds::<P>(&state);
        let moved = P::progress(&mut state);
        self.end_round::<P>(&state, watch, !matches!(moved, Ok(false)));
        let moved = moved?;
        let is_held_up = watch.is_held_up() && !moved;
        if is_active || is_held_up {
            drop(state);
            watch.pause();
        } else if !moved {
            let is_held_up = self.rest(party, state, watch)?;
            watch.rested(is_held_up);
        }
        Ok(())
    }

    /// A number that changes whenever a call has made progress, or has polled in vain.
    fn rounds<P: Assisted>(&self, state: &P::State) -> u64 {
        let polls = self.idle_polls.load(Ordering::Relaxed);
        P::rounds(state).wrapping_add(u64::from(polls))
    }

    /// Notes what the thread itself has done.
    fn end_round<P: Assisted>(&self, state: &P::State, watch: &mut Watch, moved: bool) {
        watch.seen = self.rounds::<P>(state);
        if moved {
            self.thread_moved.store(true, Ordering::Relaxed);
        }
    }

    /// Sleeps until a peer or a device has something for this rank. True, without a sleep:
    /// something is there already, and the last poll, which follows the arming, has not moved it.
    fn rest<P: Assisted>(
        &self,
        party: &P,
        mut state: Guard<'_, P::State>,
        watch: &mut Watch,
    ) -> std::result::Result<bool, P::Error> {
        let bell = self.bell.as_ref();
        let Some(bell) = bell.filter(|_| !self.policy.only_devices()) else {
            if watch.events.is_none() {
                watch.events = Some(P::router(&mut state).events()?);
            }
            let nap = self.arm::<P>(&mut state, true).map(|(nap, _)| nap);
            let moved = watch.seen != self.rounds::<P>(&state);
            self.end_round::<P>(&state, watch, !matches!(nap, Ok(NAP)));
            drop(state);
            let nap = nap?;
            watch.sleep_on_events(nap);
            return Ok(nap == 0 && !moved);
        };
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let ordered = bell.arm(true);
        let nap = self.prepare_nap(party, &mut state, ordered);
        let moved = watch.seen != self.rounds::<P>(&state);
        self.end_round::<P>(&state, watch, !matches!(nap, Ok(NAP)));
        drop(state);
        if let Ok(nap) = nap
            && nap > 0
            && !watch.is_over()
        {
            bell.wait(nap);
        }
        self.get_up(bell);
        Ok(nap? == 0 && !moved)
    }

    /// Ends a sleep on the doorbell.
    fn get_up(&self, bell: &Bell) {
        match self.sleepers.fetch_sub(1, Ordering::SeqCst) {
            1 => bell.disarm(),
            _ => bell.rouse(),
        }
    }
}

/// The longest sleep of a rank that finds things as they are now, in nanoseconds.
fn nap_of<P: Party>(state: &mut P::State, ordered: bool) -> u64 {
    if P::helper(state) == Helper::HasResults {
        return 0;
    }
    match (P::router(state).is_quiet(), ordered, P::needs_room(state)) {
        (false, ..) => 0,
        (true, true, false) => NAP,
        // A wake-up can be missed, or the rank waits for room, which may have come before the last
        // poll.
        (true, ..) => BLIND_NAP,
    }
}

impl Router {
    /// A transport knows when no path to a peer carries anything.
    fn knows_cuts(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.knows_cuts() {
                return true;
            }
        });
        false
    }

    /// Long messages are moved at this moment, while this rank does something else.
    #[inline(always)]
    fn moves_bulk(&self) -> bool {
        each!(&self.transports, transport => {
            if transport.moves_bulk() {
                return true;
            }
        });
        false
    }

    /// Nothing has arrived at this moment that no event reports.
    fn is_quiet(&mut self) -> bool {
        each!(&mut self.transports, transport => {
            if !transport.is_quiet() {
                return false;
            }
        });
        true
    }

    /// Arms the transports. Some are woken by events: does each arrival raise one? `None`: all are
    /// woken by the doorbell.
    fn arm(&mut self) -> Result<Option<bool>> {
        let mut rings = None;
        each!(&mut self.transports, transport => {
            match transport.arm()? {
                Wakes::ByDoorbell => {}
                wakes => rings = Some(rings.unwrap_or(true) && wakes == Wakes::ByEvent),
            }
        });
        Ok(rings)
    }

    /// The descriptors that become readable with the events of armed transports.
    fn events(&mut self) -> Result<Vec<OwnedFd>> {
        let mut events = Vec::new();
        each!(&mut self.transports, transport => events.extend(transport.events()?));
        Ok(events)
    }

    /// Judges peers that no path reaches. An error: one is lost.
    fn tend_last_paths(&mut self) -> Result<()> {
        each!(&mut self.transports, transport => transport.tend_last_paths()?);
        Ok(())
    }

    /// Lets at most `nanos` nanoseconds pass through the rank's node, until something may have
    /// changed.
    fn pass_time(&mut self, nanos: u64) -> Result<()> {
        each!(&mut self.transports, transport => transport.pass_time(nanos)?);
        Ok(())
    }

    /// This rank's doorbell.
    fn bell(&self) -> Option<Bell> {
        let mut bell = None;
        each!(&self.transports, transport => bell = bell.or(transport.bell()));
        bell
    }

    /// The watch of this rank over its core.
    fn core_watch(&self) -> Option<CoreWatch> {
        let mut watch = None;
        each!(&self.transports, transport => watch = watch.or(transport.core_watch()));
        watch
    }

    /// Each rank of this host has a core. `None`: not known yet.
    fn has_core_each(&mut self) -> Option<bool> {
        let mut each = true;
        each!(&mut self.transports, transport => each &= transport.has_core_each()?);
        Some(each)
    }
}
