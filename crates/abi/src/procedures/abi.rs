//! Chapter 20: version and properties of the ABI, and handles as integers.

use super::Done;
use crate::args::Out;
use crate::call_guard::Call;
use crate::constants::{MPI_ABI_SUBVERSION, MPI_ABI_VERSION};
use crate::handle::*;
use crate::info::InfoObject;
use crate::state::LIBRARY;
use std::ffi::c_int;

/// `MPI_Abi_get_version` (MPI 5.0, chapter 20).
pub fn abi_get_version(_: &Call, major: Out<c_int>, minor: Out<c_int>) -> Done {
    major.set(MPI_ABI_VERSION);
    minor.set(MPI_ABI_SUBVERSION);
    Ok(())
}

/// `MPI_Abi_get_info` (MPI 5.0, chapter 20).
pub fn abi_get_info(_: &Call, info: Out<Info>) -> Done {
    let mut sizes = InfoObject::default();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        sizes.set(key.as_bytes(), b"8");
    }
    info.set(LIBRARY.infos().insert(sizes)?);
    Ok(())
}

/// Conversions between handles and ints. Every handle is a non-negative int (see `mpi::handle`), so
/// they only change the type. An invalid handle stays invalid; the procedure that uses it reports it.
macro_rules! conversions {
    ($($class:ident $toint:ident $fromint:ident)*) => {
        $(
            #[doc = concat!("The int of a handle of class `", stringify!($class), "` (MPI 5.0 §20.4).")]
            #[inline]
            pub fn $toint(handle: $class) -> c_int {
                handle.0 as c_int
            }

            #[doc = concat!("The handle of class `", stringify!($class), "` of an int (MPI 5.0 §20.4).")]
            #[inline]
            pub fn $fromint(value: c_int) -> $class {
                $class(value as usize)
            }
        )*
    };
}

conversions! {
    Comm comm_toint comm_fromint
    Datatype type_toint type_fromint
    Errhandler errhandler_toint errhandler_fromint
    File file_toint file_fromint
    Group group_toint group_fromint
    Info info_toint info_fromint
    Message message_toint message_fromint
    Op op_toint op_fromint
    Request request_toint request_fromint
    Session session_toint session_fromint
    Win win_toint win_fromint
}
