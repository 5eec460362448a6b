//! The standard ABI for Fortran: handles of predefined objects are the same integers as in C, and a
//! status has 32 bytes.

use crate::common::handle::*;
use crate::common::standard;
use std::ffi::{c_int, c_void};
use std::ptr::without_provenance_mut;

/// The name by which programs need this library.
pub(crate) const LIBRARY: &str = "libmpifort_abi.so.1";

/// The library of C that it calls.
pub(crate) const C_LIBRARY: &str = "libmpi_abi.so.1";

/// A status: eight integers in C and in Fortran, in the same order.
pub(crate) type Status = [c_int; 8];

/// Handles are pointers in C.
pub(crate) mod handles {
    macro_rules! aliases {
        ($($name:ident)*) => { $(pub(crate) type $name = usize;)* };
    }
    aliases! { Comm Datatype Errhandler File Group Info Message Op Request Session Win }
}

pub(crate) const IN_PLACE: *mut c_void = without_provenance_mut(1);
pub(crate) const AUTOMATIC: *mut c_void = without_provenance_mut(2);

/// The address of statuses that are ignored.
pub(crate) const STATUS_IGNORE: usize = 0;

/// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY.
pub(crate) fn weights() -> [*mut c_int; 2] {
    [0xa, 0xb].map(without_provenance_mut)
}

/// C's key for Fortran's, which is that.
#[inline(always)]
pub(crate) fn keyval(keyval: c_int) -> c_int {
    keyval
}

/// Tells the C library what Fortran's variables are. That of the standard ABI has no place for
/// them.
pub(crate) fn open() {}

/// Handles of predefined objects, NULL included, lie below this value.
const PREDEFINED_END: usize = 4096;

/// Whether the datatype is a predefined one.
pub(crate) fn is_predefined(datatype: handles::Datatype) -> bool {
    datatype < PREDEFINED_END
}

macro_rules! classes {
    ($($name:ident $from:ident $to:ident;)*) => {$(
        impl Integers for $name {
            type Handle = usize;

            #[inline(always)]
            fn from_integer(integer: c_int) -> usize {
                if Self::is_known(integer) {
                    return Self::known(integer);
                }
                // SAFETY: any integer is allowed.
                unsafe { standard::$from::<true>(integer) }
            }

            #[inline(always)]
            fn is_known(integer: c_int) -> bool {
                (0..PREDEFINED_END as c_int).contains(&integer)
            }

            #[inline(always)]
            fn known(integer: c_int) -> usize {
                integer as usize
            }

            #[inline(always)]
            fn to_integer(handle: usize) -> c_int {
                if handle < PREDEFINED_END {
                    return handle as c_int;
                }
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
    Request request_fromint request_toint;
    Session session_fromint session_toint;
    Win win_fromint win_toint;
}
