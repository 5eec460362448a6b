//! Operations on windows and their synchronisation (MPI 5.0 §12.3 and §12.5).

use super::window_wait::Missing;
use crate::coll::Work;
use crate::rank::{Rank, State};
use crate::request::RequestId;
use crate::window::{Access, Flavor, Held, LockKind, Place, Window};
use crate::{Class, Error, PROC_NULL, Result, UNDEFINED};

/// Assertions, with the ABI's values.
mod assertion {
    pub(super) const NOCHECK: i32 = 1024;
    pub(super) const NOPRECEDE: i32 = 2048;
    pub(super) const NOPUT: i32 = 4096;
    pub(super) const NOSTORE: i32 = 8192;
    pub(super) const NOSUCCEED: i32 = 16384;
}
use assertion::*;

/// `MPI_LOCK_EXCLUSIVE`, with the ABI's value.
const LOCK_EXCLUSIVE: i32 = 301;
/// `MPI_LOCK_SHARED`, with the ABI's value.
const LOCK_SHARED: i32 = 302;

impl State {
    /// Starts an operation on a window. The result is its request, if `wants_request`.
    ///
    /// # Errors
    /// An argument is invalid, no epoch allows the operation, or the target is lost.
    pub fn access_window(
        &mut self,
        win: u32,
        access: &Access,
        place: &Place,
        wants_request: bool,
    ) -> Result<Option<RequestId>> {
        let (request, waits) = self.with_window(win, |window, ports| {
            let request = window.start(ports, access, place, wants_request)?;
            Ok((request, window.has_queued(place.rank)))
        })?;
        if waits {
            // Credit comes with progress, and a program may make no other calls for long.
            self.progress()?;
            self.serve_windows()?;
        }
        Ok(request)
    }

    /// The members of a group, by their ranks in a window.
    fn ranks_in(&self, window: &Window, group: u32) -> Result<Vec<u32>> {
        let members = &self.groups.get(group)?.members;
        let everyone: Vec<i32> = (0..members.len() as i32).collect();
        let ranks = members.translate(&everyone, &window.core.members)?;
        match ranks.iter().position(|&rank| rank == UNDEFINED) {
            None => Ok(ranks.into_iter().map(|rank| rank as u32).collect()),
            Some(at) => Err(Error::new(
                Class::GROUP,
                format!("member {at} of the group is not in the window's group"),
            )),
        }
    }
}

impl Rank {
    /// `MPI_Win_fence`.
    ///
    /// # Errors
    /// Another epoch is open, an access has failed, or a member is lost.
    pub fn window_fence(&self, operation: &'static str, win: u32, assert: i32) -> Result<()> {
        let comm = {
            let state = self.lock();
            let window = state.windows.get(win)?;
            allow(assert, NOSTORE | NOPUT | NOPRECEDE | NOSUCCEED)?;
            window.epochs.check_fence()?;
            window.comm
        };
        self.end_operations(operation, win, None)?;
        self.collective(operation, &Work::Barrier, comm)?;
        let mut state = self.lock();
        let window = state.windows.get_mut(win)?;
        window.epochs.fence(assert & NOSUCCEED == 0);
        window.report()
    }

    /// `MPI_Win_start`.
    ///
    /// # Errors
    /// Another access epoch is open, an argument is invalid, or a target is lost.
    pub fn window_start(
        &self,
        operation: &'static str,
        win: u32,
        group: u32,
        assert: i32,
    ) -> Result<()> {
        let targets = {
            let mut state = self.lock();
            let window = state.windows.get(win)?;
            allow(assert, NOCHECK)?;
            let targets = state.ranks_in(window, group)?;
            state.windows.get_mut(win)?.epochs.start(targets.clone())?;
            targets
        };
        if assert & NOCHECK != 0 {
            return Ok(());
        }
        self.wait_for_window(operation, win, |window, _| {
            match window.take_posts(&targets) {
                true => Missing::Nothing,
                false => window.missing_post(&targets).into(),
            }
        })
    }

