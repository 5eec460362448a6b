//! The one static of the library: the rank that runs in this process, if one does, and what may be
//! used when none does.
//!
//! `Rank` is published by MPI_Init and taken back by MPI_Finalize. Until it is there, only the
//! procedures marked `e` in the table get past the frame.

use crate::call_guard::Object;
use crate::call_trace::Watch;
use crate::error::Error;
use crate::info::InfoTable;
use mpi::codes::Codes;
use std::ffi::c_int;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A running rank.
pub struct Rank {
    /// The rank behind the C face.
    pub mpi: Arc<mpi::Rank>,
    /// It runs on a modelled machine.
    pub in_virtual_time: bool,
    /// Somebody wants to know of the program's calls, or of the time between them.
    pub watch: Option<Watch>,
    /// Calls the error handler of the object, and gives the code to return if it comes back.
    pub raise: fn(rank: &Rank, object: Object, procedure: &str, error: &Error) -> c_int,
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
    /// The rank, while the program computes and is watched: then `rank` is NULL.
    outside: AtomicPtr<Rank>,
    initialised: AtomicBool,
    /// Info objects may be made and used at any time.
    infos: Mutex<InfoTable>,
    /// And so may error classes, codes and strings be added.
    codes: Mutex<Codes>,
}

/// The one instance of [`Library`].
pub static LIBRARY: Library = Library {
    rank: AtomicPtr::new(ptr::null_mut()),
    outside: AtomicPtr::new(ptr::null_mut()),
    initialised: AtomicBool::new(false),
    infos: Mutex::new(InfoTable::new()),
    codes: Mutex::new(Codes::new()),
};

impl Library {
    /// The rank, while MPI is running.
    #[inline(always)]
    pub fn rank(&self) -> Option<&'static Rank> {
        self.rank_in_call().or_else(|| self.rank_outside())
    }

    /// The rank, while MPI is running, unless this call must be announced first.
    #[inline(always)]
    pub fn rank_in_call(&self) -> Option<&'static Rank> {
        // SAFETY: only `start` brings in a pointer, from a reference that lives for ever.
        unsafe { self.rank.load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn rank_outside(&self) -> Option<&'static Rank> {
        // SAFETY: as above.
        unsafe { self.outside.load(Ordering::Acquire).as_ref() }
    }

    /// Announces a call of a program that is watched; false if none is, or if it is in a call already.
    #[cold]
    pub fn enter(&self, call: &'static str) -> bool {
        let Some(rank) = self.rank_outside() else {
            return false;
        };
        if let Some(watch) = &rank.watch {
            watch.enter(rank, call);
        }
        self.outside.store(ptr::null_mut(), Ordering::Release);
        let rank = ptr::from_ref(rank).cast_mut();
        self.rank.store(rank, Ordering::Release);
        true
    }

    /// The announced call goes back, unless it was the last.
    #[cold]
    pub fn leave(&self) {
        let Some(rank) = self.rank_in_call() else {
            return;
        };
        let place = self.rank.swap(ptr::null_mut(), Ordering::AcqRel);
        self.outside.store(place, Ordering::Release);
        if let Some(watch) = &rank.watch {
            watch.leave(rank);
        }
    }

    /// MPI runs from now on. The rank stays in memory until the process ends, for another thread may
    /// still be looking at it when `stop` takes it back.
    pub fn start(&self, rank: &'static Rank) {
        self.initialised.store(true, Ordering::Relaxed);
        let place = match &rank.watch {
            Some(watch) => {
                watch.begin();
                &self.outside
            }
            None => &self.rank,
        };
        place.store(ptr::from_ref(rank).cast_mut(), Ordering::Release);
    }

    /// MPI runs no longer.
    pub fn stop(&self) {
        self.rank.store(ptr::null_mut(), Ordering::Release);
        self.outside.store(ptr::null_mut(), Ordering::Release);
    }

    /// The info objects of the process.
    pub fn infos(&self) -> MutexGuard<'_, InfoTable> {
        // No operation on the table panics half-way.
        self.infos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error classes, codes and strings that the program added.
    pub fn codes(&self) -> MutexGuard<'_, Codes> {
        // As above.
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// MPI_Init was called, whatever came after.
    pub fn initialised(&self) -> bool {
        self.initialised.load(Ordering::Acquire)
    }

    /// MPI_Finalize was called.
    pub fn finalised(&self) -> bool {
        self.initialised() && self.rank().is_none()
    }
}
