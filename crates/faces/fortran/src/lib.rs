//! `libmpifort_abi.so.1`: the Fortran bindings over the standard ABI.
//!
//! Every entry point takes its arguments by address, converts them, calls the function of the
//! standard ABI by a pointer that was found in `libmpi_abi.so.1`, and converts the results. It
//! knows nothing of the library behind that ABI. The modules `mpi` and `mpi_f08`, which each
//! compiler builds for itself, are interfaces to these entry points.
//!
//! Never here: knowledge of our own library; a special case for a procedure.

mod generated;
mod program;
