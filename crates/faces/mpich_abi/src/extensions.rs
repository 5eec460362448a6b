//! Extensions of MPICH by which programs query the support of GPU memory. The standard ABI has no
//! such query, and no library of that ABI accepts GPU memory without one.

use crate::program::Program;
use abi_convert::Constants;
use std::ffi::c_int;

macro_rules! queries {
    ($($name:ident $profiled:ident)*) => {$(
        /// Returns 1 if buffers may lie in the memory of GPUs of this kind, otherwise 0: always 0.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name() -> c_int {
            0
        }

        /// Returns 1 if buffers may lie in the memory of GPUs of this kind, otherwise 0: always 0.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $profiled() -> c_int {
            0
        }
    )*};
}

queries! {
    MPIX_Query_cuda_support PMPIX_Query_cuda_support
    MPIX_Query_ze_support PMPIX_Query_ze_support
    MPIX_Query_hip_support PMPIX_Query_hip_support
}

/// The number of kinds of GPUs: CUDA, Level Zero and HIP, which are numbered from 0.
const KINDS: c_int = 3;

macro_rules! query_support {
    ($($name:ident)*) => {$(
        /// Stores 1 if buffers may lie in the memory of GPUs of a kind, otherwise 0: always 0.
        ///
        /// # Safety
        /// The pointer is NULL or that of an integer.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(kind: c_int, is_supported: *mut c_int) -> c_int {
            if !(0..KINDS).contains(&kind) || is_supported.is_null() {
                return Program::MPI_ERR_ARG as c_int;
            }
            // SAFETY: promised.
            unsafe { *is_supported = 0 };
            Program::MPI_SUCCESS as c_int
        }
    )*};
}

query_support! { MPIX_GPU_query_support PMPIX_GPU_query_support }
