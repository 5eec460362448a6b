//! The threads of a rank that sleep on its doorbell, and the last poll before a sleep.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::event_thread::EventThread;
use super::party::{Helper, Party};
use crate::doorbell::Bell;
use crate::{Fault, Result, Router};

/// The longest sleep of a waiting rank, in nanoseconds.
pub(super) const NAP: u64 = 50_000_000;
/// The longest sleep during which a wake-up can be missed, in nanoseconds.
pub(super) const BLIND_NAP: u64 = 500_000;

/// The kind of a sleep: whether a wake-up can be missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleep {
    /// No wake-up is missed, at the price of a fence on all cores.
    Deep,
    /// A wake-up can be missed, so the sleep has a time limit: the given number of nanoseconds.
    Light(u64),
}

/// The threads of a rank that sleep on its doorbell.
pub(super) struct Sleepers {
    /// The doorbell that peers ring after a write to this rank. `None` if no memory is shared.
    pub bell: Option<Bell>,
    /// The number of threads that sleep, or are about to.
    count: AtomicUsize,
    /// The threads that ring the doorbell for devices' events. They start at the rank's first
    /// sleep.
    events: OnceLock<Box<[EventThread]>>,
    /// True if the progress thread has moved something since a call last tried to sleep: the call
    /// must poll again. Written under the rank's lock.
    pub thread_moved: AtomicBool,
}

impl Sleepers {
    pub(super) fn new(bell: Option<Bell>) -> Sleepers {
        Sleepers {
            bell,
            count: AtomicUsize::new(0),
            events: OnceLock::new(),
            thread_moved: AtomicBool::new(false),
        }
    }

    /// True if a thread of this rank sleeps, or is about to.
    pub(super) fn are_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Wakes the threads of this rank that sleep.
    pub(super) fn wake(&self) {
        if self.are_any()
            && let Some(bell) = &self.bell
        {
            bell.ring();
        }
    }

    /// Registers one more sleeper, and arms the doorbell. True: no wake-up is missed.
    pub(super) fn lie_down(&self, fence: bool) -> bool {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.bell.as_ref().is_some_and(|bell| bell.arm(fence))
    }

    /// True if the progress thread has moved something since the last call of this function. Call
    /// this under the rank's lock before a sleep: the event that the caller waits for may have
    /// happened.
    pub(super) fn takes_note_of_thread(&self) -> bool {
        let moved = self.thread_moved.load(Ordering::Relaxed);
        if moved {
            self.thread_moved.store(false, Ordering::Relaxed);
        }
        moved
    }

    /// Polls once more, now that every writer rings, and returns the longest permitted sleep in
    /// nanoseconds.
    pub(super) fn prepare_nap<P: Party>(
        &self,
        state: &mut P::State,
        ordered: bool,
    ) -> std::result::Result<u64, P::Error> {
        let (nap, has_events) = arm::<P>(state, ordered)?;
        if nap > 0 && has_events {
            self.watch_events(P::router(state))?;
        }
        Ok(nap)
    }

    /// Makes events of the devices ring this rank's doorbell during one sleep.
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
            // The rank's lock is held, so no other thread sets this at the same time.
            let _ = self.events.set(threads);
        }
        let threads = self.events.get().into_iter().flatten();
        threads.for_each(EventThread::watch);
        Ok(())
    }

    /// Ends the registration of a sleeper, which has woken.
    pub(super) fn get_up(&self, bell: &Bell) {
        match self.count.fetch_sub(1, Ordering::SeqCst) {
            1 => bell.disarm(),
            _ => bell.rouse(),
        }
    }
}

/// Arms the transports and polls once more. Returns the longest permitted sleep in nanoseconds, and
/// whether devices raise events.
pub(super) fn arm<P: Party>(
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
    // Only a complete poll finds what has arrived at devices.
    if P::progress(state)? {
        return Ok((0, true));
    }
    Ok((nap_of::<P>(state, ordered && rings), true))
}

/// The longest permitted sleep of a rank in its present state, in nanoseconds.
fn nap_of<P: Party>(state: &mut P::State, ordered: bool) -> u64 {
    if P::helper(state) == Helper::HasResults {
        return 0;
    }
    match (P::router(state).is_quiet(), ordered, P::needs_room(state)) {
        (false, ..) => 0,
        (true, true, false) => NAP,
        // A wake-up can be missed, or the rank waits for room at a peer, which may have been freed
        // before the last poll.
        (true, ..) => BLIND_NAP,
    }
}
