//! `libmpi_mpifh.so.40`: Open MPI's Fortran names over its C ABI, for Fortran programs that were
//! built with Open MPI 4 or 5. It also has the names of `libmpi_usempi_ignore_tkr.so.40` and of
//! `libmpi_usempif08.so.40`, which are installed as libraries that need this one.
//!
//! Entry points and conversions are those of the Fortran binding of the standard ABI. They call
//! `libmpi.so.40`, which converts its handles from and to Fortran's integers.
//!
//! Never here: a list of procedures; a conversion that the crate `fortran` also has.

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
