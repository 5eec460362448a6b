//! The progress thread of a rank: it makes progress while no call of the rank does, for peers whose
//! operations need this rank though it computes.
//!
//! It sleeps until a peer rings the doorbell or a device raises an event, takes the lock for one
//! round, and arms the doorbell again. While the rank's own calls make progress it leaves
//! everything to them: it neither arms the doorbell, so that peers do not ring in vain, nor waits
//! for the lock. It then tries again after a pause, which doubles up to [`LONGEST_PAUSE`].
//!
//! Invariants:
//! - it never waits for the rank's lock, and holds it for one round at a time;
//! - it runs no tasks, and so no function of the program;
//! - no call sleeps over a round of this thread (`Sleepers::thread_moved`).

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::party::Assisted;
use super::policy::Policy;
use super::sleepers::{NAP, Sleepers, arm};
use super::thread;
use crate::doorbell::Bell;
use crate::lock::Guard;

const STACK: usize = 256 << 10;
/// First pause while the rank's calls make progress, in nanoseconds.
const FIRST_PAUSE: u64 = 125_000;
/// Longest pause while the rank's calls make progress, in nanoseconds.
const LONGEST_PAUSE: u64 = 2_000_000;

/// The progress thread of a rank. A dropped one ends, but nobody waits for its end.
pub struct ProgressThread {
    end: Arc<End>,
    thread: Option<JoinHandle<()>>,
}

/// The order to end.
struct End {
    is_ordered: AtomicBool,
    /// Readable once it is.
    file: OwnedFd,
}

/// State that the progress thread keeps from one step to the next.
pub struct Watch {
    end: Arc<End>,
    /// The rank's rounds and polls at the last step.
    pub(super) seen: u64,
    /// The next pause, in nanoseconds.
    pause: u64,
    /// Something kept this thread from its last sleep, and the round before had not moved it.
    finds_more: bool,
    /// The devices' events, where only they wake this thread.
    pub(super) events: Option<Vec<OwnedFd>>,
}

impl ProgressThread {
    /// Starts the thread, which calls `look` until that returns false or the thread is to end.
    ///
    /// # Errors
    /// The system has no thread or no descriptor left.
    pub fn start(
        mut look: impl FnMut(&mut Watch) -> bool + Send + 'static,
    ) -> std::io::Result<ProgressThread> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let end = Arc::new(End {
            is_ordered: AtomicBool::new(false),
            file: eventfd(0, flags)?,
        });
        let mut watch = Watch {
            end: end.clone(),
            seen: 0,
            pause: FIRST_PAUSE,
            finds_more: false,
            events: None,
        };
        let thread = thread::spawn("fishplate rma", STACK, move || {
            while !watch.is_over() && look(&mut watch) {}
        })?;
        Ok(ProgressThread {
            end,
            thread: Some(thread),
        })
    }

    /// Ends the thread, which may sleep on this bell, and waits for its end.
    pub(super) fn end(mut self, bell: Option<&Bell>) {
        self.end.order();
        if let Some(bell) = bell {
            bell.rouse();
        }
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.end.order();
    }
}

impl End {
    fn order(&self) {
        self.is_ordered.store(true, Ordering::SeqCst);
        // A failure means that it is readable already.
        let _ = rustix::io::write(&self.file, &1u64.to_ne_bytes());
    }
}

impl Watch {
    pub(super) fn is_over(&self) -> bool {
        self.end.is_ordered.load(Ordering::SeqCst)
    }

