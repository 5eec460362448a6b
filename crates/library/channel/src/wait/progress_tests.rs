//! Tests of the progress thread of a rank that makes no calls.

use knobs::Wait;
use std::sync::Arc;

use crate::lock::{Guard, RankLock};
use crate::{
    Assisted, Error, More, Party, ProgressThread, Put, Router, Transport, WaitSettings, Waiter,
};

struct State {
    router: Router,
    packets: usize,
    /// Number of calls of `progress` that find nothing, as if the packet arrived just after them.
    vain: usize,
}

impl State {
    fn new(router: Router, vain: usize) -> State {
        State {
            router,
            packets: 0,
            vain,
        }
    }
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
        if state.vain > 0 {
            state.vain -= 1;
            return Ok(false);
        }
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

/// A rank sends itself a packet and computes until its progress thread has received it.
#[test]
fn packets_are_taken_while_the_rank_makes_no_call() {
    let mut router = Router::alone();
    let settings = WaitSettings {
        mode: Wait::Auto,
        spin_ns: 1000,
    };
    let waiter = Arc::new(Waiter::new(&mut router, &settings));
    let lock = Arc::new(RankLock::new(State::new(router, 0), ""));
    for threads in [false, true] {
        if threads {
            lock.allow_threads();
        }
        lock.admit_progress_thread();
        let (done, has_taken) = std::sync::mpsc::channel();
        let (for_thread, lock_for_thread) = (waiter.clone(), lock.clone());
        let thread = ProgressThread::start(move |watch| {
            for_thread.step(&Rank(&lock_for_thread), watch).unwrap();
            // Packets are counted under the lock, which the thread takes only for a moment.
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
        waiter.end_thread(thread);
        lock.dismiss_progress_thread();
        assert_eq!(lock.lock().packets, 1 + usize::from(threads));
    }
}

/// A packet that arrives after a call of `progress` keeps the thread from its sleep. The next call
/// receives it, and then nothing keeps the thread from its sleep.
#[test]
fn what_a_round_has_taken_no_longer_holds_the_progress_thread_up() {
    let mut router = Router::alone();
    let settings = WaitSettings {
        mode: Wait::Auto,
        spin_ns: 1000,
    };
    let waiter = Arc::new(Waiter::new(&mut router, &settings));
    assert_eq!(router.put(0, [1, 2, 3], 0, |_| ()).unwrap(), Put::Accepted);
    let lock = Arc::new(RankLock::new(State::new(router, 1), ""));
    lock.admit_progress_thread();
    let (tell, told) = std::sync::mpsc::channel();
    let (for_thread, lock_for_thread) = (waiter.clone(), lock.clone());
    let thread = ProgressThread::start(move |watch| {
        let rank = Rank(&lock_for_thread);
        for packets in 0..2 {
            for_thread.step(&rank, watch).unwrap();
            tell.send(rank.try_lock().unwrap().packets == packets)
                .unwrap();
        }
        tell.send(!watch.is_held_up()).unwrap();
        false
    })
    .unwrap();
    let all: Vec<bool> = told.iter().collect();
    assert_eq!(all, [true; 3]);
    waiter.end_thread(thread);
}
