//! The progress thread of a rank: it makes progress while no call of the rank does, for peers whose
//! operations need this rank while it computes.
//!
//! It sleeps until a peer rings the doorbell or a device raises an event, takes the lock, makes
//! progress once, and arms the doorbell again. While the rank's own calls make progress it leaves
//! everything to them: it neither arms the doorbell, which would cost peers a wake-up, nor waits
//! for the lock. It then tries again after a pause, which doubles up to [`LONGEST_PAUSE`].
//!
//! Invariants:
//! - it never waits for the rank's lock, and holds it only while it makes progress once;
//! - it runs no tasks, and so no function of the program;
//! - no call sleeps after this thread's progress without another poll (`Sleepers::thread_moved`).

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
/// The first pause of the progress thread while the rank's calls make progress, in nanoseconds.
const FIRST_PAUSE: u64 = 125_000;
/// The longest pause of the progress thread while the rank's calls make progress, in nanoseconds.
const LONGEST_PAUSE: u64 = 2_000_000;

/// The progress thread of a rank. When this value is dropped the thread ends, but its end is not
/// awaited.
pub struct ProgressThread {
    end: Arc<End>,
    thread: Option<JoinHandle<()>>,
}

/// The request to the progress thread to end.
struct End {
    is_ordered: AtomicBool,
    /// An eventfd that is readable once the end is requested.
    file: OwnedFd,
}

/// The state of the progress thread from one step to the next.
pub struct Watch {
    end: Arc<End>,
    /// The sum of the rank's progress and fruitless polls at the last step, see `Beside::rounds`.
    pub(super) seen: u64,
    /// The length of the thread's next pause, in nanoseconds.
    pause: u64,
    /// True if something kept this thread from its last sleep that its progress before had not
    /// moved.
    finds_more: bool,
    /// The descriptors of the devices' events, where only these events wake this thread.
    pub(super) events: Option<Vec<OwnedFd>>,
}

impl ProgressThread {
    /// Starts the thread, which calls `step` until that returns false or the thread is asked to
    /// end.
    ///
    /// # Errors
    /// The system has no thread or no descriptor left.
    pub fn start(
        mut step: impl FnMut(&mut Watch) -> bool + Send + 'static,
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
            while !watch.is_over() && step(&mut watch) {}
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
            // An error is a panic of the thread, which has ended the process already.
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
        // A failure means that the eventfd is readable already.
        let _ = rustix::io::write(&self.file, &1u64.to_ne_bytes());
    }
}

impl Watch {
    pub(super) fn is_over(&self) -> bool {
        self.end.is_ordered.load(Ordering::SeqCst)
    }

    /// Sleeps for one pause, during which the rank's own calls make progress.
    pub(super) fn pause(&mut self) {
        self.sleep(&[], self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }

    /// True if something has arrived for this rank that progress did not move, because it waits for
    /// a call. Call this once after each attempt, since it resets the mark.
    pub(super) fn is_held_up(&mut self) -> bool {
        std::mem::take(&mut self.finds_more)
    }

    /// Records whether something that progress did not move kept this thread from its sleep.
    pub(super) fn rested(&mut self, is_held_up: bool) {
        self.finds_more = is_held_up;
        if !is_held_up {
            self.pause = FIRST_PAUSE;
        }
    }

    /// Sleeps until an event or the request to end, for at most `nanos` nanoseconds.
    pub(super) fn sleep_on_events(&self, nanos: u64) {
        self.sleep(self.events.as_deref().unwrap_or_default(), nanos);
    }

    /// Sleeps until one of `events` or the request to end, for at most `nanos` nanoseconds.
    fn sleep(&self, events: &[OwnedFd], nanos: u64) {
        let files = events.iter().chain([&self.end.file]);
        let mut files: Vec<_> = files.map(|file| PollFd::new(file, PollFlags::IN)).collect();
        let longest = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        // After a failure the thread wakes too early, which does no harm.
        let _ = poll(&mut files, Some(&longest));
    }
}

/// A rank and its waiter's state at one step of the progress thread.
pub(super) struct Beside<'a, P> {
    pub party: &'a P,
    pub sleepers: &'a Sleepers,
    pub policy: &'a Policy,
    /// The number of consecutive polls of nonblocking calls that found nothing.
    pub idle_polls: &'a AtomicU32,
}

impl<P: Assisted> Beside<'_, P> {
    /// One step of the thread: makes progress if no call does, and sleeps if there is nothing to
    /// do.
    pub(super) fn step(&self, watch: &mut Watch) -> std::result::Result<(), P::Error> {
        let Some(mut state) = self.party.try_lock() else {
            watch.pause();
            return Ok(());
        };
        // A sleeping call wakes as early as this thread would.
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

    /// A number that changes whenever a call has made progress, or has polled without success.
    fn rounds(&self, state: &P::State) -> u64 {
        let polls = self.idle_polls.load(Ordering::Relaxed);
        P::rounds(state).wrapping_add(u64::from(polls))
    }

    /// Records what this thread itself has moved, so that it is not mistaken for a call's progress.
    fn end_round(&self, state: &P::State, watch: &mut Watch, moved: bool) {
        watch.seen = self.rounds(state);
        if moved {
            self.sleepers.thread_moved.store(true, Ordering::Relaxed);
        }
    }

    /// Sleeps until a peer or a device has something for this rank. True, without a sleep:
    /// something has arrived already, and the last poll, which follows the arming, has not moved
    /// it.
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
