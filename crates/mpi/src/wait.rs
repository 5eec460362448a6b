//! Waiting: spin, then give way, then sleep.
//!
//! With a core for every rank a waiter spins, because a peer answers sooner than the scheduler; when that has lasted
//! too long it sleeps on its doorbell. With more ranks than cores it gives way at once, since its peer may need this
//! very core. A sleeper wakes at least every [`NAP`], to answer the launcher and to notice that it is gone.

use std::sync::atomic::Ordering;

use channel::Fault;

use crate::event_thread::Watcher;
use crate::policy::Patience;
use crate::rank::{Rank, State};
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// The longest sleep.
const NAP: u64 = 50_000_000;
/// The longest sleep where a wake-up can be missed.
const BLIND_NAP: u64 = 500_000;

/// What a call waits for, for who asks.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// The procedure, as `MPI_Recv`.
    pub operation: &'static str,
    pub requests: &'a [RequestId],
}

impl Waiting<'static> {
    pub fn in_call(operation: &'static str) -> Waiting<'static> {
        Waiting {
            operation,
            requests: &[],
        }
    }
}

impl Rank {
    /// Makes progress until `done` gives an answer. Nothing is held while tasks run or while the rank sleeps.
    #[inline]
    pub fn wait_until<T>(
        &self,
        waiting: &Waiting,
        mut done: impl FnMut(&mut State) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut patience = Patience::default();
        let mut state = self.lock();
        loop {
            if let Some(answer) = done(&mut state)? {
                return Ok(answer);
            }
            let mut moved = state.progress()?;
            if !state.tasks.is_empty() {
                drop(state);
                moved |= self.run_tasks();
                state = self.lock();
            }
            if moved {
                patience = Patience::default();
                if self.threads() {
                    drop(state);
                    self.stir();
                    state = self.lock();
                }
            } else {
                patience.looks += 1;
                patience.hasty = state.channels.is_moving();
                if self.threads() || self.policy.is_due(&patience) {
                    drop(state);
                    let sleeps = self.lose_patience(waiting, &mut patience)?;
                    state = self.lock();
                    if sleeps {
                        // Whoever rings looks for a sleeper first, so this rank must look again once it is one.
                        let ordered = self.lie_down();
                        let nap = self.prepare_nap(&mut state, ordered);
                        let answer = done(&mut state);
                        drop(state);
                        let nap = match nap {
                            Ok(nap) => nap,
                            Err(error) => {
                                self.sleep(0);
                                return Err(error);
                            }
                        };
                        self.sleep(if matches!(answer, Ok(None)) { nap } else { 0 });
                        if let Some(answer) = answer? {
                            return Ok(answer);
                        }
                        state = self.lock();
                    }
                } else if !self.policy.asks_devices() {
                    // To ask a device takes long enough. And in a virtual machine the hint may cost more than all of the look.
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Looks for what a call asks for that does not wait, and once more after a round of progress. A program that makes
    /// such calls in a loop must neither keep its peers from a core that they share nor deafen the rank to its launcher.
    #[inline(always)]
    pub fn look_for<T>(
        &self,
        operation: &'static str,
        mut done: impl FnMut(&mut State) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut state = self.lock();
        let (mut moved, mut again) = (false, false);
        loop {
            let answer = done(&mut state)?;
            if answer.is_some() || moved {
                state.idle_looks = 0;
                return Ok(answer);
            }
            if again {
                break;
            }
            moved = state.progress()?;
            if !moved && state.tasks.is_empty() {
                break;
            }
            drop(state);
            self.run_tasks();
            if moved && self.threads() {
                self.stir();
            }
            state = self.lock();
            again = true;
        }
        state.idle_looks = state.idle_looks.wrapping_add(1);
        let idle = state.idle_looks;
        if idle.is_multiple_of(4) {
            drop(state);
            self.idle(operation, idle)?;
        }
        Ok(None)
    }

    /// Several looks in a row have found nothing.
    #[inline(never)]
    fn idle(&self, operation: &'static str, looks: u32) -> Result<()> {
        if self.policy.is_crowded() {
            if self.policy.is_open() {
                self.ask_for_cores();
            }
            self.host.give_way();
        }
        if looks.is_multiple_of(65_536) {
            self.attend(&Waiting::in_call(operation))?;
        }
        Ok(())
    }

    /// Another thread of this rank may sleep while this one has just completed what it waits for.
    fn stir(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0
            && let Some(bell) = &self.bell
        {
            bell.ring();
        }
    }

    /// Lets time pass, except where it is time to sleep: then it says so.
    #[inline(never)]
    fn lose_patience(&self, waiting: &Waiting, patience: &mut Patience) -> Result<bool> {
        if self.policy.is_crowded() && !self.policy.has_looked(patience) {
            return Ok(false);
        }
        if self.policy.is_open() {
            self.ask_for_cores();
        }
        if self.policy.is_by_node() && !self.threads() {
            return self.wait_by_node(waiting, patience).map(|()| false);
        }
        let now = self.host.now();
        let since = *patience.since.get_or_insert(now);
        let waited = now.saturating_sub(since);
        if waited > patience.attended + NAP {
            patience.attended = waited;
            self.attend(waiting)?;
        }
        if self.policy.spins(waited) {
            if self.threads() {
                std::hint::spin_loop();
            }
        } else if waited < self.policy.give_way(patience) || self.bell.is_none() {
            // Alone, only another thread of this rank could help.
            self.host.give_way();
        } else if self.policy.only_devices() && !self.threads() {
            // Neither the bell nor anybody who rings it is needed.
            self.lock().channels.wait(NAP)?;
        } else {
            return Ok(true);
        }
        Ok(false)
    }

    /// The rank's node knows when something may have changed. In virtual time nothing else does: no launcher asks.
    fn wait_by_node(&self, waiting: &Waiting, patience: &mut Patience) -> Result<()> {
        let mut state = self.lock();
        let is_virtual = state.channels.node().is_some_and(|node| node.is_virtual());
        let longest = if is_virtual { u64::MAX } else { NAP };
        if let Err(error) = state.channels.wait(longest) {
            return Err(match error.fault() {
                Fault::Device(device::Error::Deadlock) => state.deadlock(waiting),
                _ => error.into(),
            });
        }
        drop(state);
        match !is_virtual || patience.looks.is_multiple_of(1024) {
            true => self.attend(waiting),
            false => Ok(()),
        }
    }

    /// From now on this rank counts as asleep. False: a wake-up can be missed.
    fn lie_down(&self) -> bool {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        self.bell.as_ref().is_some_and(|bell| bell.arm())
    }

    /// Looks once more, now that whoever writes rings; how long this rank may sleep.
    fn prepare_nap(&self, state: &mut State, ordered: bool) -> Result<u64> {
        let rings = match state.channels.arm()? {
            None => return Ok(state.nap(ordered)),
            Some(rings) => rings,
        };
        // What devices have brought is found by looking at all of it.
        if state.progress()? {
            return Ok(0);
        }
        let nap = state.nap(ordered && rings);
        if nap > 0 {
            self.watch(state)?;
        }
        Ok(nap)
    }

    /// Lets the devices' events ring this rank's bell.
    fn watch(&self, state: &mut State) -> Result<()> {
        let Some(bell) = &self.bell else {
            return Ok(());
        };
        if self.watcher.get().is_none()
            && let Some(events) = state.channels.events()?
        {
            let watcher = Watcher::new(events, bell.clone()).map_err(|why| {
                let what = format!("the thread that waits for the devices cannot start: {why}");
                Error::new(Class::OTHER, what)
            })?;
            // Under the rank's lock, nobody else is here.
            let _ = self.watcher.set(watcher);
        }
        if let Some(watcher) = self.watcher.get() {
            watcher.watch();
        }
        Ok(())
    }

    /// Sleeps until somebody writes to this rank, at most so many nanoseconds, and gets up.
    fn sleep(&self, nap: u64) {
        let Some(bell) = &self.bell else { return };
        if nap > 0 {
            bell.wait(nap);
        }
        match self.sleepers.fetch_sub(1, Ordering::SeqCst) {
            1 => bell.disarm(),
            _ => bell.rouse(),
        }
    }
}

impl State {
    /// How long a rank may sleep that finds things as they are now.
    fn nap(&mut self, ordered: bool) -> u64 {
        match (self.channels.is_quiet(), ordered, self.messages.has_work()) {
            (false, ..) => 0,
            (true, true, false) => NAP,
            // A wake-up can be missed, or what we wait for is room, which may have come before we looked.
            (true, ..) => BLIND_NAP,
        }
    }
}
