//! Symbols of Open MPI's `mpi.h` other than procedures and predefined handles.
#![allow(non_snake_case, non_upper_case_globals)]

use crate::predefined::Object;
use crate::program::Handle;
use std::ffi::{c_int, c_void};

/// `MPI_F_STATUS_IGNORE`: null until the Fortran library stores the address.
#[unsafe(no_mangle)]
pub(crate) static mut MPI_F_STATUS_IGNORE: *mut c_int = std::ptr::null_mut();

/// `MPI_F_STATUSES_IGNORE`: null until the Fortran library stores the address.
#[unsafe(no_mangle)]
pub(crate) static mut MPI_F_STATUSES_IGNORE: *mut c_int = std::ptr::null_mut();

/// `MPI_F08_STATUS_IGNORE`: null until the Fortran library stores the address.
#[unsafe(no_mangle)]
pub(crate) static mut MPI_F08_STATUS_IGNORE: *mut c_int = std::ptr::null_mut();

/// `MPI_F08_STATUSES_IGNORE`: null until the Fortran library stores the address.
#[unsafe(no_mangle)]
pub(crate) static mut MPI_F08_STATUSES_IGNORE: *mut c_int = std::ptr::null_mut();

/// Objects of handles that the standard does not have, or no longer has. A program that refers to
/// them can be loaded, and a call with such a handle reports it as invalid.
macro_rules! unknown {
    ($($name:ident $size:literal;)*) => {$(
        /// The object of a handle that the standard does not have.
        #[unsafe(no_mangle)]
        pub(crate) static $name: Object<$size> = Object::new();
    )*};
}

unknown! {
    ompi_mpi_2cplex 0x200;
    ompi_mpi_2dblcplex 0x200;
    ompi_mpi_ldblcplex 0x200;
    ompi_mpi_errors_throw_exceptions 0x400;
}

/// The object of MPI_LB.
#[unsafe(no_mangle)]
pub(crate) static ompi_mpi_lb: Object<0x200> = Object::new();

/// The object of MPI_UB.
#[unsafe(no_mangle)]
pub(crate) static ompi_mpi_ub: Object<0x200> = Object::new();

/// The predefined functions of attributes, which have separate names for each class.
macro_rules! attribute_functions {
    ($($null_copy:ident $dup:ident $null_delete:ident;)*) => {$(
        /// The copy function that copies nothing.
        ///
        /// # Safety
        /// The pointers are those that MPI passes to a copy function.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $null_copy(
            _object: Handle, _keyval: c_int, _extra_state: *mut c_void,
            _value: *mut c_void, _copy: *mut c_void, flag: *mut c_int,
        ) -> c_int {
            // SAFETY: promised.
            unsafe { *flag = 0 };
            0
        }

        /// The copy function that copies the value of the attribute.
        ///
        /// # Safety
        /// The pointers are those that MPI passes to a copy function.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $dup(
            _object: Handle, _keyval: c_int, _extra_state: *mut c_void,
            value: *mut c_void, copy: *mut c_void, flag: *mut c_int,
        ) -> c_int {
            // SAFETY: promised.
            unsafe {
                copy.cast::<*mut c_void>().write(value);
                *flag = 1;
            }
            0
        }

        /// The delete function without an effect.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $null_delete(
            _object: Handle, _keyval: c_int, _value: *mut c_void, _extra_state: *mut c_void,
        ) -> c_int {
            0
        }
    )*};
}

attribute_functions! {
    OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_DUP_FN OMPI_C_MPI_NULL_DELETE_FN;
    OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_COMM_NULL_DELETE_FN;
    OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN;
    OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_DUP_FN OMPI_C_MPI_WIN_NULL_DELETE_FN;
}

/// Returns 1 if buffers may lie in memory of an NVIDIA device. The standard answers that question
/// by the info of MPI_COMM_WORLD, so this always returns 0.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn MPIX_Query_cuda_support() -> c_int {
    0
}

/// Returns 1 if buffers may lie in memory of an AMD device. The standard answers that question by
/// the info of MPI_COMM_WORLD, so this always returns 0.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn MPIX_Query_rocm_support() -> c_int {
    0
}
