//! Operations on windows and their synchronisation (MPI 5.0 §12.3 and §12.5).

use channel::lock::Guard;

use rma_check::Event;

use crate::coll::calls::Work;
use crate::rank::Rank;
use crate::request::RequestId;
use crate::state::{Objects, State};
use crate::window::calls::wait::Missing;
use crate::window::{Access, Flavor, Place, Window};
use crate::{Class, Error, PROC_NULL, Result, UNDEFINED};

/// Values of the argument `assert` (MPI 5.0 §12.5.5), as in the ABI.
pub(super) mod assertion {
    pub(in crate::window::calls) const NOCHECK: i32 = 1024;
    pub(super) const NOPRECEDE: i32 = 2048;
    pub(super) const NOPUT: i32 = 4096;
    pub(super) const NOSTORE: i32 = 8192;
    pub(super) const NOSUCCEED: i32 = 16384;
}
use assertion::*;
impl Objects {
    /// The ranks in a window of the members of a group.
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
    /// Starts an operation on a window, as [`State::access_window`] does. If that makes the
    /// operation faster, it first waits for the lock of its epoch, as `MPI_Win_lock` may also do.
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
        // Without a progress thread the grant would wait for an MPI call of the target.
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
                    window.notify_post(ports, origin);
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

    /// `MPI_Win_flush` of the target `rank`, or, for `None`, `MPI_Win_flush_all`.
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

    /// `MPI_Win_flush_local` of the target `rank`, or, for `None`, `MPI_Win_flush_local_all`.
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

    /// `MPI_Win_sync`: orders loads and stores of this rank, and applies the accesses that have
    /// arrived.
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

    /// The target of a flush; `Some(None)` for all targets. `None`: no operation is outstanding,
    /// because all members map the window or the target is `MPI_PROC_NULL`.
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

    /// Waits until all operations on a target, or on all targets (`None`), are applied.
    fn end_operations(&self, operation: &'static str, win: u32, target: Option<u32>) -> Result<()> {
        self.lock()
            .with_window(win, |window, ports| window.ask_ends(ports, target))?;
        self.wait_for_ends(operation, win, target)
    }

    pub(super) fn wait_for_ends(
        &self,
        operation: &'static str,
        win: u32,
        target: Option<u32>,
    ) -> Result<()> {
        self.wait_for_window(operation, win, |window, _| {
            let missing = window.missing_end(target);
            missing.or_else(|| window.missing_local(target)).into()
        })
    }
}

/// Checks that a procedure accepts these assertions: the bits of `allowed`.
pub(super) fn allow(assert: i32, allowed: i32) -> Result<()> {
    match assert & !allowed {
        0 => Ok(()),
        other => Err(Error::new(
            Class::ASSERT,
            format!("assert has the bits {other:#x}, which are no assertion of this procedure"),
        )),
    }
}
