//! Conversions between handles and statuses of C and Fortran.

use crate::common::classes::*;
use crate::common::convert::{file_in, file_out};
use crate::common::standard;
use crate::common::types::ProgramStatus;
use crate::program::{Handle, file_null, fromint, toint};
use std::ffi::c_int;

macro_rules! integers {
    ($($class:ident $to:ident $profiled_to:ident $from:ident $profiled_from:ident;)*) => {$(
        /// The integer by which Fortran names a handle.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $to(handle: Handle) -> c_int {
            toint(&$class, handle)
        }

        /// The integer by which Fortran names a handle.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $profiled_to(handle: Handle) -> c_int {
            toint(&$class, handle)
        }

        /// The handle that Fortran names by an integer.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $from(handle: c_int) -> Handle {
            fromint(&$class, handle)
        }

        /// The handle that Fortran names by an integer.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $profiled_from(handle: c_int) -> Handle {
            fromint(&$class, handle)
        }
    )*};
}

macro_rules! copies {
    ($($name:ident $profiled:ident)*) => {$(
        /// The status has the same fields in C and in Fortran.
        ///
        /// # Safety
        /// The pointers are those of statuses.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(from: *const ProgramStatus, to: *mut ProgramStatus) -> c_int {
            // SAFETY: promised.
            unsafe { copy(from, to) }
        }

        /// The status has the same fields in C and in Fortran.
        ///
        /// # Safety
        /// The pointers are those of statuses.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $profiled(from: *const ProgramStatus, to: *mut ProgramStatus) -> c_int {
            // SAFETY: promised.
            unsafe { copy(from, to) }
        }
    )*};
}

integers! {
    COMM MPI_Comm_c2f PMPI_Comm_c2f MPI_Comm_f2c PMPI_Comm_f2c;
    ERRHANDLER MPI_Errhandler_c2f PMPI_Errhandler_c2f MPI_Errhandler_f2c PMPI_Errhandler_f2c;
    GROUP MPI_Group_c2f PMPI_Group_c2f MPI_Group_f2c PMPI_Group_f2c;
    INFO MPI_Info_c2f PMPI_Info_c2f MPI_Info_f2c PMPI_Info_f2c;
    MESSAGE MPI_Message_c2f PMPI_Message_c2f MPI_Message_f2c PMPI_Message_f2c;
    OP MPI_Op_c2f PMPI_Op_c2f MPI_Op_f2c PMPI_Op_f2c;
    REQUEST MPI_Request_c2f PMPI_Request_c2f MPI_Request_f2c PMPI_Request_f2c;
    SESSION MPI_Session_c2f PMPI_Session_c2f MPI_Session_f2c PMPI_Session_f2c;
    DATATYPE MPI_Type_c2f PMPI_Type_c2f MPI_Type_f2c PMPI_Type_f2c;
    WIN MPI_Win_c2f PMPI_Win_c2f MPI_Win_f2c PMPI_Win_f2c;
}

copies! {
    MPI_Status_c2f PMPI_Status_c2f MPI_Status_f2c PMPI_Status_f2c
    MPI_Status_c2f08 PMPI_Status_c2f08 MPI_Status_f082c PMPI_Status_f082c
    MPI_Status_f2f08 PMPI_Status_f2f08 MPI_Status_f082f PMPI_Status_f082f
}

unsafe fn copy(from: *const ProgramStatus, to: *mut ProgramStatus) -> c_int {
    if from as usize <= 1 || to as usize <= 1 {
        return crate::common::constants::program::MPI_ERR_ARG as c_int;
    }
    // SAFETY: promised, and these are no ignored statuses.
    unsafe { *to = *from };
    0
}

/// `MPI_File_c2f`
#[unsafe(no_mangle)]
pub(crate) extern "C" fn MPI_File_c2f(file: usize) -> c_int {
    file_toint(file)
}

/// `PMPI_File_c2f`
#[unsafe(no_mangle)]
pub(crate) extern "C" fn PMPI_File_c2f(file: usize) -> c_int {
    file_toint(file)
}

/// `MPI_File_f2c`
#[unsafe(no_mangle)]
pub(crate) extern "C" fn MPI_File_f2c(file: c_int) -> usize {
    file_fromint(file)
}

/// `PMPI_File_f2c`
#[unsafe(no_mangle)]
pub(crate) extern "C" fn PMPI_File_f2c(file: c_int) -> usize {
    file_fromint(file)
}

/// Fortran's MPI_FILE_NULL, in both ABIs.
const FILE_NULL: c_int = 0;

/// A file is a pointer, for which the library has an integer.
pub(crate) fn file_toint(file: usize) -> c_int {
    if file == file_null() {
        return FILE_NULL;
    }
    // SAFETY: any word is an argument of this function.
    unsafe { standard::file_toint(file_in(file)) }
}

pub(crate) fn file_fromint(file: c_int) -> usize {
    if file == FILE_NULL {
        return file_null();
    }
    // SAFETY: any word is an argument of this function.
    file_out(unsafe { standard::file_fromint(file) })
}
