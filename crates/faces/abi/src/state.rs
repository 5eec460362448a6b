//! The state of the library in this process: the rank, while MPI is running, and the tables that
//! may be used at any time.
//!
//! MPI_Init publishes `Rank` and MPI_Finalize withdraws it. Without a rank, the call guard admits
//! only the procedures marked `e` in the table.

use crate::call_trace::Watch;
use crate::error::Error;
use crate::fortran::Fortran;
use crate::info::{InfoTable, name_of_this_computer};
use crate::object::Object;
use crate::refused::Refused;
use crate::still_clock::StillClock;
use mpi::codes::Codes;
use recording::StatusMemory;
use std::ffi::c_int;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of this process's rank while MPI runs.
pub struct Rank {
    /// The rank of crate `mpi`, which this crate gives a C interface.
    pub mpi: Arc<mpi::Rank>,
    /// True if the rank runs on a modelled machine.
    pub in_virtual_time: bool,
    /// The number of this rank's host on a modelled machine; `None` on a real host.
    pub modelled_host: Option<u32>,
    /// The trace of the program's calls, if calls are traced, profiled, or the time between them is
    /// charged.
    pub watch: Option<Watch>,
    /// The readings of the clock, if computing takes no virtual time and this rank is the one that
    /// reports it.
    pub still_clock: Option<StillClock>,
    /// True if the launcher requests an explanation of this rank's choices.
    pub explains: bool,
    /// The cache of the host's costs, if this rank takes care of it.
    pub cost_cache: Option<cost_cache::Cache>,
    /// Calls the error handler of the object, and returns its code if the handler returns.
    pub raise: fn(rank: &mpi::Rank, object: Object, procedure: &str, error: &Error) -> c_int,
}

impl Deref for Rank {
    type Target = Arc<mpi::Rank>;

    #[inline(always)]
    fn deref(&self) -> &Arc<mpi::Rank> {
        &self.mpi
    }
}

/// The state of the library in this process.
pub struct Library {
    rank: AtomicPtr<Rank>,
    /// The rank of a traced program; while the program computes, `rank` is null.
    outside: AtomicPtr<Rank>,
    /// The rank after MPI_Finalize too, so that valgrind and LeakSanitizer find memory that is kept
    /// on purpose.
    kept: AtomicPtr<Rank>,
    /// True once the program has called MPI_Init.
    initialised: AtomicBool,
    /// Info objects, which may be made and used at any time.
    infos: Mutex<InfoTable>,
    /// Error classes, codes and strings of the program, which may be added at any time.
    codes: Mutex<Codes>,
    /// Records of calls of procedures that are not implemented yet.
    refused: Mutex<Refused>,
    /// Properties of the program's Fortran compiler, which may be set at any time.
    fortran: Mutex<Fortran>,
}

/// The one instance of [`Library`].
pub static LIBRARY: Library = Library {
    rank: AtomicPtr::new(ptr::null_mut()),
    outside: AtomicPtr::new(ptr::null_mut()),
    kept: AtomicPtr::new(ptr::null_mut()),
    initialised: AtomicBool::new(false),
    infos: Mutex::new(InfoTable::new(host_name)),
    codes: Mutex::new(Codes::new()),
    refused: Mutex::new(Refused::new()),
    fortran: Mutex::new(Fortran::new()),
};

