//! The conversion of handles, which are integers in Fortran, to C and back. The ABI has the handles
//! of C and their conversions.

use crate::abi::Abi;
use crate::{requests, standard};
use abi_convert::Word;
use abi_convert::array::Array;
use std::ffi::c_int;

/// A class of handles.
pub trait Class<A: Abi> {
    /// A handle in C. The default value is no handle.
    type Handle: Word;

    /// The number of the class, less than [`CLASSES`].
    const NUMBER: usize;

    /// C's handle for a Fortran handle, by a call of the C library.
    fn ask_handle(integer: c_int) -> Self::Handle;

    /// Fortran's handle for a C handle, by a call of the C library.
    fn ask_integer(handle: Self::Handle) -> c_int;

    /// Called after the library has made an object with this handle.
    #[inline(always)]
    fn made(_integer: c_int) {}

    /// Called after a call has replaced this handle of the program by another.
    #[inline(always)]
    fn replaced(_integer: c_int) {}

    /// Called after a call has left this handle of the program unchanged.
    #[inline(always)]
    fn unchanged(_integer: c_int) {}
}

/// The number of classes of handles.
pub const CLASSES: usize = 11;

/// The number of the class of files, whose handles are pointers in every ABI.
pub const FILE: usize = 10;

macro_rules! classes {
    ($($name:ident $handle:ty, $number:expr, $from:ident $to:ident { $($more:tt)* })*) => {$(
        /// The class of handles with this name, as a type.
        pub enum $name {}

        impl<A: Abi> Class<A> for $name {
            type Handle = $handle;

            const NUMBER: usize = $number;

            #[inline(always)]
            fn ask_handle(integer: c_int) -> $handle {
                // SAFETY: any integer is allowed.
                unsafe { standard::$from::<A, true>(integer) }
            }

            #[inline(always)]
            fn ask_integer(handle: $handle) -> c_int {
                // SAFETY: the handle is one of the C library's.
                unsafe { standard::$to::<A, true>(handle) }
            }

            $($more)*
        }
    )*};
}

classes! {
    Comm A::Handle, 0, comm_fromint comm_toint {}
    Datatype A::Handle, 1, type_fromint type_toint {}
    Errhandler A::Handle, 2, errhandler_fromint errhandler_toint {}
    Group A::Handle, 3, group_fromint group_toint {}
    Info A::Handle, 4, info_fromint info_toint {}
    Message A::Handle, 5, message_fromint message_toint {}
    Op A::Handle, 6, op_fromint op_toint {}
    Session A::Handle, 7, session_fromint session_toint {}
    Win A::Handle, 8, win_fromint win_toint {}
    Request A::Handle, 9, request_fromint request_toint {
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
            requests::unchanged::<A>(integer);
        }
    }
    File usize, FILE, file_fromint file_toint {}
}

/// The handle in C for a Fortran handle.
#[inline(always)]
pub fn from_integer<A: Abi, C: Class<A>>(integer: c_int) -> C::Handle {
    A::from_integer::<C>(integer)
}

/// True if the conversion of a Fortran handle to C needs no call.
#[inline(always)]
pub fn is_known<A: Abi, C: Class<A>>(integer: c_int) -> bool {
    A::is_known::<C>(integer)
}

/// C's handle for a Fortran handle for which `is_known` is true.
#[inline(always)]
pub fn known<A: Abi, C: Class<A>>(integer: c_int) -> C::Handle {
    A::known::<C>(integer)
}

/// The handle in Fortran for a C handle.
#[inline(always)]
pub fn to_integer<A: Abi, C: Class<A>>(handle: C::Handle) -> c_int {
    A::to_integer::<C>(handle)
}

/// Writes the handle of an object that the library has made. The default handle: it has made none.
///
/// # Safety
/// The address is that of a handle.
#[inline(always)]
pub unsafe fn give<A: Abi, C: Class<A>>(place: *mut c_int, handle: C::Handle) {
    if handle != C::Handle::default() {
        let integer = to_integer::<A, C>(handle);
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
pub unsafe fn update<A: Abi, C: Class<A>>(place: *mut c_int, handle: C::Handle) {
    // SAFETY: promised.
    unsafe {
        let (old, new) = (*place, to_integer::<A, C>(handle));
        if old != new {
            *place = new;
            C::replaced(old);
        } else {
            C::unchanged(old);
        }
    }
}

/// Fills an array with C's handles for Fortran handles.
///
/// # Safety
/// The address is that of `length` handles.
#[inline(always)]
pub unsafe fn fill<A: Abi, C: Class<A>>(
    to: &mut Array<C::Handle>,
    from: *const c_int,
    length: i64,
) {
    // SAFETY: promised.
    to.fill(length, |at| from_integer::<A, C>(unsafe { *from.add(at) }));
}

/// Writes an array of handles that the library may have changed.
///
/// # Safety
/// The address is that of as many handles.
#[inline(always)]
pub unsafe fn update_all<A: Abi, C: Class<A>>(places: *mut c_int, handles: &[C::Handle]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: promised.
        unsafe { update::<A, C>(places.add(at), *handle) };
    }
}

/// Writes an array of handles of objects that the library has made.
///
/// # Safety
/// The address is that of as many handles.
pub unsafe fn give_all<A: Abi, C: Class<A>>(places: *mut c_int, handles: &[C::Handle]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: promised.
        unsafe { give::<A, C>(places.add(at), *handle) };
    }
}
