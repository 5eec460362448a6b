//! The properties in which the C ABIs under Fortran's bindings differ, as the trait [`Abi`].

use crate::commons::Special;
use crate::constants::Constants;
use crate::handle::Class;
use abi_convert::Word;
use std::ffi::{CStr, c_int, c_void};

/// A C ABI, and a library of Fortran entry points over it.
pub trait Abi: Commons + Constants + Sized + 'static {
    /// A handle in C of any class except files, whose handles are pointers.
    type Handle: Word;

    /// A status, which has the same layout in C and in Fortran.
    type Status: Copy + 'static;

    /// The name of the library of Fortran entry points, which programs need.
    const LIBRARY: &'static str;

    /// The name of the C library that it calls.
    const C_LIBRARY: &'static str;

    /// MPI_IN_PLACE in C.
    const IN_PLACE: *mut c_void;

    /// MPI_BUFFER_AUTOMATIC in C.
    const AUTOMATIC: *mut c_void;

    /// C's address for ignored statuses.
    const STATUS_IGNORE: usize;

    /// Symbols of Fortran functions that mean "no conversion" of a data representation.
    const NO_CONVERSION: &'static [&'static CStr];

    /// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY in C.
    fn weights() -> [*mut c_int; 2];

    /// C's key of a predefined attribute for Fortran's key.
    #[inline(always)]
    fn keyval(keyval: c_int) -> c_int {
        keyval
    }

    /// Informs the C library of the addresses of Fortran's variables, when this library is loaded.
    fn open();

    /// True if the datatype is predefined.
    fn is_predefined(datatype: Self::Handle) -> bool;

    /// The handle in C for a Fortran handle.
    fn from_integer<C: Class<Self>>(integer: c_int) -> C::Handle;

    /// True if `known` converts this Fortran handle without a call.
    fn is_known<C: Class<Self>>(integer: c_int) -> bool;

    /// C's handle for a Fortran handle for which `is_known` is true.
    fn known<C: Class<Self>>(integer: c_int) -> C::Handle;

    /// The handle in Fortran for a C handle.
    fn to_integer<C: Class<Self>>(handle: C::Handle) -> c_int;
}

/// The variables of a library that are recognised by their addresses. The module `commons` of
/// `fortran_tables` generates the implementation.
pub trait Commons {
    /// The special meaning of a choice buffer, if its address is that of one of the variables.
    fn special<T>(address: *const T) -> Option<Special>;

    /// True if the address is that of MPI_STATUS_IGNORE.
    fn is_mpi_status_ignore<T>(address: *const T) -> bool;

    /// True if the address is that of MPI_STATUSES_IGNORE.
    fn is_mpi_statuses_ignore<T>(address: *const T) -> bool;

    /// True if the address is that of MPI_ERRCODES_IGNORE.
    fn is_mpi_errcodes_ignore<T>(address: *const T) -> bool;

    /// True if the address is that of MPI_ARGVS_NULL.
    fn is_mpi_argvs_null<T>(address: *const T) -> bool;

    /// True if the address is that of MPI_ARGV_NULL.
    fn is_mpi_argv_null<T>(address: *const T) -> bool;

    /// True if the address is that of MPI_UNWEIGHTED.
    fn is_mpi_unweighted<T>(address: *const T) -> bool;

    /// True if the address is that of MPI_WEIGHTS_EMPTY.
    fn is_mpi_weights_empty<T>(address: *const T) -> bool;

    /// The address of MPI_BUFFER_AUTOMATIC that the program most probably uses.
    fn automatic() -> usize;

    /// The address of MPI_STATUS_IGNORE in the block with the first symbol.
    fn status_ignore() -> usize;

    /// The address of MPI_STATUSES_IGNORE in the block with the first symbol.
    fn statuses_ignore() -> usize;

    /// Finds the addresses of the variables.
    ///
    /// # Safety
    /// The caller is `library::open`.
    unsafe fn find();
}
