//! The progress thread of a rank: it makes progress while no call of the rank does, for peers whose
//! operations need this rank though it computes.
//!
//! It sleeps until a peer rings the doorbell or a device raises an event, takes the lock for one
//! round, and arms the doorbell again. While the rank's own calls make progress it leaves
//! everything to them: it neither arms the doorbell, so that peers do not ring in vain, nor waits
//! for the lock. It then looks again after a pause, which doubles up to [`LONGEST_PAUSE`].
//!
//! Invariants:
//! - it never waits for the rank's lock, and holds it for one round at a time;
//! - it runs no tasks, and so no function of the program;
//! - no call sleeps over a round of this thread: see [`Waiter::thread_moved`].

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{NAP, Party, Waiter};
use crate::lock::Guard;

const STACK: usize = 256 << 10;
/// First pause while the rank's calls make progress, in nanoseconds.
const FIRST_PAUSE: u64 = 125_000;
/// Longest pause while the rank's calls make progress, in nanoseconds.
const LONGEST_PAUSE: u64 = 2_000_000;

/// A rank, as its progress thread sees it. [`Party::progress`] is a round of this thread.
pub trait Assisted: Party {
    /// Takes the rank's lock, if nobody holds it.
    fn try_lock(&self) -> Option<Guard<'_, Self::State>>;
    /// A number that changes whenever a round has moved something.
    fn rounds(state: &Self::State) -> u64;
}

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

/// What the progress thread knows from one look to the next.
pub struct Watch {
    end: Arc<End>,
    /// The rank's rounds and polls at the last look.
    seen: u64,
    /// The next pause, in nanoseconds.
    pause: u64,
    /// The devices' events, where only they wake this thread.
    events: Option<Vec<OwnedFd>>,
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
            events: None,
        };
        let thread = super::spawn("fishplate rma", STACK, move || {
            while !watch.is_over() && look(&mut watch) {}
        })?;
        Ok(ProgressThread {
            end,
            thread: Some(thread),
        })
    }

    /// Ends the thread and waits for its end.
    pub fn end(mut self, waiter: &Waiter) {
        self.end.order();
        if let Some(bell) = &waiter.bell {
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
    fn is_over(&self) -> bool {
        self.end.is_ordered.load(Ordering::SeqCst)
    }

    /// Leaves the rank alone for a pause.
    fn pause(&mut self) {
        self.sleep(&[], self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
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

impl Waiter {
    /// One look of the progress thread: a round if nobody else makes one, and a sleep if there is
    /// nothing to do.
    ///
    /// # Errors
    /// Progress failed.
    pub fn look<P: Assisted>(&self, party: &P, watch: &mut Watch) -> Result<(), P::Error> {
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
        if is_active {
            drop(state);
            watch.pause();
        } else if !moved {
            watch.pause = FIRST_PAUSE;
            self.rest(party, state, watch)?;
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

    /// Sleeps until a peer or a device has something for this rank.
    fn rest<P: Assisted>(
        &self,
        party: &P,
        mut state: Guard<'_, P::State>,
        watch: &mut Watch,
    ) -> Result<(), P::Error> {
        let bell = self.bell.as_ref();
        let Some(bell) = bell.filter(|_| !self.policy.only_devices()) else {
            if watch.events.is_none() {
                watch.events = Some(P::router(&mut state).events()?);
            }
            let nap = self.arm::<P>(&mut state, true).map(|(nap, _)| nap);
            self.end_round::<P>(&state, watch, !matches!(nap, Ok(NAP)));
            drop(state);
            watch.sleep(watch.events.as_deref().unwrap_or_default(), nap?);
            return Ok(());
        };
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let ordered = bell.arm(true);
        let nap = self.prepare_nap(party, &mut state, ordered);
        self.end_round::<P>(&state, watch, !matches!(nap, Ok(NAP)));
        drop(state);
        if let Ok(nap) = nap
            && nap > 0
            && !watch.is_over()
        {
            bell.wait(nap);
        }
        self.get_up(bell);
        nap.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::RankLock;
    use crate::{Error, More, Put, Router, Transport, WaitMode, WaitSettings};

    struct State {
        router: Router,
        packets: usize,
    }

    #[derive(Clone, Copy)]
    struct Rank<'a>(&'a RankLock<State>);

    impl Party for Rank<'_> {
        type State = State;
        type Error = Error;
        fn lock(&self) -> Guard<'_, State> {
            self.0.lock()
        }
        fn has_threads(&self) -> bool {
            self.0.threads()
        }
        fn router(state: &mut State) -> &mut Router {
            &mut state.router
        }
        fn progress(state: &mut State) -> crate::Result<bool> {
            let packets = state.router.poll(|_, _, _| More::Wanted)?;
            state.packets += packets;
            Ok(packets > 0)
        }
        fn needs_room(_: &State) -> bool {
            false
        }
        fn has_tasks(_: &State) -> bool {
            false
        }
        fn run_tasks(&self) -> bool {
            unreachable!("tasks are for calls")
        }
        fn attend(&self) -> crate::Result<()> {
            Ok(())
        }
        fn contact_awaited(_: &mut State) -> crate::Result<()> {
            Ok(())
        }
        fn contain(_: &mut State, error: Error) -> crate::Result<()> {
            Err(error)
        }
        fn deadlock(&self, _: &mut State) -> Error {
            unreachable!("only a modelled machine has deadlocks")
        }
    }

    impl Assisted for Rank<'_> {
        fn try_lock(&self) -> Option<Guard<'_, State>> {
            self.0.try_lock_for_progress()
        }
        fn rounds(state: &State) -> u64 {
            state.packets as u64
        }
    }

    /// A rank that sends itself a packet and computes until its progress thread has taken it.
    #[test]
    fn packets_are_taken_while_the_rank_makes_no_call() {
        let mut router = Router::alone();
        let settings = WaitSettings {
            mode: WaitMode::Auto,
            spin_ns: 1000,
        };
        let waiter = Arc::new(Waiter::new(&mut router, &settings));
        let lock = Arc::new(RankLock::new(State { router, packets: 0 }, ""));
        for threads in [false, true] {
            if threads {
                lock.allow_threads();
            }
            lock.admit_progress_thread();
            let (done, has_taken) = std::sync::mpsc::channel();
            let (for_thread, lock_for_thread) = (waiter.clone(), lock.clone());
            let thread = ProgressThread::start(move |watch| {
                for_thread.look(&Rank(&lock_for_thread), watch).unwrap();
                // Packets are counted under the lock, of which the thread takes nothing but turns.
                if lock_for_thread
                    .try_lock_for_progress()
                    .is_some_and(|state| state.packets > usize::from(threads))
                {
                    let _ = done.send(());
                }
                true
            })
            .unwrap();
            {
                let mut state = lock.lock();
                let put = state.router.put(0, [1, 2, 3], 0, |_| ()).unwrap();
                assert_eq!(put, Put::Accepted);
            }
            has_taken.recv().unwrap();
            thread.end(&waiter);
            lock.dismiss_progress_thread();
            assert_eq!(lock.lock().packets, 1 + usize::from(threads));
        }
    }
}
