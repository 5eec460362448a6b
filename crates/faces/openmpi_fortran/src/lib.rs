//! `libmpi_mpifh.so.40`: Open MPI's Fortran names over its ABI of C, for Fortran programs that were
//! built with Open MPI 4 or 5. It has the names of `libmpi_usempi_ignore_tkr.so.40` and of
//! `libmpi_usempif08.so.40` too, which are installed as libraries that need this one.
//!
//! Entry points and conversions are those of the binding of the standard ABI. They call
//! `libmpi.so.40`, which knows Fortran's integers of its handles.
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
