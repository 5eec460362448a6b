//! Requests: the handles that are converted most often. Only the null handle is predefined.

use crate::abi::Abi;
use crate::constants::standard;
use crate::handle::{Class, Handles};
use std::ops::Deref;

const STANDARD_NULL: usize = standard::MPI_REQUEST_NULL as usize;

/// The class of requests. It converts handles like [`Class`], with fewer instructions.
pub struct Requests<A: Abi>(pub(crate) Class<A>);

impl<A: Abi> Deref for Requests<A> {
    type Target = Class<A>;

    fn deref(&self) -> &Class<A> {
        &self.0
    }
}

impl<A: Abi> Requests<A> {
    #[cold]
    #[inline(never)]
    fn other(&self, handle: A::Handle) -> usize {
        self.0.standard(handle)
    }
}

impl<A: Abi> Handles<A> for Requests<A> {
    #[inline(always)]
    fn standard(&self, handle: A::Handle) -> usize {
        match A::shared_in(handle) {
            Some(standard) if handle != A::request_null() => standard,
            _ => self.other(handle),
        }
    }

    #[inline(always)]
    unsafe fn give(&self, handle: *mut A::Handle, standard: usize) {
        match A::shared(standard) {
            // SAFETY: promised; for a NULL address the library got NULL too, and has made no
            // request.
            Some(request) if request != A::request_null() => unsafe { *handle = request },
            // SAFETY: promised.
            _ => unsafe { self.0.give(handle, standard) },
        }
    }

    #[inline(always)]
    unsafe fn update(&self, handle: *mut A::Handle, standard: usize) {
        if standard != STANDARD_NULL || handle.is_null() {
            return;
        }
        // SAFETY: promised.
        unsafe {
            if A::shared_in(*handle).is_none() {
                self.0.release(*handle);
            }
            *handle = A::request_null();
        }
    }
}
