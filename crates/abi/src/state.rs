//! The one static of the library: the rank that runs in this process, if one does, and what may be
//! used when none does.
//!
//! `Rank` is published by MPI_Init and taken back by MPI_Finalize. Until it is there, only the
//! procedures marked `e` in the table get past the frame.

use crate::error::Error;
use crate::frame::Object;
use crate::info::InfoTable;
use mpi::codes::Codes;
use std::ffi::c_int;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A running rank.
pub struct Rank {
    pub mpi: Arc<mpi::Rank>,
    /// It runs on a modelled machine.
    pub in_virtual_time: bool,
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

pub struct Library {
    rank: AtomicPtr<Rank>,
    initialised: AtomicBool,
    /// Info objects may be made and used at any time.
    infos: Mutex<InfoTable>,
    /// And so may error classes, codes and strings be added.
    codes: Mutex<Codes>,
}

pub static LIBRARY: Library = Library {
    rank: AtomicPtr::new(ptr::null_mut()),
    initialised: AtomicBool::new(false),
    infos: Mutex::new(InfoTable::new()),
    codes: Mutex::new(Codes::new()),
};

impl Library {
    /// The rank, while MPI is running.
    #[inline(always)]
    pub fn rank(&self) -> Option<&'static Rank> {
        // SAFETY: only `start` stores a pointer, from a reference that lives for ever.
        unsafe { self.rank.load(Ordering::Acquire).as_ref() }
    }

    /// MPI runs from now on. The rank stays in memory until the process ends, for another thread may
    /// still be looking at it when `stop` takes it back.
    pub fn start(&self, rank: &'static Rank) {
        self.initialised.store(true, Ordering::Relaxed);
        self.rank
            .store(ptr::from_ref(rank).cast_mut(), Ordering::Release);
    }

    /// MPI runs no longer.
    pub fn stop(&self) {
        self.rank.store(ptr::null_mut(), Ordering::Release);
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
