//! `libmpifort.so.12`: MPICH's Fortran names over its ABI of C, for Fortran programs that were
//! built with MPICH or with a library that shares its ABI.
//!
//! Entry points and conversions are those of the binding of the standard ABI. They call
//! `libmpi.so.12`, whose handles, statuses and constants are those of Fortran too.
//!
//! Never here: a list of procedures; a conversion that `fortran` has.

mod generated;
mod program;
