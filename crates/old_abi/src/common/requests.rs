//! Requests: the handles that are converted most often, of which the null handle alone is
//! predefined.

use crate::common::array::Array;
use crate::common::constants::{program, standard};
use crate::common::handle::{Class, UNKNOWN};
use crate::program::{Handle, request_null, shared, shared_in};
use std::ops::Deref;

const STANDARD_NULL: usize = standard::MPI_REQUEST_NULL as usize;

/// The class of requests. It does what [`Class`] does, with fewer instructions.
pub(crate) struct Requests(Class);

impl Deref for Requests {
    type Target = Class;

    fn deref(&self) -> &Class {
        &self.0
    }
}

impl Requests {
    pub(crate) const fn new() -> Requests {
        let null = (program::MPI_REQUEST_NULL, standard::MPI_REQUEST_NULL);
        Requests(Class::new(&[null], null, false))
    }

    /// The standard's handle.
    #[inline(always)]
    pub(crate) fn standard(&self, handle: Handle) -> usize {
        match shared_in(handle) {
            Some(standard) if handle != request_null() => standard,
            _ => self.other(handle),
        }
    }

    #[cold]
    #[inline(never)]
    fn other(&self, handle: Handle) -> usize {
        self.0.standard(handle)
    }

    /// The standard's handle of the one at an address, which may be NULL.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    #[inline(always)]
    pub(crate) unsafe fn standard_at(&self, handle: *const Handle) -> usize {
        if handle.is_null() {
            return UNKNOWN;
        }
        // SAFETY: promised.
        self.standard(unsafe { *handle })
    }

    /// Fills an array with the standard's handles.
    ///
    /// # Safety
    /// The address is NULL or that of so many handles.
    #[inline(always)]
    pub(crate) unsafe fn array(
        &self,
        array: &mut Array<usize>,
        handles: *const Handle,
        length: i64,
    ) {
        if !handles.is_null() {
            // SAFETY: promised.
            array.fill(length, |at| self.standard(unsafe { *handles.add(at) }));
        }
    }

    /// Writes the program's handle for one that the library has made. 0: it has made none.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    #[inline(always)]
    pub(crate) unsafe fn give(&self, handle: *mut Handle, standard: usize) {
        match shared(standard) {
            // SAFETY: promised; the library got NULL in place of NULL, and has made no request.
            Some(request) if request != request_null() => unsafe { *handle = request },
            // SAFETY: promised.
            _ => unsafe { self.0.give(handle, standard) },
        }
    }

    /// Writes the null handle over one whose object the library has freed.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    #[inline(always)]
    pub(crate) unsafe fn update(&self, handle: *mut Handle, standard: usize) {
        if standard != STANDARD_NULL || handle.is_null() {
            return;
        }
        // SAFETY: promised.
        unsafe {
            if shared_in(*handle).is_none() {
                self.0.release(*handle);
            }
            *handle = request_null();
        }
    }

    /// Writes the null handle over those of an array whose objects the library has freed.
    ///
    /// # Safety
    /// The address is NULL or that of as many handles.
    #[inline(always)]
    pub(crate) unsafe fn update_all(&self, handles: *mut Handle, standard: &[usize]) {
        for (at, &standard) in standard.iter().enumerate() {
            // SAFETY: promised; the slice is empty if the address is NULL.
            unsafe { self.update(handles.add(at), standard) };
        }
    }
}
