//! Data that are kept with a request until its operation is complete: arrays of C's datatypes that
//! the library may still read, and copies of sections.
//!
//! A copy is written to its section by the Fortran call that detects the completion. If a request
//! is completed in C, by its converted handle, its section stays unchanged; requests whose sections
//! are described by datatypes have no copies.

use crate::abi::Abi;
use crate::handle::{Request, from_integer};
use crate::sections::Packed;
use crate::standard;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
struct Belongings {
    /// Arrays of datatypes, which this module only keeps; `None` without any.
    types: Option<Box<dyn Send>>,
    copies: Vec<Packed>,
    /// True from the start of the operation to its completion.
    is_active: bool,
}

/// The kept data, by Fortran's handle of the request.
static KEPT: Mutex<BTreeMap<c_int, Belongings>> = Mutex::new(BTreeMap::new());
/// The number of entries in [`KEPT`]. Every call that completes requests reads it first.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Keeps arrays of datatypes as long as a request.
pub fn keep_types<H: Send + 'static>(request: c_int, types: Vec<Vec<H>>) {
    change(|kept| kept.entry(request).or_default().types = Some(Box::new(types)));
}

/// Keeps copies of sections as long as a request. `is_active`: true if the operation has begun.
///
/// # Safety
/// The sections exist until the operation is complete.
pub(crate) unsafe fn keep_copies<A: Abi>(request: c_int, copies: Vec<Packed>, is_active: bool) {
    change(|kept| {
        let belongings = kept.entry(request).or_default();
        (belongings.copies, belongings.is_active) = (copies, is_active);
    });
    // The request may be complete already.
    if request == A::MPI_REQUEST_NULL {
        gone(request);
    } else {
        unchanged::<A>(request);
    }
}

/// Drops the data that an earlier request with this handle has left, if it was completed in C.
/// Called after the library has made a request.
#[inline(always)]
pub fn made(request: c_int) {
    if any() {
        change(|kept| kept.remove(&request));
    }
}

/// Writes the copies of a request to their sections, and drops its data. Called after the library
/// has completed or freed it.
#[inline(always)]
pub fn gone(request: c_int) {
    if any() {
        end(request);
    }
}

/// Writes the copies of a request to their sections if its operation is complete. Called after a
/// call that has left the request valid.
#[inline(always)]
pub fn unchanged<A: Abi>(request: c_int) {
    if any() {
        check_request::<A>(request);
    }
}

/// Calls [`unchanged`] for each of `length` requests.
///
/// # Safety
/// The address is that of `length` handles.
pub unsafe fn all_unchanged<A: Abi>(requests: *const c_int, length: i64) {
    for at in 0..length.max(0) as usize {
        // SAFETY: promised.
        unchanged::<A>(unsafe { *requests.add(at) });
    }
}

/// Copies the sections of persistent requests. Called before a start of `length` of them.
///
/// # Safety
/// The address is that of `length` handles.
#[inline(always)]
pub unsafe fn start(requests: *const c_int, length: i64) {
    if any() {
        for at in 0..length.max(0) as usize {
            // SAFETY: promised.
            start_one(unsafe { *requests.add(at) });
        }
    }
}

fn any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

#[cold]
fn end(request: c_int) {
    if let Some(mut belongings) = change(|kept| kept.remove(&request)) {
        belongings.complete();
    }
}

#[cold]
fn check_request<A: Abi>(request: c_int) {
    let is_active = |kept: &mut BTreeMap<_, Belongings>| {
        let belongings = kept.get(&request);
        belongings.is_some_and(|belongings| belongings.is_active && !belongings.copies.is_empty())
    };
    if !change(is_active) {
        return;
    }
    let mut flag = 0;
    // SAFETY: the address is that of a flag; the status is ignored.
    let code = unsafe {
        let standard = from_integer::<A, Request>(request);
        standard::request_get_status::<A, true>(
            standard,
            &mut flag,
            without_provenance_mut(A::STATUS_IGNORE),
        )
    };
    if code == 0 && flag != 0 {
        change(|kept| kept.get_mut(&request).map(Belongings::complete));
    }
}

#[cold]
fn start_one(request: c_int) {
    change(|kept| kept.get_mut(&request).map(Belongings::start));
}

impl Belongings {
    fn start(&mut self) {
        self.is_active = true;
        for copy in &mut self.copies {
            // SAFETY: the program promises that its arrays stay until the request is freed.
            unsafe { copy.gather() };
        }
    }

    fn complete(&mut self) {
        if std::mem::take(&mut self.is_active) {
            for copy in &mut self.copies {
                // SAFETY: the program promises that its arrays stay until the completion.
                unsafe { copy.scatter() };
            }
        }
    }
}

fn change<T>(change: impl FnOnce(&mut BTreeMap<c_int, Belongings>) -> T) -> T {
    let mut kept: MutexGuard<'_, _> = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let result = change(&mut kept);
    COUNT.store(kept.len(), Ordering::Relaxed);
    result
}
