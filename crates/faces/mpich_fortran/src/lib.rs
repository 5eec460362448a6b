//! `libmpifort.so.12`: MPICH's Fortran names over its C ABI, for Fortran programs that were built
//! with MPICH or with a library that shares its ABI.
//!
//! Entry points and conversions are those of the Fortran binding of the standard ABI. They call
//! `libmpi.so.12`, whose handles, statuses and constants are the same in Fortran.
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
