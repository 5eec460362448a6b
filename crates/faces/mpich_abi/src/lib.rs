//! `libmpi.so.12`: MPICH's ABI over the standard ABI, for programs that were built with MPICH or
//! with a library that shares its ABI.
//!
//! Every entry point converts its arguments, calls the function of the standard ABI by a pointer
//! that was found in `libmpi_abi.so.1`, and converts the results. It knows nothing of the library
//! behind that ABI. What other old ABIs need too lies in `old_abi/src/common`.
//!
//! Invariant: no function of MPI is called by name. This library exports the names that the ABI
//! library exports, so a name would lead back here.
//!
//! Never here: knowledge of our own library; names of MPI functions.

#[path = "../../abi_convert/src/mod.rs"]
mod common;
mod extensions;
mod program;
mod symbols;
#[cfg(test)]
mod tests;