impl Library {
    /// The rank of this process, while MPI is running; otherwise `None`.
    #[inline(always)]
    pub fn rank(&self) -> Option<&'static Rank> {
        self.rank_in_call().or_else(|| self.rank_outside())
    }

    /// The rank, while MPI is running. `None` also if the call is traced and not yet announced.
    #[inline(always)]
    pub fn rank_in_call(&self) -> Option<&'static Rank> {
        // SAFETY: only `start` stores a pointer, that of a reference that is valid for ever.
        unsafe { self.rank.load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn rank_outside(&self) -> Option<&'static Rank> {
        // SAFETY: only `start` stores a pointer, that of a reference that is valid for ever.
        unsafe { self.outside.load(Ordering::Acquire).as_ref() }
    }

    /// Announces a call of a traced program. `constructs`: it makes or frees an object that ranks
    /// share. Returns false if no program is traced: then MPI is not running.
    #[cold]
    pub fn enter(&self, call: &'static str, constructs: bool) -> bool {
        let Some(rank) = self.rank_outside() else {
            return false;
        };
        if let Some(watch) = &rank.watch {
            watch.enter(rank, call, constructs, || {
                let rank = ptr::from_ref(rank).cast_mut();
                self.rank.store(rank, Ordering::Release);
            });
        }
        true
    }

    /// Announces a call as [`enter`](Library::enter) does, but may be used in a signal handler.
    /// `None`: another call is changing the trace.
    #[cold]
    pub fn try_enter(&self, call: &'static str) -> Option<bool> {
        let Some(rank) = self.rank_outside() else {
            return Some(false);
        };
        if let Some(watch) = &rank.watch {
            watch.try_enter(rank, call, || {
                let rank = ptr::from_ref(rank).cast_mut();
                self.rank.store(rank, Ordering::Release);
            })?;
        }
        Some(true)
    }

    /// Passes the arguments of a recorded call to the recorder, if there is one.
    ///
    /// # Safety
    /// The words are the arguments of the procedure with this number, as C promises them.
    #[cold]
    pub(crate) unsafe fn arguments(&self, procedure: usize, words: &[u64]) -> Option<StatusMemory> {
        let rank = self.rank_in_call()?;
        let watch = rank.watch.as_ref()?;
        // SAFETY: the caller's promise.
        unsafe { watch.arguments(rank, procedure, words) }
    }

    /// The rank in its present call, if its messages are checked.
    #[cold]
    pub(crate) fn message_notes(&self) -> Option<&'static Rank> {
        let rank = self.rank_in_call()?;
        rank.watch.as_ref()?.messages().map(|_| rank)
    }

    /// Passes the results of a recorded call to the recorder, if there is one, as
    /// [`arguments`](Library::arguments) does.
    ///
    /// # Safety
    /// As for [`arguments`](Library::arguments).
    #[cold]
    pub(crate) unsafe fn results(&self, words: &[u64], code: c_int) {
        if let Some(rank) = self.rank_in_call()
            && let Some(watch) = &rank.watch
        {
            // SAFETY: the caller's promise.
            unsafe { watch.results(rank, words, code) };
        }
    }

    /// Lets the library find this rank, which is one of several in this process. The rank that runs
    /// calls this before each of its calls.
    pub(crate) fn seat(&self, rank: &'static Rank) {
        self.initialised.store(true, Ordering::Relaxed);
        self.rank
            .store(ptr::from_ref(rank).cast_mut(), Ordering::Release);
    }

    /// Removes this rank from the library, if it is the current one.
    pub(crate) fn unseat(&self, rank: &'static Rank) {
        let own = ptr::from_ref(rank).cast_mut();
        let (done, as_it_is) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = self
            .rank
            .compare_exchange(own, ptr::null_mut(), done, as_it_is);
    }

    /// Ends an announced call. This has no effect after MPI_Finalize, which has withdrawn the rank.
    #[cold]
    pub fn leave(&self) {
        let Some(rank) = self.rank_in_call() else {
            return;
        };
        if let Some(watch) = &rank.watch {
            watch.leave(rank, || {
                self.rank.store(ptr::null_mut(), Ordering::Release);
            });
        }
    }

    /// Publishes the rank: MPI runs from now on. The rank stays in memory until the process ends,
    /// because another thread may still use it when `stop` withdraws it.
    pub fn start(&self, rank: &'static Rank) {
        self.initialised.store(true, Ordering::Relaxed);
        let place = match &rank.watch {
            Some(watch) => {
                watch.begin(rank);
                &self.outside
            }
            None => &self.rank,
        };
        let rank = ptr::from_ref(rank).cast_mut();
        self.kept.store(rank, Ordering::Relaxed);
        place.store(rank, Ordering::Release);
    }

    /// Removes the rank from the library: MPI no longer runs.
    pub fn stop(&self) {
        self.rank.store(ptr::null_mut(), Ordering::Release);
        self.outside.store(ptr::null_mut(), Ordering::Release);
    }

    /// The info objects of the process.
    pub fn infos(&self) -> MutexGuard<'_, InfoTable> {
        // No operation panics while the table is inconsistent.
        self.infos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error classes, codes and strings that the program added.
    pub fn codes(&self) -> MutexGuard<'_, Codes> {
        // No operation panics while the codes are inconsistent.
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records of calls of procedures that are not implemented yet.
    pub fn refused(&self) -> MutexGuard<'_, Refused> {
        // No operation panics while the records are inconsistent.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The properties of the program's Fortran compiler.
    pub fn fortran(&self) -> MutexGuard<'_, Fortran> {
        // No operation panics while the properties are inconsistent.
        self.fortran.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if MPI_Init was called, even if MPI_Finalize was called since.
    pub fn initialised(&self) -> bool {
        self.initialised.load(Ordering::Acquire)
    }

    /// True if MPI_Finalize was called.
    pub fn finalised(&self) -> bool {
        self.initialised() && self.rank().is_none()
    }
}

/// The name of the host of this process: on a modelled machine `host` and a number, otherwise the
/// name of this computer.
pub(crate) fn host_name() -> Vec<u8> {
    match LIBRARY.rank().and_then(|rank| rank.modelled_host) {
        Some(host) => format!("host{host}").into_bytes(),
        None => name_of_this_computer(),
    }
}
