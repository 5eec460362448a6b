//! `libmpi.so.12`: MPICH's ABI over the standard ABI, for programs that were built with MPICH or
//! with a library that shares its ABI.
//!
//! Every entry point converts its arguments, calls the function of the standard ABI by a pointer
//! that was found in `libmpi_abi.so.1`, and converts the results. It does not depend on the library
//! that implements that ABI. `abi_convert` has the code that other old ABIs share.
//!
//! Invariant: no function of MPI is called by its symbol. This library exports the symbols that the
//! ABI library exports, so such a call would return here.
//!
//! Never here: dependence on our own MPI library; symbols of MPI functions.

mod constants;
mod entry;
mod extensions;
mod program;
mod symbols;
#[cfg(test)]
mod tests;
