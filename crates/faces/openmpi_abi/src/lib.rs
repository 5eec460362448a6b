//! `libmpi.so.40`: Open MPI's ABI over the standard ABI, for programs that were built with Open MPI
//! 4 or 5.
//!
//! Predefined handles are addresses of objects that this library exports. A program that is linked
//! at fixed addresses has copies of these objects, and the handles are the addresses of the copies.
//! So the addresses are determined when the library is loaded, by the symbols, as in any other
//! library.
//!
//! Invariant: no function of MPI is called by its symbol. This library exports the symbols that the
//! ABI library exports, so such a call would return here.
//!
//! Never here: dependence on our own MPI library; symbols of MPI functions.

mod constants;
mod cxx;
mod entry;
mod predefined;
mod program;
mod symbols;
#[cfg(test)]
mod tests;
