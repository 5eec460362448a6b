//! Epochs of locks on windows (MPI 5.0 §12.5.3).

use channel::{Ticket, WindowMemory};

use crate::rank::Rank;
use crate::window::calls::sync::allow;
use crate::window::calls::sync::assertion::NOCHECK;
use crate::window::calls::wait::Missing;
use crate::window::{Held, LockKind, Window};
use crate::{Class, Error, PROC_NULL, Result};

/// `MPI_LOCK_EXCLUSIVE`, with the ABI's value.
const LOCK_EXCLUSIVE: i32 = 301;
/// `MPI_LOCK_SHARED`, with the ABI's value.
const LOCK_SHARED: i32 = 302;

impl Rank {
    /// `MPI_Win_lock`. It waits for the lock only if loads and stores may follow: for this rank's
    /// own part, in mapped memory, and in shared windows. Elsewhere the accesses wait for the lock
    /// at the target.
    ///
    /// # Errors
    /// Another epoch is open, an argument is invalid, or the target is lost.
    pub fn window_lock(
        &self,
        operation: &'static str,
        win: u32,
        (kind, rank, assert): (i32, i32, i32),
    ) -> Result<()> {
        let waited = self.lock().with_window(win, |window, ports| {
            let kind = match kind {
                LOCK_EXCLUSIVE => LockKind::Exclusive,
                LOCK_SHARED => LockKind::Shared,
                _ => {
                    let detail = format!(
                        "lock_type is {kind}; valid are MPI_LOCK_EXCLUSIVE and MPI_LOCK_SHARED"
                    );
                    return Err(Error::new(Class::LOCKTYPE, detail));
                }
            };
            allow(assert, NOCHECK)?;
            allow_locks(window)?;
            if rank == PROC_NULL {
                return Ok(None);
            }
            let (target, me) = (window.member(rank)?, window.core.rank as u32);
            let nocheck = assert & NOCHECK != 0;
            window.epochs.lock(target, Held { kind, nocheck }, me)?;
            if window.direct.is_some() {
                let ticket = match nocheck {
                    true => None,
                    false => window.request_lock(ports, target, kind),
                };
                return Ok(ticket.map(|ticket| (target, Some(ticket))));
            }
            if target != me && !window.is_shared() {
                return Ok(None);
            }
            window.ask_locks(ports, &[target])?;
            Ok(Some((target, None)))
        })?;
        match waited {
            None => {}
            Some((target, None)) => self.wait_for_grants(operation, win, &[target])?,
            Some((target, Some(ticket))) => {
                self.wait_for_ticket(operation, win, target, &ticket)?;
            }
        }
        self.lock().notes().lock(win, rank, kind == LOCK_EXCLUSIVE);
        Ok(())
    }

    /// Waits for a window lock whose words are in mapped memory.
    fn wait_for_ticket(
        &self,
        operation: &'static str,
        win: u32,
        target: u32,
        ticket: &Ticket,
    ) -> Result<()> {
        let tell = |waits: fn(&WindowMemory, usize)| {
            if let Some(direct) = &self.lock().objects.windows.get(win)?.direct {
                waits(&direct.memory, target as usize);
            }
            Ok::<(), Error>(())
        };
        tell(WindowMemory::begin_wait)?;
        let waited = self.wait_for_window(operation, win, |window, ports| {
            match window.is_granted(ports, target, ticket) {
                true => Missing::Nothing,
                false => Missing::Anyone,
            }
        });
        tell(WindowMemory::end_wait)?;
        waited
    }

    /// Acquires the shared locks of all members, one after another, in mapped memory.
    fn lock_all_in_memory(&self, operation: &'static str, win: u32) -> Result<()> {
        let members = self.lock().objects.windows.get(win)?.core.size() as u32;
        for target in 0..members {
            let ticket = self.lock().with_window(win, |window, ports| {
                Ok(window.request_lock(ports, target, LockKind::Shared))
            })?;
            if let Some(ticket) = ticket {
                self.wait_for_ticket(operation, win, target, &ticket)?;
            }
        }
        Ok(())
    }

