//! Requests: the handles that are converted most often, of which the null handle alone is
//! predefined.

use crate::common::constants::{program, standard};
use crate::common::handle::{Class, Handles};
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

    #[cold]
    #[inline(never)]
    fn other(&self, handle: Handle) -> usize {
        self.0.standard(handle)
    }
}

impl Handles for Requests {
    #[inline(always)]
    fn standard(&self, handle: Handle) -> usize {
        match shared_in(handle) {
            Some(standard) if handle != request_null() => standard,
            _ => self.other(handle),
        }
    }

    #[inline(always)]
    unsafe fn give(&self, handle: *mut Handle, standard: usize) {
        match shared(standard) {
            // SAFETY: promised; the library got NULL in place of NULL, and has made no request.
            Some(request) if request != request_null() => unsafe { *handle = request },
            // SAFETY: promised.
            _ => unsafe { self.0.give(handle, standard) },
        }
    }

    #[inline(always)]
    unsafe fn update(&self, handle: *mut Handle, standard: usize) {
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
}
