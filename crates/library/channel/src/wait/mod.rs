//! Waiting: poll, then yield, then sleep. Only the [`Waiter`] uses the doorbell, the devices' event
//! descriptors and the clock.
//!
//! If there is a core for every rank, a waiter polls without a pause, because a peer answers sooner
//! than the scheduler; after the spin time it sleeps on its doorbell. If another rank was last on
//! its core, it sleeps at once: that rank cannot answer meanwhile. With more ranks than cores it
//! yields at once, because its peer may need this core; it sleeps instead while processes of other
//! jobs make yields costly. Nonblocking calls never sleep for long, so a rank that loses its core
//! to others while it makes them yields, too. A sleeper wakes at least every [`NAP`] nanoseconds,
//! to answer the launcher and to detect the launcher's end.
//!
//! Invariants:
//! - no lock is held while the rank sleeps or runs tasks;
//! - before it sleeps, a sleeper arms its doorbell and its devices, and then polls once more.

mod clock;
mod event_thread;
mod lost_time;
mod own_core;
mod party;
mod policy;
#[cfg(test)]
mod progress_tests;
mod progress_thread;
mod router;
mod sleepers;
mod thread;
mod yields;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::lock::Guard;
use crate::{Fault, Router};
use clock::WallClock;
use lost_time::LostTime;
use own_core::OwnCore;
pub use party::{Assisted, Helper, Party};
use policy::{Patience, Policy};
pub use policy::{Polls, WaitSettings};
use progress_thread::Beside;
pub use progress_thread::{ProgressThread, Watch};
use sleepers::{BLIND_NAP, NAP, Sleep, Sleepers};

/// A longer wait may be for a peer that no network reaches any more, in nanoseconds.
const USUAL_WAIT: u64 = 1_000_000_000;
/// Number of fruitless polls of nonblocking calls from one yield to the next.
const POLLS_PER_YIELD: u32 = 4;
/// Number of fruitless polls of nonblocking calls from one check for other ranks on the core to the
/// next.
const POLLS_PER_LOOK: u32 = 64;
/// Number of fruitless polls of nonblocking calls from one check of lost time to the next: more
/// polls than this fit into a time slice of the scheduler.
const POLLS_PER_LOSS: u32 = 256;
/// The longest sleep between two nonblocking calls, in nanoseconds.
const DOZE: u64 = 50_000;
/// Number of fruitless polls of nonblocking calls from one answer to the launcher to the next.
const POLLS_PER_ANSWER: u32 = 65_536;

/// The waiter of a rank: the only place in which the rank waits.
pub struct Waiter {
    policy: Policy,
    clock: WallClock,
    /// True if the rank's time is the clock of the node that it has had from its start.
    by_node_clock: bool,
    sleepers: Sleepers,
    core: OwnCore,
    /// The time that nonblocking calls lose to processes of other jobs.
    lost: LostTime,
    /// The number of consecutive polls of nonblocking calls that found nothing.
    idle_polls: AtomicU32,
    /// The time of one of the first of these fruitless polls, in nanoseconds.
    idle_since: AtomicU64,
}

impl Waiter {
    /// The waiter of a rank that has the transports of `router`.
    pub fn new(router: &mut Router, settings: &WaitSettings) -> Waiter {
        let (bell, has_devices) = (router.bell(), router.passes_time());
        // Without a doorbell that a peer could ring, the rank waits only through its node.
        let policy = match has_devices && bell.is_none() {
            true => Policy::through_node(),
            false => Policy::new(settings),
        };
        if has_devices {
            policy.add_devices(router.only_devices(), router.by_processor());
        }
        let waiter = Waiter {
            core: OwnCore::new(router.core_watch().filter(|_| policy.gives_way())),
            by_node_clock: policy.is_through_node(),
            policy,
            clock: WallClock::start(),
            sleepers: Sleepers::new(bell),
            lost: LostTime::new(),
            idle_polls: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
        };
        waiter.count_cores(router);
        waiter
    }