    /// `MPI_Win_complete`.
    ///
    /// # Errors
    /// `MPI_Win_start` has not been called, an access has failed, or a target is lost.
    pub fn window_complete(&self, operation: &'static str, win: u32) -> Result<()> {
        self.lock().with_window(win, |window, ports| {
            let targets = window.epochs.complete()?;
            window.end_access(ports, &targets)
        })?;
        self.wait_for_window(operation, win, |window, _| {
            match window.is_complete_here(None) {
                false => Missing::Progress,
                true if window.flavor == Flavor::Dynamic => window.missing_end(None).into(),
                true => Missing::Nothing,
            }
        })?;
        self.lock().windows.get_mut(win)?.report()
    }

    /// `MPI_Win_post`.
    ///
    /// # Errors
    /// The window is exposed already, or an argument is invalid.
    pub fn window_post(&self, win: u32, group: u32, assert: i32) -> Result<()> {
        let mut state = self.lock();
        let window = state.windows.get(win)?;
        allow(assert, NOCHECK | NOSTORE | NOPUT)?;
        let origins = state.ranks_in(window, group)?;
        state.with_window(win, |window, ports| {
            let me = window.core.rank as u32;
            window.epochs.post(origins.clone(), me)?;
            if assert & NOCHECK == 0 {
                for &origin in &origins {
                    window.tell_post(ports, origin);
                }
            }
            Ok(())
        })
    }

    /// `MPI_Win_wait`.
    ///
    /// # Errors
    /// `MPI_Win_post` has not been called, or an origin is lost.
    pub fn window_wait(&self, operation: &'static str, win: u32) -> Result<()> {
        let origins = {
            let state = self.lock();
            let window = state.windows.get(win)?;
            window.epochs.exposed(operation)?.to_vec()
        };
        self.wait_for_window(operation, win, |window, _| {
            match window.take_completes(&origins) {
                true => Missing::Nothing,
                false => window.missing_complete(&origins).into(),
            }
        })?;
        self.lock().windows.get_mut(win)?.epochs.end_exposure();
        Ok(())
    }

    /// `MPI_Win_test`: true if the exposure epoch has ended.
    ///
    /// # Errors
    /// `MPI_Win_post` has not been called, or progress failed.
    pub fn window_test(&self, operation: &'static str, win: u32) -> Result<bool> {
        let origins = {
            let state = self.lock();
            let window = state.windows.get(win)?;
            window.epochs.exposed(operation)?.to_vec()
        };
        let ended = self.poll_for(operation, |state| {
            state.serve_windows()?;
            let window = state.windows.get_mut(win)?;
            let ended = window.take_completes(&origins);
            if ended {
                window.epochs.end_exposure();
            }
            Ok(ended.then_some(()))
        })?;
        Ok(ended.is_some())
    }

