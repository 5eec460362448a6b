//! MPICH's ABI for Fortran: a handle is the integer of C, but that of a file, and a status has 20
//! bytes.

use crate::common::handle::*;
use crate::common::{commons, library, standard};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The name by which programs need this library.
pub(crate) const LIBRARY: &str = "libmpifort.so.12";

/// The library of C that it calls.
pub(crate) const C_LIBRARY: &str = "libmpi.so.12";

/// A status: five integers in C and in Fortran, in the same order.
pub(crate) type Status = [c_int; 5];

/// Handles in C.
pub(crate) mod handles {
    use std::ffi::c_int;

    macro_rules! aliases {
        ($($name:ident)*) => { $(pub(crate) type $name = c_int;)* };
    }
    aliases! { Comm Datatype Errhandler Group Info Message Op Request Session Win }
    pub(crate) type File = usize;
}

pub(crate) const IN_PLACE: *mut c_void = without_provenance_mut(usize::MAX);
pub(crate) const AUTOMATIC: *mut c_void = without_provenance_mut(usize::MAX - 1);

/// The address of statuses that are ignored.
pub(crate) const STATUS_IGNORE: usize = 1;

/// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY: variables of the C library.
static WEIGHTS: [AtomicPtr<c_int>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

pub(crate) fn weights() -> [*mut c_int; 2] {
    WEIGHTS
        .each_ref()
        .map(|place| place.load(Ordering::Relaxed))
}

/// C's key for Fortran's. A predefined key has two numbers in MPICH: the odd one of C asks for an
/// address, and the even one behind it, which is Fortran's, for a value.
#[inline(always)]
pub(crate) fn keyval(keyval: c_int) -> c_int {
    let is_predefined = matches!(keyval >> 8, 0x64_4000 | 0x66_0000);
    if is_predefined && keyval & 1 == 0 {
        keyval - 1
    } else {
        keyval
    }
}

/// Finds the variables of the C library, and tells it what Fortran ignores.
pub(crate) fn open() {
    for (place, name) in WEIGHTS
        .iter()
        .zip([c"MPI_UNWEIGHTED", c"MPI_WEIGHTS_EMPTY"])
    {
        let variable = library::find(name).cast::<*mut c_int>();
        if !variable.is_null() {
            // SAFETY: the variable of this name is an address.
            place.store(unsafe { *variable }, Ordering::Relaxed);
        }
    }
    let ignored = [
        (c"MPI_F_STATUS_IGNORE", commons::status_ignore()),
        (c"MPI_F_STATUSES_IGNORE", commons::statuses_ignore()),
    ];
    for (name, address) in ignored {
        let variable = library::find(name).cast::<usize>();
        if !variable.is_null() {
            // SAFETY: the variable of this name is an address that the library of Fortran stores.
            unsafe { *variable = address };
        }
    }
}

/// Whether the datatype is a predefined one: its upper bits say so.
pub(crate) fn is_predefined(datatype: handles::Datatype) -> bool {
    datatype as u32 >> 30 == 1
}

macro_rules! classes {
    ($($name:ident)*) => {$(
        impl Integers for $name {
            type Handle = c_int;

            #[inline(always)]
            fn from_integer(integer: c_int) -> c_int {
                integer
            }

            #[inline(always)]
            fn is_known(_integer: c_int) -> bool {
                true
            }

            #[inline(always)]
            fn known(integer: c_int) -> c_int {
                integer
            }

            #[inline(always)]
            fn to_integer(handle: c_int) -> c_int {
                handle
            }
        }
    )*};
}

classes! { Comm Datatype Errhandler Group Info Message Op Request Session Win }

impl Integers for File {
    type Handle = usize;

    fn from_integer(integer: c_int) -> usize {
        // SAFETY: any integer is allowed.
        unsafe { standard::file_fromint::<true>(integer) }
    }

    fn is_known(_integer: c_int) -> bool {
        false
    }

    fn known(integer: c_int) -> usize {
        File::from_integer(integer)
    }

    fn to_integer(handle: usize) -> c_int {
        // SAFETY: the handle is one of the C library's.
        unsafe { standard::file_toint::<true>(handle) }
    }
}
