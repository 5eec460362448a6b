//! Arrays of converted handles that the library may read until a request is complete: those of
//! nonblocking and persistent exchanges with a datatype for each peer.

use crate::common::classes::{DATATYPE, REQUEST};
use crate::common::handle::{Class, Handles};
use crate::common::objects::Entry;
use crate::program::Handle;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

static KEPT: Mutex<BTreeMap<u32, LateArrays>> = Mutex::new(BTreeMap::new());

/// The mark of a request that keeps arrays.
const KEEPS: u32 = 1;

pub(crate) struct LateArrays {
    arrays: Vec<Vec<usize>>,
}

impl LateArrays {
    pub(crate) fn new() -> LateArrays {
        LateArrays { arrays: Vec::new() }
    }

    /// The standard's handles of an array of datatypes.
    ///
    /// # Safety
    /// The address is NULL or that of so many handles.
    pub(crate) unsafe fn types(&mut self, types: *const Handle, count: usize) -> *const usize {
        if types.is_null() {
            return std::ptr::null();
        }
        // SAFETY: promised.
        let standard = (0..count).map(|at| DATATYPE.standard(unsafe { *types.add(at) }));
        self.arrays.push(standard.collect());
        // The array stays where it is when the list of arrays moves.
        self.arrays
            .last()
            .map_or(std::ptr::null(), |array| array.as_ptr())
    }

    /// Writes the request that the library has made, and keeps the arrays as long as it.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    pub(crate) unsafe fn keep(self, request: *mut Handle, standard: usize) {
        if standard == 0 || request.is_null() {
            return;
        }
        let (handle, index) = REQUEST.with_index(standard);
        // SAFETY: promised.
        unsafe { *request = handle };
        kept().insert(index, self);
        if let Some(mark) = REQUEST.mark(index) {
            mark.store(KEEPS, Ordering::Relaxed);
        }
    }
}

/// Frees the arrays of a request that is gone.
#[inline(always)]
pub(crate) fn forget(class: &Class, index: u32, entry: &Entry) {
    if entry.references.load(Ordering::Relaxed) == KEEPS && std::ptr::eq(class, &*REQUEST) {
        entry.references.store(0, Ordering::Relaxed);
        kept().remove(&index);
    }
}

fn kept() -> std::sync::MutexGuard<'static, BTreeMap<u32, LateArrays>> {
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
