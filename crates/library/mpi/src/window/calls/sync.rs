//! Operations on windows and their synchronisation (MPI 5.0 §12.3 and §12.5).

use channel::lock::Guard;
use channel::{Ticket, WindowMemory};

use rma_check::Event;

use crate::coll::calls::Work;
use crate::rank::Rank;
use crate::request::RequestId;
use crate::state::{Objects, State};
use crate::window::calls::wait::Missing;
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

impl Objects {
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
    /// Starts an operation on a window, as [`State::access_window`] does. Where that shortens it,
    /// it waits for the lock of its epoch before, as `MPI_Win_lock` may do too.
    ///
    /// # Errors
    /// An argument is invalid, no epoch allows the operation, or the target is lost.
    pub fn access_window<'a>(
        &'a self,
        mut state: Guard<'a, State>,
        operation: &'static str,
        win: u32,
        (access, place): (&Access, &Place),
        wants_request: bool,
    ) -> Result<Option<RequestId>> {
        // Without a thread the grant would wait for a call of the target.
        if state.objects.windows.has_thread()
            && state.engine.router.machine().abilities().runs_threads
        {
            let target = state.with_window(win, |window, ports| {
                window.ask_for_grant(ports, access, place)
            })?;
            if let Some(target) = target {
                drop(state);
                self.wait_for_grants(operation, win, &[target])?;
                state = self.lock();
            }
        }
        state.access_window(win, access, place, wants_request)
    }

    /// `MPI_Win_fence`.
    ///
    /// # Errors
    /// Another epoch is open, an access has failed, or a member is lost.
    pub fn window_fence(&self, operation: &'static str, win: u32, assert: i32) -> Result<()> {
        let comm = {
            let state = self.lock();
            let window = state.objects.windows.get(win)?;
            allow(assert, NOSTORE | NOPUT | NOPRECEDE | NOSUCCEED)?;
            window.epochs.check_fence()?;
            window.comm
        };
        self.end_operations(operation, win, None)?;
        self.collective(operation, &Work::Barrier, comm)?;
        let mut state = self.lock();
        let window = state.objects.windows.get_mut(win)?;
        window.epochs.fence(assert & NOSUCCEED == 0);
        let outcome = window.report();
        state.notes().window(win, |window| Event::Fenced { window });
        outcome
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
            let window = state.objects.windows.get(win)?;
            allow(assert, NOCHECK)?;
            let targets = state.objects.ranks_in(window, group)?;
            state
                .objects
                .windows
                .get_mut(win)?
                .epochs
                .start(targets.clone())?;
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
            match window.missing_local(None) {
                None if window.flavor == Flavor::Dynamic => window.missing_end(None).into(),
                local => local.into(),
            }
        })?;
        self.lock().objects.windows.get_mut(win)?.report()
    }

    /// `MPI_Win_post`.
    ///
    /// # Errors
    /// The window is exposed already, or an argument is invalid.
    pub fn window_post(&self, win: u32, group: u32, assert: i32) -> Result<()> {
        let mut state = self.lock();
        let window = state.objects.windows.get(win)?;
        allow(assert, NOCHECK | NOSTORE | NOPUT)?;
        let origins = state.objects.ranks_in(window, group)?;
        state.with_window(win, |window, ports| {
            let me = window.core.rank as u32;
            window.epochs.post(origins.clone(), me)?;
            if assert & NOCHECK == 0 {
                for &origin in &origins {
                    window.tell_post(ports, origin);
                }
            }
            Ok(())
        })?;
        state.notes().window(win, |window| Event::Posted { window });
        Ok(())
    }

    /// `MPI_Win_wait`.
    ///
    /// # Errors
    /// `MPI_Win_post` has not been called, or an origin is lost.
    pub fn window_wait(&self, operation: &'static str, win: u32) -> Result<()> {
        let origins = {
            let state = self.lock();
            let window = state.objects.windows.get(win)?;
            window.epochs.exposed(operation)?.to_vec()
        };
        self.wait_for_window(operation, win, |window, _| {
            match window.take_completes(&origins) {
                true => Missing::Nothing,
                false => window.missing_complete(&origins).into(),
            }
        })?;
        let mut state = self.lock();
        state.objects.windows.get_mut(win)?.epochs.end_exposure();
        state.notes().window(win, |window| Event::Waited { window });
        Ok(())
    }

    /// `MPI_Win_test`: true if the exposure epoch has ended.
    ///
    /// # Errors
    /// `MPI_Win_post` has not been called, or progress failed.
    pub fn window_test(&self, operation: &'static str, win: u32) -> Result<bool> {
        let origins = {
            let state = self.lock();
            let window = state.objects.windows.get(win)?;
            window.epochs.exposed(operation)?.to_vec()
        };
        let ended = self.poll_for(operation, |state| {
            state.serve_windows()?;
            let window = state.objects.windows.get_mut(win)?;
            let ended = window.take_completes(&origins);
            if ended {
                window.epochs.end_exposure();
                state.notes().window(win, |window| Event::Waited { window });
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

    /// Waits for a window lock in memory that the members map.
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

    /// Takes the shared locks of all members, one after the other, in memory that they map.
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

    /// Ends an epoch of locks in memory that the members map: of one target, or of all. False: they
    /// do not map the window.
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

    /// `MPI_Win_flush` and `MPI_Win_flush_all`, by `rank`: `None` for all targets.
    ///
    /// # Errors
    /// No target is locked, an access has failed, or a target is lost.
    pub fn window_flush(&self, operation: &'static str, win: u32, rank: Option<i32>) -> Result<()> {
        if self.lock().objects.windows.flush_near(win, rank) {
            return Ok(());
        }
        if let Some(target) = self.flushed(win, rank)? {
            self.end_operations(operation, win, target)?;
        }
        let mut state = self.lock();
        state.notes().end(win, rank, false, false);
        state.objects.windows.get_mut(win)?.report()
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
        if self.lock().objects.windows.flush_near(win, rank) {
            return Ok(());
        }
        if let Some(target) = self.flushed(win, rank)? {
            self.wait_for_window(operation, win, |window, _| {
                window.missing_local(target).into()
            })?;
        }
        let mut state = self.lock();
        state.notes().end(win, rank, true, false);
        state.objects.windows.get_mut(win)?.report()
    }

    /// `MPI_Win_sync`: the memory of a window is one with that of its processor. Arrived accesses
    /// are applied.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    pub fn window_sync(&self, win: u32) -> Result<()> {
        self.lock().objects.windows.get(win)?;
        self.progress()?;
        self.lock().serve_windows()?;
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }

    /// The target of a flush, or all. `None`: nothing is under way, as all members map the window,
    /// or the target is `MPI_PROC_NULL`.
    fn flushed(&self, win: u32, rank: Option<i32>) -> Result<Option<Option<u32>>> {
        let mut state = self.lock();
        let window = state.objects.windows.get_mut(win)?;
        if rank == Some(PROC_NULL) {
            return Ok(None);
        }
        let target = rank.map(|rank| window.member(rank)).transpose()?;
        window.epochs.check_flush(target)?;
        let Some(direct) = &mut window.direct else {
            return Ok(Some(target));
        };
        if direct.synchronise() {
            direct.progresses();
            drop(state);
            self.progress()?;
        }
        Ok(None)
    }

    /// Waits until all operations on a target, or on all, are applied.
    fn end_operations(&self, operation: &'static str, win: u32, target: Option<u32>) -> Result<()> {
        self.lock()
            .with_window(win, |window, ports| window.ask_ends(ports, target))?;
        self.wait_for_ends(operation, win, target)
    }

    fn wait_for_ends(&self, operation: &'static str, win: u32, target: Option<u32>) -> Result<()> {
        self.wait_for_window(operation, win, |window, _| {
            let missing = window.missing_end(target);
            missing.or_else(|| window.missing_local(target)).into()
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
