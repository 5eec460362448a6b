//! The start of a Fortran program: the ABI library gets the properties of the Fortran compiler.

use crate::abi::Abi;
use crate::handle::{Info, from_integer};
use crate::{logical, standard, symbols};
use std::ffi::{CStr, c_int};

/// The sizes of types, and the supported types, that are common to all compilers whose INTEGER is
/// an int.
const FACTS: &[(&CStr, &CStr)] = &[
    (c"mpi_logical_size", c"4"),
    (c"mpi_integer_size", c"4"),
    (c"mpi_real_size", c"4"),
    (c"mpi_double_precision_size", c"8"),
    (c"mpi_logical1_supported", c"true"),
    (c"mpi_logical2_supported", c"true"),
    (c"mpi_logical4_supported", c"true"),
    (c"mpi_logical8_supported", c"true"),
    (c"mpi_logical16_supported", c"false"),
    (c"mpi_integer1_supported", c"true"),
    (c"mpi_integer2_supported", c"true"),
    (c"mpi_integer4_supported", c"true"),
    (c"mpi_integer8_supported", c"true"),
    (c"mpi_integer16_supported", c"true"),
    (c"mpi_real2_supported", c"false"),
    (c"mpi_real4_supported", c"true"),
    (c"mpi_real8_supported", c"true"),
    (c"mpi_real16_supported", c"true"),
    (c"mpi_complex4_supported", c"false"),
    (c"mpi_complex8_supported", c"true"),
    (c"mpi_complex16_supported", c"true"),
    (c"mpi_complex32_supported", c"true"),
    (c"mpi_double_complex_supported", c"true"),
];

/// A function of each Fortran runtime library whose `.TRUE.` is -1: Intel's and NVIDIA's.
const TRUE_IS_MINUS_ONE: [&CStr; 2] = [c"for_rtl_init_", c"fort_init"];

/// Sets the values of LOGICAL by the Fortran runtime library that the program has loaded.
pub fn guess() {
    let mut names = TRUE_IS_MINUS_ONE.iter();
    let is_minus_one = names.any(|name| !symbols::find(name).is_null());
    logical::set_values([if is_minus_one { -1 } else { 1 }, 0]);
}

/// Sets the values of LOGICAL and the sizes of types in the ABI library, after MPI was started with
/// this code: some libraries do not allow it earlier. Values that are set already stay.
pub fn describe<A: Abi>(code: c_int) {
    if code != A::MPI_SUCCESS {
        return;
    }
    let mut values = logical::values();
    let [yes, no] = values.each_mut().map(|value| (&raw mut *value).cast());
    let size = size_of::<c_int>() as c_int;
    let mut is_set = 0;
    // SAFETY: the addresses are those of logicals and of a flag.
    unsafe {
        let code = standard::abi_get_fortran_booleans::<A, true>(size, yes, no, &mut is_set);
        if code == A::MPI_SUCCESS && is_set == 0 {
            standard::abi_set_fortran_booleans::<A, true>(size, yes, no);
        }
    }
    logical::set_values(values);
    describe_types::<A>();
}

fn describe_types<A: Abi>() {
    let null = from_integer::<A, Info>(A::MPI_INFO_NULL);
    let mut info = null;
    // SAFETY: the addresses are those of handles and of C strings, which the library only reads.
    unsafe {
        if standard::abi_get_fortran_info::<A, true>(&mut info) != A::MPI_SUCCESS {
            return;
        }
        if info != null {
            standard::info_free::<A, true>(&mut info);
            return;
        }
        if standard::info_create::<A, true>(&mut info) != A::MPI_SUCCESS {
            return;
        }
        for (key, value) in FACTS {
            standard::info_set::<A, true>(info, key.as_ptr(), value.as_ptr());
        }
        standard::abi_set_fortran_info::<A, true>(info);
        standard::info_free::<A, true>(&mut info);
    }
}
