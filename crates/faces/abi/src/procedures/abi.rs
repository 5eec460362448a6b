//! Chapter 20: version and properties of the ABI, and handles as integers.

use crate::args::{Flag, Out};
use crate::call_guard::Call;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::fortran::{Booleans, LONGEST_LOGICAL, set_once};
use crate::handle::*;
use crate::info::InfoObject;
use crate::state::LIBRARY;
use std::ffi::{c_int, c_void};
use std::slice;

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

/// `MPI_Abi_set_fortran_info` (MPI 5.0, chapter 20). Only the first call has an effect; later ones
/// are errors.
pub fn abi_set_fortran_info(_: &Call, info: Info) -> Done {
    let types = LIBRARY.infos().get(info)?.clone();
    if set_once(&mut LIBRARY.fortran().types, types) {
        return Ok(());
    }
    Err(known_before("sizes of types"))
}

/// `MPI_Abi_get_fortran_info` (MPI 5.0, chapter 20): MPI_INFO_NULL if nothing was set.
pub fn abi_get_fortran_info(_: &Call, info: Out<Info>) -> Done {
    let types = LIBRARY.fortran().types.clone();
    info.set(match types {
        Some(types) => LIBRARY.infos().insert(types)?,
        None => MPI_INFO_NULL,
    });
    Ok(())
}

/// `MPI_Abi_set_fortran_booleans` (MPI 5.0, chapter 20). Only the first call has an effect; later
/// ones are errors.
///
/// # Safety
/// The addresses are NULL or those of logicals of this size.
pub unsafe fn abi_set_fortran_booleans(
    _: &Call,
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
) -> Done {
    let size = size_of_logical(logical_size)?;
    let [yes, no] = [
        ("logical_true", logical_true),
        ("logical_false", logical_false),
    ]
    .map(|(name, address)| {
        if address.is_null() {
            return Err(Error::new(MPI_ERR_ARG, format!("{name} is NULL")));
        }
        // SAFETY: promised; it is not NULL.
        Ok(unsafe { slice::from_raw_parts(address.cast::<u8>(), size) })
    });
    let booleans = Booleans::new(yes?, no?);
    if set_once(&mut LIBRARY.fortran().booleans, booleans) {
        return Ok(());
    }
    Err(known_before("values of LOGICAL"))
}

/// `MPI_Abi_get_fortran_booleans` (MPI 5.0, chapter 20). Nothing is written if the values of
/// logicals of this size are unknown.
///
/// # Safety
/// The addresses are NULL or those of logicals of this size.
pub unsafe fn abi_get_fortran_booleans(
    _: &Call,
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: Out<Flag>,
) -> Done {
    let size = size_of_logical(logical_size)?;
    let known = LIBRARY.fortran().booleans.clone();
    let values = known.as_ref().and_then(|known| known.of_size(size));
    if let Some((yes, no)) = values {
        for (address, value) in [(logical_true, yes), (logical_false, no)] {
            if !address.is_null() {
                // SAFETY: promised; the value has this size.
                unsafe { address.cast::<u8>().copy_from(value.as_ptr(), size) };
            }
        }
    }
    is_set.set(values.is_some());
    Ok(())
}

fn size_of_logical(size: c_int) -> Result<usize, Error> {
    let valid = usize::try_from(size).ok();
    valid
        .filter(|size| size.is_power_of_two() && *size <= LONGEST_LOGICAL)
        .ok_or_else(|| {
            let detail = format!("logical_size is {size}; valid: 1, 2, 4, 8, 16");
            Error::new(MPI_ERR_ARG, detail)
        })
}

fn known_before(what: &str) -> Error {
    let detail = format!("the {what} of Fortran are known; the first call counts");
    Error::new(MPI_ERR_ABI, detail)
}

/// Conversions between handles and ints. Every handle is a non-negative int (see `mpi::handle`), so
/// they only change the type. An invalid handle stays invalid; the procedure that uses it reports
/// it.
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
