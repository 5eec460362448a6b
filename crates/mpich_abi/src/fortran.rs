//! Conversions between handles and statuses of C and Fortran. MPICH has the same integers in both.

use crate::convert::{file_in, file_out};
use crate::standard;
use crate::types::MpichStatus;
use std::ffi::c_int;

macro_rules! identities {
    ($($name:ident $profiled:ident)*) => {$(
        /// The handle is the same integer in C and in Fortran.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(handle: c_int) -> c_int {
            handle
        }

        /// The handle is the same integer in C and in Fortran.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $profiled(handle: c_int) -> c_int {
            handle
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
        pub(crate) unsafe extern "C" fn $name(from: *const MpichStatus, to: *mut MpichStatus) -> c_int {
            // SAFETY: promised.
            unsafe { copy(from, to) }
        }

        /// The status has the same fields in C and in Fortran.
        ///
        /// # Safety
        /// The pointers are those of statuses.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $profiled(from: *const MpichStatus, to: *mut MpichStatus) -> c_int {
            // SAFETY: promised.
            unsafe { copy(from, to) }
        }
    )*};
}

identities! {
    MPI_Comm_c2f PMPI_Comm_c2f MPI_Comm_f2c PMPI_Comm_f2c
    MPI_Errhandler_c2f PMPI_Errhandler_c2f MPI_Errhandler_f2c PMPI_Errhandler_f2c
    MPI_Group_c2f PMPI_Group_c2f MPI_Group_f2c PMPI_Group_f2c
    MPI_Info_c2f PMPI_Info_c2f MPI_Info_f2c PMPI_Info_f2c
    MPI_Message_c2f PMPI_Message_c2f MPI_Message_f2c PMPI_Message_f2c
    MPI_Op_c2f PMPI_Op_c2f MPI_Op_f2c PMPI_Op_f2c
    MPI_Request_c2f PMPI_Request_c2f MPI_Request_f2c PMPI_Request_f2c
    MPI_Session_c2f PMPI_Session_c2f MPI_Session_f2c PMPI_Session_f2c
    MPI_Type_c2f PMPI_Type_c2f MPI_Type_f2c PMPI_Type_f2c
    MPI_Win_c2f PMPI_Win_c2f MPI_Win_f2c PMPI_Win_f2c
}

copies! {
    MPI_Status_c2f PMPI_Status_c2f MPI_Status_f2c PMPI_Status_f2c
    MPI_Status_c2f08 PMPI_Status_c2f08 MPI_Status_f082c PMPI_Status_f082c
    MPI_Status_f2f08 PMPI_Status_f2f08 MPI_Status_f082f PMPI_Status_f082f
}

unsafe fn copy(from: *const MpichStatus, to: *mut MpichStatus) -> c_int {
    if from as usize <= 1 || to as usize <= 1 {
        return crate::constants::mpich::MPI_ERR_ARG as c_int;
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

/// A file is a pointer, for which the library has an integer.
pub(crate) fn file_toint(file: usize) -> c_int {
    // SAFETY: any word is an argument of this function.
    unsafe { standard::file_toint(file_in(file)) }
}

pub(crate) fn file_fromint(file: c_int) -> usize {
    // SAFETY: any word is an argument of this function.
    file_out(unsafe { standard::file_fromint(file) })
}
