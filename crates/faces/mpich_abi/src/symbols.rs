//! The variables that MPICH's `mpi.h` declares, and the copy function that it names.

use std::ffi::{c_int, c_void};

/// An address that programs read from a variable.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Pointer<T>(pub(crate) *const T);

// SAFETY: nothing is read or written through these addresses.
unsafe impl<T> Sync for Pointer<T> {}

static UNWEIGHTED: [c_int; 1] = [0];
static WEIGHTS_EMPTY: [c_int; 1] = [0];

/// `MPI_UNWEIGHTED`
#[unsafe(no_mangle)]
pub(crate) static MPI_UNWEIGHTED: Pointer<c_int> = Pointer(&raw const UNWEIGHTED as *const c_int);

/// `MPI_WEIGHTS_EMPTY`
#[unsafe(no_mangle)]
pub(crate) static MPI_WEIGHTS_EMPTY: Pointer<c_int> =
    Pointer(&raw const WEIGHTS_EMPTY as *const c_int);

/// `MPI_F_STATUS_IGNORE`: null until the Fortran library stores the address.
#[unsafe(no_mangle)]
pub(crate) static mut MPI_F_STATUS_IGNORE: *mut c_int = std::ptr::null_mut();

/// `MPI_F_STATUSES_IGNORE`: null until the Fortran library stores the address.
#[unsafe(no_mangle)]
pub(crate) static mut MPI_F_STATUSES_IGNORE: *mut c_int = std::ptr::null_mut();

/// MPI_STATUS_IGNORE of Fortran's module `mpi_f08`. Only its address is used.
#[unsafe(no_mangle)]
pub(crate) static MPIR_F08_MPI_STATUS_IGNORE_OBJ: [c_int; 5] = [0; 5];

/// MPI_STATUSES_IGNORE of Fortran's module `mpi_f08`. Only its address is used.
#[unsafe(no_mangle)]
pub(crate) static MPIR_F08_MPI_STATUSES_IGNORE_OBJ: [c_int; 5] = [0; 5];

/// `MPI_F08_STATUS_IGNORE`
#[unsafe(no_mangle)]
pub(crate) static MPI_F08_STATUS_IGNORE: Pointer<c_int> =
    Pointer(&raw const MPIR_F08_MPI_STATUS_IGNORE_OBJ as *const c_int);

/// `MPI_F08_STATUSES_IGNORE`
#[unsafe(no_mangle)]
pub(crate) static MPI_F08_STATUSES_IGNORE: Pointer<c_int> =
    Pointer(&raw const MPIR_F08_MPI_STATUSES_IGNORE_OBJ as *const c_int);

/// `MPI_T_PVAR_ALL_HANDLES`
#[unsafe(no_mangle)]
pub(crate) static MPI_T_PVAR_ALL_HANDLES: Pointer<c_void> = Pointer(std::ptr::without_provenance(
    abi_convert::constants::standard::MPI_T_PVAR_ALL_HANDLES as usize,
));

/// The function with the names MPI_COMM_DUP_FN, MPI_TYPE_DUP_FN and MPI_WIN_DUP_FN.
///
/// # Safety
/// The pointers are those that MPI passes to a copy function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPIR_Dup_fn(
    _object: c_int,
    _keyval: c_int,
    _extra_state: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: promised.
    unsafe {
        copy.cast::<*mut c_void>().write(value);
        *flag = 1;
    }
    0
}
