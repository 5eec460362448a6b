//! `libmpi_mpifh.so.40`: Open MPI's Fortran names over its ABI of C, for Fortran programs that were
//! built with Open MPI 4 or 5. It has the names of `libmpi_usempi_ignore_tkr.so.40` and of
//! `libmpi_usempif08.so.40` too, which are installed as libraries that need this one.
//!
//! Entry points and conversions are those of the binding of the standard ABI. They call
//! `libmpi.so.40`, which knows Fortran's integers of its handles.
//!
//! Never here: a list of procedures; a conversion that `fortran` has.

mod generated;
mod program;
