//! `libmpifort.so.12`: MPICH's Fortran names over its ABI of C, for Fortran programs that were
//! built with MPICH or with a library that shares its ABI.
//!
//! Entry points and conversions are those of the binding of the standard ABI. They call
//! `libmpi.so.12`, whose handles, statuses and constants are those of Fortran too.
//!
//! Never here: a list of procedures; a conversion that `fortran` has.

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