    /// Ends an epoch of locks in mapped memory: of one target, or of all (`None`). Returns false if
    /// the members do not map the window.
    fn unlock_in_memory(&self, win: u32, target: Option<u32>) -> Result<bool> {
        let is_due = self.lock().with_window(win, |window, ports| {
            let Some(direct) = &mut window.direct else {
                return Ok(None);
            };
            let is_due = direct.synchronise();
            if is_due {
                direct.progresses();
            }
            let targets = match target {
                Some(target) => target..target + 1,
                None => 0..window.core.size() as u32,
            };
            for target in targets {
                if let Some(held) = window.epochs.lock_of(target).filter(|held| !held.nocheck) {
                    window.release_lock(ports, target, held.kind);
                }
            }
            match target {
                Some(target) => window.epochs.unlock(target),
                None => window.epochs.unlock_all(),
            }
            Ok(Some(is_due))
        })?;
        if is_due == Some(true) {
            self.progress()?;
        }
        Ok(is_due.is_some())
    }

    /// `MPI_Win_lock_all`.
    ///
    /// # Errors
    /// Another epoch is open, an argument is invalid, or a target is lost.
    pub fn window_lock_all(&self, operation: &'static str, win: u32, assert: i32) -> Result<()> {
        let targets = self.lock().with_window(win, |window, ports| {
            allow(assert, NOCHECK)?;
            allow_locks(window)?;
            let nocheck = assert & NOCHECK != 0;
            window.epochs.lock_all(nocheck)?;
            if window.direct.is_some() {
                return Ok((!nocheck).then(Vec::new));
            }
            let targets = match window.is_shared() {
                true => (0..window.core.size() as u32).collect(),
                false => vec![window.core.rank as u32],
            };
            window.ask_locks(ports, &targets)?;
            Ok(Some(targets))
        })?;
        match targets {
            None => {}
            Some(targets) if targets.is_empty() => self.lock_all_in_memory(operation, win)?,
            Some(targets) => self.wait_for_grants(operation, win, &targets)?,
        }
        let mut state = self.lock();
        let own = state.objects.windows.get(win)?.core.rank as i32;
        state.notes().lock(win, own, false);
        Ok(())
    }

    /// `MPI_Win_unlock`.
    ///
    /// # Errors
    /// The target is not locked, an access has failed, or the target is lost.
    pub fn window_unlock(&self, operation: &'static str, win: u32, rank: i32) -> Result<()> {
        let target = self.lock().with_window(win, |window, ports| {
            if rank == PROC_NULL {
                return Ok(None);
            }
            let target = window.member(rank)?;
            window.epochs.check_locked(target)?;
            if window.direct.is_none() {
                window.ask_unlocks(ports, Some(target))?;
            }
            Ok(Some(target))
        })?;
        if let Some(target) = target
            && !self.unlock_in_memory(win, Some(target))?
        {
            self.wait_for_ends(operation, win, Some(target))?;
            self.lock()
                .objects
                .windows
                .get_mut(win)?
                .epochs
                .unlock(target);
        }
        let mut state = self.lock();
        state.notes().end(win, Some(rank), false, true);
        state.objects.windows.get_mut(win)?.report()
    }

    /// `MPI_Win_unlock_all`.
    ///
    /// # Errors
    /// The targets are not locked, an access has failed, or a target is lost.
    pub fn window_unlock_all(&self, operation: &'static str, win: u32) -> Result<()> {
        self.lock().with_window(win, |window, ports| {
            window.epochs.check_locked_all()?;
            match window.direct {
                Some(_) => Ok(()),
                None => window.ask_unlocks(ports, None),
            }
        })?;
        if !self.unlock_in_memory(win, None)? {
            self.wait_for_ends(operation, win, None)?;
            self.lock()
                .objects
                .windows
                .get_mut(win)?
                .epochs
                .unlock_all();
        }
        let mut state = self.lock();
        state.notes().end(win, None, false, true);
        state.objects.windows.get_mut(win)?.report()
    }

    pub(super) fn wait_for_grants(
        &self,
        operation: &'static str,
        win: u32,
        targets: &[u32],
    ) -> Result<()> {
        self.wait_for_window(operation, win, |window, _| {
            window.missing_grant(targets).into()
        })
    }
}

fn allow_locks(window: &Window) -> Result<()> {
    match window.hints.no_locks() {
        false => Ok(()),
        true => Err(Error::new(
            Class::RMA_SYNC,
            "the window was made with the info key no_locks: it cannot be locked",
        )),
    }
}
