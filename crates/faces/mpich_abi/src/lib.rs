//! `libmpi.so.12`: MPICH's ABI over the standard ABI, for programs that were built with MPICH or
//! with a library that shares its ABI.
//!
//! Every entry point converts its arguments, calls the function of the standard ABI by a pointer
//! that was found in `libmpi_abi.so.1`, and converts the results. It knows nothing of the library
//! behind that ABI. `abi_convert` has what other old ABIs need too.
//!
//! Invariant: no function of MPI is called by name. This library exports the names that the ABI
//! library exports, so a name would lead back here.
//!
//! Never here: knowledge of our own library; names of MPI functions.

mod constants;
mod entry;
mod extensions;
mod program;
mod symbols;
#[cfg(test)]
mod tests;
