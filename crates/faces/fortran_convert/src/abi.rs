//! The differences among the ABIs of C that Fortran's bindings call.

use crate::commons::Special;
use crate::constants::Constants;
use crate::handle::Class;
use abi_convert::Word;
use std::ffi::{CStr, c_int, c_void};

/// An ABI of C, and the library of entry points over it.
pub trait Abi: Commons + Constants + Sized + 'static {
    /// A handle in C of every class but files, which are pointers.
    type Handle: Word;

    /// A status: the same words in C and in Fortran.
    type Status: Copy + 'static;

    /// The name by which programs need the library of entry points.
    const LIBRARY: &'static str;

    /// The library of C that it calls.
    const C_LIBRARY: &'static str;

    /// MPI_IN_PLACE in C.
    const IN_PLACE: *mut c_void;

    /// MPI_BUFFER_AUTOMATIC in C.
    const AUTOMATIC: *mut c_void;

    /// The address of statuses that are ignored.
    const STATUS_IGNORE: usize;

    /// Symbols of functions that stand for no conversion of a data representation.
    const NO_CONVERSION: &'static [&'static CStr];

    /// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY in C.
    fn weights() -> [*mut c_int; 2];

    /// C's key of an attribute for Fortran's.
    #[inline(always)]
    fn keyval(keyval: c_int) -> c_int {
        keyval
    }

    /// Tells the C library what Fortran's variables are, when the library is loaded.
    fn open();

    /// The datatype is a predefined one.
    fn is_predefined(datatype: Self::Handle) -> bool;

    /// C's handle for Fortran's.
    fn from_integer<C: Class<Self>>(integer: c_int) -> C::Handle;

    /// `known` converts the integer, without a call.
    fn is_known<C: Class<Self>>(integer: c_int) -> bool;

    /// C's handle for Fortran's, for which `is_known` is true.
    fn known<C: Class<Self>>(integer: c_int) -> C::Handle;

    /// Fortran's handle for C's.
    fn to_integer<C: Class<Self>>(handle: C::Handle) -> c_int;
}

/// The variables of a library that are recognised by their addresses. `commons` of `fortran_tables`
/// generates it.
pub trait Commons {
    /// The meaning of a choice buffer that is one of the variables.
    fn special<T>(address: *const T) -> Option<Special>;

    /// An address is that of MPI_STATUS_IGNORE.
    fn is_mpi_status_ignore<T>(address: *const T) -> bool;

    /// An address is that of MPI_STATUSES_IGNORE.
    fn is_mpi_statuses_ignore<T>(address: *const T) -> bool;

    /// An address is that of MPI_ERRCODES_IGNORE.
    fn is_mpi_errcodes_ignore<T>(address: *const T) -> bool;

    /// An address is that of MPI_ARGVS_NULL.
    fn is_mpi_argvs_null<T>(address: *const T) -> bool;

    /// An address is that of MPI_ARGV_NULL.
    fn is_mpi_argv_null<T>(address: *const T) -> bool;

    /// An address is that of MPI_UNWEIGHTED.
    fn is_mpi_unweighted<T>(address: *const T) -> bool;

    /// An address is that of MPI_WEIGHTS_EMPTY.
    fn is_mpi_weights_empty<T>(address: *const T) -> bool;

    /// The address of MPI_BUFFER_AUTOMATIC that the program most probably names.
    fn automatic() -> usize;

    /// The address of MPI_STATUS_IGNORE in the block whose symbol comes first.
    fn status_ignore() -> usize;

    /// The address of MPI_STATUSES_IGNORE in the block whose symbol comes first.
    fn statuses_ignore() -> usize;

    /// Finds the variables.
    ///
    /// # Safety
    /// The caller is `library::open`.
    unsafe fn find();
}