    /// Leaves the rank alone for a pause.
    pub(super) fn pause(&mut self) {
        self.sleep(&[], self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }

    /// Something is there for this rank, and a round has not moved it: it waits for a call. To be
    /// asked once after each such round.
    pub(super) fn is_held_up(&mut self) -> bool {
        std::mem::take(&mut self.finds_more)
    }

    /// Notes whether something kept this thread from its sleep that a round has not moved.
    pub(super) fn rested(&mut self, is_held_up: bool) {
        self.finds_more = is_held_up;
        if !is_held_up {
            self.pause = FIRST_PAUSE;
        }
    }

    /// Sleeps until an event, or the end, for at most `nanos` nanoseconds.
    pub(super) fn sleep_on_events(&self, nanos: u64) {
        self.sleep(self.events.as_deref().unwrap_or_default(), nanos);
    }

    /// Sleeps until an event, the end, or `nanos` nanoseconds have passed.
    fn sleep(&self, events: &[OwnedFd], nanos: u64) {
        let files = events.iter().chain([&self.end.file]);
        let mut files: Vec<_> = files.map(|file| PollFd::new(file, PollFlags::IN)).collect();
        let longest = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        // After a failure the thread gets up too early.
        let _ = poll(&mut files, Some(&longest));
    }
}

/// A rank, with what its waiter knows of its calls, at one step of the progress thread.
pub(super) struct Beside<'a, P> {
    pub party: &'a P,
    pub sleepers: &'a Sleepers,
    pub policy: &'a Policy,
    /// Consecutive fruitless polls of nonblocking calls.
    pub idle_polls: &'a AtomicU32,
}

impl<P: Assisted> Beside<'_, P> {
    /// One step: a round if nobody else makes one, and a sleep if there is nothing to do.
    pub(super) fn look(&self, watch: &mut Watch) -> std::result::Result<(), P::Error> {
        let Some(mut state) = self.party.try_lock() else {
            watch.pause();
            return Ok(());
        };
        // A call that sleeps is awake as soon as this thread would be.
        if self.sleepers.are_any() {
            drop(state);
            watch.pause();
            return Ok(());
        }
        let is_active = watch.seen != self.rounds(&state);
        let moved = P::progress(&mut state);
        self.end_round(&state, watch, !matches!(moved, Ok(false)));
        let moved = moved?;
        let is_held_up = watch.is_held_up() && !moved;
        if is_active || is_held_up {
            drop(state);
            watch.pause();
        } else if !moved {
            let is_held_up = self.rest(state, watch)?;
            watch.rested(is_held_up);
        }
        Ok(())
    }

    /// A number that changes whenever a call has made progress, or has polled in vain.
    fn rounds(&self, state: &P::State) -> u64 {
        let polls = self.idle_polls.load(Ordering::Relaxed);
        P::rounds(state).wrapping_add(u64::from(polls))
    }

    /// Notes what the thread itself has done.
    fn end_round(&self, state: &P::State, watch: &mut Watch, moved: bool) {
        watch.seen = self.rounds(state);
        if moved {
            self.sleepers.thread_moved.store(true, Ordering::Relaxed);
        }
    }

    /// Sleeps until a peer or a device has something for this rank. True, without a sleep:
    /// something is there already, and the last poll, which follows the arming, has not moved it.
    fn rest(
        &self,
        mut state: Guard<'_, P::State>,
        watch: &mut Watch,
    ) -> std::result::Result<bool, P::Error> {
        let bell = self.sleepers.bell.as_ref();
        let Some(bell) = bell.filter(|_| !self.policy.only_devices()) else {
            if watch.events.is_none() {
                watch.events = Some(P::router(&mut state).events()?);
            }
            let nap = arm::<P>(&mut state, true).map(|(nap, _)| nap);
            let moved = watch.seen != self.rounds(&state);
            self.end_round(&state, watch, !matches!(nap, Ok(NAP)));
            drop(state);
            let nap = nap?;
            watch.sleep_on_events(nap);
            return Ok(nap == 0 && !moved);
        };
        let ordered = self.sleepers.lie_down(true);
        let nap = self.sleepers.prepare_nap::<P>(&mut state, ordered);
        let moved = watch.seen != self.rounds(&state);
        self.end_round(&state, watch, !matches!(nap, Ok(NAP)));
        drop(state);
        if let Ok(nap) = nap
            && nap > 0
            && !watch.is_over()
        {
            bell.wait(nap);
        }
        self.sleepers.get_up(bell);
        Ok(nap? == 0 && !moved)
    }
}
