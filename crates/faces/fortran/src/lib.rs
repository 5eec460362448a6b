//! `libmpifort_abi.so.1`: the Fortran bindings over the standard ABI.
//!
//! Every entry point gets its arguments by address, converts them, calls the function of the
//! standard ABI by a pointer that was found in `libmpi_abi.so.1`, and converts the results. It does
//! not depend on the library that implements that ABI. The modules `mpi` and `mpi_f08`, which each
//! compiler builds for itself, are interfaces to these entry points.
//!
//! Never here: dependence on our own MPI library; a special case for a procedure.

/// Entry points, variables and constants, generated from the tables.
///
/// Functions have the names and the number of parameters of the standard. Conversions are generated
/// independently of each other, so a cast may have no effect, and conditions may be nested.
#[allow(
    clippy::too_many_arguments,
    clippy::unnecessary_cast,
    clippy::collapsible_if,
    unused_imports,
    unused_unsafe
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}
mod program;
