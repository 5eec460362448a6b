//! Handles: integers in Fortran. Those of predefined objects have the ABI's values in both
//! languages; for the others the ABI library knows both.

use crate::array::Array;
use crate::requests;
use crate::standard;
use std::ffi::c_int;

/// Handles of predefined objects, NULL included, lie below this value.
pub(crate) const PREDEFINED_END: usize = 4096;

/// A class of handles.
pub(crate) trait Class {
    fn from_integer(integer: c_int) -> usize;
    fn to_integer(handle: usize) -> c_int;

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
    ($($name:ident $from:ident $to:ident;)*) => {$(
        pub(crate) enum $name {}

        impl Class for $name {
            fn from_integer(integer: c_int) -> usize {
                // SAFETY: any integer is allowed.
                unsafe { standard::$from::<true>(integer) }
            }

            fn to_integer(handle: usize) -> c_int {
                // SAFETY: the handle is one of the ABI library's.
                unsafe { standard::$to::<true>(handle) }
            }
        }
    )*};
}

classes! {
    Comm comm_fromint comm_toint;
    Datatype type_fromint type_toint;
    Errhandler errhandler_fromint errhandler_toint;
    File file_fromint file_toint;
    Group group_fromint group_toint;
    Info info_fromint info_toint;
    Message message_fromint message_toint;
    Op op_fromint op_toint;
    Session session_fromint session_toint;
    Win win_fromint win_toint;
}

pub(crate) enum Request {}

impl Class for Request {
    fn from_integer(integer: c_int) -> usize {
        // SAFETY: any integer is allowed.
        unsafe { standard::request_fromint::<true>(integer) }
    }

    fn to_integer(handle: usize) -> c_int {
        // SAFETY: the handle is one of the ABI library's.
        unsafe { standard::request_toint::<true>(handle) }
    }

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
pub(crate) fn from_integer<C: Class>(integer: c_int) -> usize {
    if (0..PREDEFINED_END as c_int).contains(&integer) {
        return integer as usize;
    }
    C::from_integer(integer)
}

/// Fortran's handle for C's.
#[inline(always)]
pub(crate) fn to_integer<C: Class>(handle: usize) -> c_int {
    if handle < PREDEFINED_END {
        return handle as c_int;
    }
    C::to_integer(handle)
}

/// Writes a handle that the library has made. 0: it has made none.
///
/// # Safety
/// The address is that of a handle.
#[inline(always)]
pub(crate) unsafe fn give<C: Class>(place: *mut c_int, handle: usize) {
    if handle != 0 {
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
pub(crate) unsafe fn update<C: Class>(place: *mut c_int, handle: usize) {
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
pub(crate) unsafe fn fill<C: Class>(to: &mut Array<usize>, from: *const c_int, length: i64) {
    // SAFETY: promised.
    to.fill(length, |at| from_integer::<C>(unsafe { *from.add(at) }));
}

/// Writes handles that the library may have changed.
///
/// # Safety
/// The address is that of so many handles.
#[inline(always)]
pub(crate) unsafe fn update_all<C: Class>(places: *mut c_int, handles: &[usize]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: promised.
        unsafe { update::<C>(places.add(at), *handle) };
    }
}

/// Writes handles that the library has made.
///
/// # Safety
/// The address is that of so many handles.
pub(crate) unsafe fn give_all<C: Class>(places: *mut c_int, handles: &[usize]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: promised.
        unsafe { give::<C>(places.add(at), *handle) };
    }
}
