//! Handles: integers in Fortran. The module `program` knows the words of C and how they convert.

use crate::common::array::Array;
use crate::common::requests;
use std::ffi::c_int;

/// A word of C that is a handle.
pub(crate) trait Word: Copy + PartialEq {
    /// No handle has this value.
    const NONE: Self;
}

impl Word for usize {
    const NONE: usize = 0;
}

impl Word for c_int {
    const NONE: c_int = 0;
}

/// The conversion of a class of handles between the languages.
pub(crate) trait Integers {
    type Handle: Word;

    fn from_integer(integer: c_int) -> Self::Handle;

    /// Whether `known` converts the integer, without a call.
    fn is_known(integer: c_int) -> bool;

    /// C's handle for Fortran's, for which `is_known` is true.
    fn known(integer: c_int) -> Self::Handle;

    fn to_integer(handle: Self::Handle) -> c_int;
}

/// A class of handles.
pub(crate) trait Class: Integers {
    /// The library has made an object.
    #[inline(always)]
    fn made(_integer: c_int) {}

    /// A handle of the program's has become another.
    #[inline(always)]
    fn replaced(_integer: c_int) {}

    /// A handle of the program's is the same after a call.
    #[inline(always)]
    fn unchanged(_integer: c_int) {}
}

macro_rules! classes {
    ($($name:ident)*) => {$(
        pub(crate) enum $name {}

        impl Class for $name {}
    )*};
}

classes! { Comm Datatype Errhandler File Group Info Message Op Session Win }

pub(crate) enum Request {}

impl Class for Request {
    #[inline(always)]
    fn made(integer: c_int) {
        requests::made(integer);
    }

    #[inline(always)]
    fn replaced(integer: c_int) {
        requests::gone(integer);
    }

    #[inline(always)]
    fn unchanged(integer: c_int) {
        requests::unchanged(integer);
    }
}

/// C's handle for Fortran's.
#[inline(always)]
pub(crate) fn from_integer<C: Class>(integer: c_int) -> C::Handle {
    C::from_integer(integer)
}

/// Whether C's handle for Fortran's needs no call.
#[inline(always)]
pub(crate) fn is_known<C: Class>(integer: c_int) -> bool {
    C::is_known(integer)
}

/// C's handle for Fortran's, for which `is_known` is true.
#[inline(always)]
pub(crate) fn known<C: Class>(integer: c_int) -> C::Handle {
    C::known(integer)
}

/// Fortran's handle for C's.
#[inline(always)]
pub(crate) fn to_integer<C: Class>(handle: C::Handle) -> c_int {
    C::to_integer(handle)
}

/// Writes a handle that the library has made. NONE: it has made none.
///
/// # Safety
/// The address is that of a handle.
#[inline(always)]
pub(crate) unsafe fn give<C: Class>(place: *mut c_int, handle: C::Handle) {
    if handle != C::Handle::NONE {
        let integer = to_integer::<C>(handle);
        C::made(integer);
        // SAFETY: promised.
        unsafe { *place = integer };
    }
}

/// Writes a handle that the library may have changed.
///
/// # Safety
/// The address is that of a handle.
#[inline(always)]
pub(crate) unsafe fn update<C: Class>(place: *mut c_int, handle: C::Handle) {
    // SAFETY: promised.
    unsafe {
        let (old, new) = (*place, to_integer::<C>(handle));
        if old != new {
            *place = new;
            C::replaced(old);
        } else {
            C::unchanged(old);
        }
    }
}

/// Fills an array with C's handles.
///
/// # Safety
/// The address is that of so many handles.
#[inline(always)]
pub(crate) unsafe fn fill<C: Class>(to: &mut Array<C::Handle>, from: *const c_int, length: i64) {
    // SAFETY: promised.
    to.fill(length, |at| from_integer::<C>(unsafe { *from.add(at) }));
}

/// Writes handles that the library may have changed.
///
/// # Safety
/// The address is that of so many handles.
#[inline(always)]
pub(crate) unsafe fn update_all<C: Class>(places: *mut c_int, handles: &[C::Handle]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: promised.
        unsafe { update::<C>(places.add(at), *handle) };
    }
}

/// Writes handles that the library has made.
///
/// # Safety
/// The address is that of so many handles.
pub(crate) unsafe fn give_all<C: Class>(places: *mut c_int, handles: &[C::Handle]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: promised.
        unsafe { give::<C>(places.add(at), *handle) };
    }
}