    /// `MPI_Win_lock`. It waits for the lock only where loads and stores may follow: at this rank
    /// and in shared windows. Elsewhere accesses wait for it at the target.
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
            if target != me && !window.is_shared() {
                return Ok(None);
            }
            window.ask_locks(ports, &[target])?;
            Ok(Some(target))
        })?;
        match waited {
            None => Ok(()),
            Some(target) => self.wait_for_grants(operation, win, &[target]),
        }
    }

    /// `MPI_Win_lock_all`.
    ///
    /// # Errors
    /// Another epoch is open, an argument is invalid, or a target is lost.
    pub fn window_lock_all(&self, operation: &'static str, win: u32, assert: i32) -> Result<()> {
        let targets = self.lock().with_window(win, |window, ports| {
            allow(assert, NOCHECK)?;
            allow_locks(window)?;
            window.epochs.lock_all(assert & NOCHECK != 0)?;
            let targets = match window.is_shared() {
                true => (0..window.core.size() as u32).collect(),
                false => vec![window.core.rank as u32],
            };
            window.ask_locks(ports, &targets)?;
            Ok(targets)
        })?;
        self.wait_for_grants(operation, win, &targets)
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
            window.ask_unlocks(ports, Some(target))?;
            Ok(Some(target))
        })?;
        if let Some(target) = target {
            self.wait_for_ends(operation, win, Some(target))?;
            self.lock().windows.get_mut(win)?.epochs.unlock(target);
        }
        self.lock().windows.get_mut(win)?.report()
    }

    /// `MPI_Win_unlock_all`.
    ///
    /// # Errors
    /// The targets are not locked, an access has failed, or a target is lost.
    pub fn window_unlock_all(&self, operation: &'static str, win: u32) -> Result<()> {
        self.lock().with_window(win, |window, ports| {
            window.epochs.check_locked_all()?;
            window.ask_unlocks(ports, None)
        })?;
        self.wait_for_ends(operation, win, None)?;
        let mut state = self.lock();
        let window = state.windows.get_mut(win)?;
        window.epochs.unlock_all();
        window.report()
    }

    /// `MPI_Win_flush` and `MPI_Win_flush_all`, by `rank`: `None` for all targets.
    ///
    /// # Errors
    /// No target is locked, an access has failed, or a target is lost.
    pub fn window_flush(&self, operation: &'static str, win: u32, rank: Option<i32>) -> Result<()> {
        if let Some(target) = self.flushed(win, rank)? {
            self.end_operations(operation, win, target)?;
        }
        self.lock().windows.get_mut(win)?.report()
    }

    /// `MPI_Win_flush_local` and `MPI_Win_flush_local_all`, by `rank`: `None` for all targets.
    ///
    /// # Errors
    /// No target is locked, an access has failed, or a target is lost.
    pub fn window_flush_local(
        &self,
        operation: &'static str,
        win: u32,
        rank: Option<i32>,
    ) -> Result<()> {
        if let Some(target) = self.flushed(win, rank)? {
            self.wait_for_window(operation, win, |window, _| {
                window.is_complete_here(target).into()
            })?;
        }
        self.lock().windows.get_mut(win)?.report()
    }

    /// `MPI_Win_sync`: the memory of a window is one with that of its processor. Arrived accesses
    /// are applied.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    pub fn window_sync(&self, win: u32) -> Result<()> {
        self.lock().windows.get(win)?;
        self.progress()?;
        self.lock().serve_windows()?;
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }

    /// The target of a flush, or all. `None`: the target is `MPI_PROC_NULL`.
    fn flushed(&self, win: u32, rank: Option<i32>) -> Result<Option<Option<u32>>> {
        let state = self.lock();
        let window = state.windows.get(win)?;
        if rank == Some(PROC_NULL) {
            return Ok(None);
        }
        let target = rank.map(|rank| window.member(rank)).transpose()?;
        window.epochs.check_flush(target)?;
        Ok(Some(target))
    }

    /// Waits until all operations on a target, or on all, are applied.
    fn end_operations(&self, operation: &'static str, win: u32, target: Option<u32>) -> Result<()> {
        self.lock()
            .with_window(win, |window, ports| window.ask_ends(ports, target))?;
        self.wait_for_ends(operation, win, target)
    }

    fn wait_for_ends(&self, operation: &'static str, win: u32, target: Option<u32>) -> Result<()> {
        self.wait_for_window(operation, win, |window, _| {
            match window.missing_end(target) {
                Some(member) => Missing::Member(member),
                None => window.is_complete_here(target).into(),
            }
        })
    }

    fn wait_for_grants(&self, operation: &'static str, win: u32, targets: &[u32]) -> Result<()> {
        self.wait_for_window(operation, win, |window, _| {
            window.missing_grant(targets).into()
        })
    }
}

/// Finds whether a procedure takes these assertions.
fn allow(assert: i32, allowed: i32) -> Result<()> {
    match assert & !allowed {
        0 => Ok(()),
        other => Err(Error::new(
            Class::ASSERT,
            format!("assert has the bits {other:#x}, which are no assertion of this procedure"),
        )),
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
