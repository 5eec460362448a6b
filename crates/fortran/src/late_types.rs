//! Arrays of C's datatypes that the library may read until a request is complete: those of
//! nonblocking and persistent exchanges with a datatype for each peer.

use crate::handle::{Datatype, Request, from_integer, to_integer};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The arrays of requests, by Fortran's handle.
static KEPT: Mutex<BTreeMap<c_int, LateTypes>> = Mutex::new(BTreeMap::new());
/// Their number, which a completed request looks at first.
static COUNT: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct LateTypes {
    arrays: Vec<Vec<usize>>,
}

impl LateTypes {
    pub(crate) fn new() -> LateTypes {
        LateTypes { arrays: Vec::new() }
    }

    /// C's handles of an array of datatypes.
    ///
    /// # Safety
    /// The address is that of so many handles.
    pub(crate) unsafe fn add(&mut self, types: *const c_int, count: i64) -> *const usize {
        // SAFETY: promised.
        let type_at = |at| from_integer::<Datatype>(unsafe { *types.add(at) });
        let array = (0..count.max(0) as usize).map(type_at).collect();
        self.arrays.push(array);
        // The array stays where it is when the list of arrays moves.
        self.arrays
            .last()
            .map_or(std::ptr::null(), |array| array.as_ptr())
    }

    /// Keeps the arrays as long as the request that the library has made.
    pub(crate) fn keep(self, request: usize) {
        if request != 0 {
            let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            kept.insert(to_integer::<Request>(request), self);
            COUNT.store(kept.len(), Ordering::Relaxed);
        }
    }
}

/// Frees the arrays of a request that is gone.
#[inline(always)]
pub(crate) fn forget(request: c_int) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        forget_one(request);
    }
}

#[cold]
fn forget_one(request: c_int) {
    let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    kept.remove(&request);
    COUNT.store(kept.len(), Ordering::Relaxed);
}
