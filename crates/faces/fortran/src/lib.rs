//! `libmpifort_abi.so.1`: the Fortran bindings over the standard ABI.
//!
//! Every entry point takes its arguments by address, converts them, calls the function of the
//! standard ABI by a pointer that was found in `libmpi_abi.so.1`, and converts the results. It
//! knows nothing of the library behind that ABI. The modules `mpi` and `mpi_f08`, which each
//! compiler builds for itself, are interfaces to these entry points.
//!
//! Never here: knowledge of our own library; a special case for a procedure.

/// Entry points, variables and constants, which the generators make of the tables.
///
/// Parameters keep the names and the number that the standard gives them. Conversions are written
/// without regard to each other, so a cast may change nothing, and conditions follow each other.
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