    /// Adapts the waiter to the rank's first devices, if they were added after the start. Its
    /// knowledge of the cores is kept.
    pub fn add_devices(&self, router: &mut Router) {
        let by_processor = router.by_processor();
        self.policy.add_devices(router.only_devices(), by_processor);
        router.may_spin &= !by_processor;
        if self.sleepers.bell.is_none() {
            self.policy.wait_through_node();
        }
    }

    /// The time since a fixed moment by the rank's clock, in nanoseconds. On a modelled machine it
    /// is virtual time, which `router` returns.
    pub fn now(&self, router: impl FnOnce() -> u64) -> u64 {
        match self.by_node_clock {
            true => router(),
            false => self.clock.now(),
        }
    }

    /// True if the rank yields its core early, because other ranks may need it.
    pub fn is_crowded(&self) -> bool {
        self.policy.is_crowded()
    }

    /// The numbers of polls that a blocking receive makes before it becomes a request.
    #[inline]
    pub fn polls(&self) -> Polls {
        self.policy.polls()
    }

    /// Waits until `done` returns a result, and makes progress meanwhile.
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
                    // A poll of a device, or an attempt to send, takes long enough. In a virtual
                    // machine this hint may cost more than the poll.
                    std::hint::spin_loop();
                }
                continue;
            }
            drop(state);
            let sleep = self.lose_patience(party, &mut patience)?;
            state = party.lock();
            if let Some(sleep) = sleep {
                if let Some(answer) = self.nap::<P, T>(state, sleep, &mut done)? {
                    return Ok(answer);
                }
                state = party.lock();
            }
        }
    }

    /// Polls for a nonblocking call: calls `done` once, and again after progress. A program that
    /// makes such calls in a loop must not keep its peers from a core that they share, and must
    /// still answer its launcher.
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

    /// Wakes the rank's sleeping threads after progress outside of their waits: one may wait for
    /// it.
    pub fn wake_threads(&self) {
        self.sleepers.wake();
    }

    /// Acts on several consecutive fruitless polls: yields, sleeps, or answers the launcher.
    #[inline(never)]
    fn idle<P: Party>(&self, party: P, polls: u32) -> std::result::Result<(), P::Error> {
        if self.policy.is_crowded() || self.lost.is_losing() {
            if self.policy.is_open() {
                self.count_cores(P::router(&mut party.lock()));
            }
            if self.lost.is_losing() {
                self.check_loss(polls);
            }
            if self.core.sleeps_instead() {
                self.doze(&party)?;
            } else {
                self.core.give_way(&self.clock);
            }
        } else if polls.is_multiple_of(POLLS_PER_LOOK) {
            self.check_loss(polls);
            if self.core.is_shared() {
                self.doze(&party)?;
            }
        }
        if polls.is_multiple_of(POLLS_PER_ANSWER) {
            party.attend()?;
        }
        match self.is_long_idle(polls) {
            true => self.check_for_losses(&party),
            false => Ok(()),
        }
    }

    /// Checks the time that this rank loses to other processes, every few calls.
    #[cold]
    #[inline(never)]
    fn check_loss(&self, polls: u32) {
        if polls.is_multiple_of(POLLS_PER_LOSS) && self.core.is_watched() {
            self.lost.check(self.clock.now());
        }
    }

    /// True if polls have been fruitless for so long that a peer may be out of reach. Only a
    /// modelled machine reports dead paths sooner.
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
    fn check_for_losses<P: Party>(&self, party: &P) -> std::result::Result<(), P::Error> {
        let mut state = party.lock();
        let router = P::router(&mut state);
        if router.machine().is_virtual() && !router.knows_cuts() {
            return Ok(());
        }
        P::contact_awaited(&mut state)?;
        match P::router(&mut state).check_last_paths() {
            Err(error) => P::contain(&mut state, error),
            Ok(()) => Ok(()),
        }
    }

    /// Sleeps for a short time between two nonblocking calls.
    fn doze<P: Party>(&self, party: &P) -> std::result::Result<(), P::Error> {
        self.nap::<P, ()>(party.lock(), Sleep::Light(DOZE), &mut |_| Ok(None))
            .map(|_| ())
    }

    /// Checks whether each rank of this host has a core, while that is unknown, and informs the
    /// router.
    #[cold]
    #[inline(never)]
    fn count_cores(&self, router: &mut Router) {
        if let Some(each) = router.has_core_each() {
            let may_spin = each && !router.by_processor();
            router.may_spin = may_spin;
            self.policy.decide(each, may_spin);
        }
    }

    /// Lets time pass: spins, yields, or waits for events. Returns the sleep that is due, if one
    /// is.
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
            } else if self.core.is_shared() {
                return Ok(Some(Sleep::Deep));
            }
        } else if waited < self.policy.spin_time(patience) || self.sleepers.bell.is_none() {
            if self.core.sleeps_instead() {
                return Ok(Some(Sleep::Deep));
            }
            // Without a doorbell only another thread of this rank can end the wait.
            self.core.give_way(&self.clock);
        } else if self.policy.only_devices() && !party.has_threads() && !self.has_helper(party) {
            // Neither the doorbell nor the thread that rings it is needed.
            let mut state = party.lock();
            if self.sleepers.takes_note_of_thread() {
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

    /// Waits through the rank's node. In virtual time no launcher has to be answered.
    fn wait_through_node<P: Party>(
        &self,
        party: &P,
        patience: &mut Patience,
    ) -> std::result::Result<(), P::Error> {
        let mut state = party.lock();
        if self.sleepers.takes_note_of_thread() {
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
            // The helper cannot ring a doorbell.
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

    /// Sleeps until a peer or a device rings, or the time limit has passed. Returns at once if
    /// `done` has a result now.
    fn nap<P: Party, T>(
        &self,
        mut state: Guard<'_, P::State>,
        sleep: Sleep,
        done: &mut impl FnMut(&mut P::State) -> std::result::Result<Option<T>, P::Error>,
    ) -> std::result::Result<Option<T>, P::Error> {
        if self.sleepers.takes_note_of_thread() {
            return Ok(None);
        }
        let (longest, fence) = match sleep {
            Sleep::Deep => (NAP, true),
            Sleep::Light(longest) => (longest, false),
        };
        // A peer rings only if it finds a sleeper, so this rank polls again once it is registered
        // as one.
        let ordered = self.sleepers.lie_down(fence);
        let nap = self.sleepers.prepare_nap::<P>(&mut state, ordered);
        let answer = done(&mut state);
        drop(state);
        match (&nap, &answer) {
            (Ok(nap), Ok(None)) => self.sleep(longest.min(*nap)),
            _ => self.sleep(0),
        }
        nap?;
        answer
    }

    /// Sleeps for at most `nap` nanoseconds, and ends the registration as a sleeper.
    fn sleep(&self, nap: u64) {
        let Some(bell) = &self.sleepers.bell else {
            return;
        };
        if nap > 0 {
            bell.wait(nap);
            // A peer may read the counts of this core before this rank waits again.
            self.core.is_shared();
        }
        self.sleepers.get_up(bell);
    }

    /// Ends the rank's progress thread and waits for its end.
    pub fn end_thread(&self, thread: ProgressThread) {
        thread.end(self.sleepers.bell.as_ref());
    }

    /// One step of the progress thread: makes progress if no call does, and sleeps if there is
    /// nothing to do.
    ///
    /// # Errors
    /// Progress failed.
    pub fn step<P: Assisted>(
        &self,
        party: &P,
        watch: &mut Watch,
    ) -> std::result::Result<(), P::Error> {
        let beside = Beside {
            party,
            sleepers: &self.sleepers,
            policy: &self.policy,
            idle_polls: &self.idle_polls,
        };
        beside.step(watch)
    }
}
