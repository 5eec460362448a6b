//! `libmpi.so.40`: Open MPI's ABI over the standard ABI, for programs that were built with Open MPI
//! 4 or 5.
//!
//! Predefined handles are addresses of objects that this library exports. A program that is linked
//! at fixed addresses has copies of these objects, and then the addresses are those of the copies:
//! they are taken when the library is loaded, as any other library would find them.
//!
//! Invariant: no function of MPI is called by name. This library exports the names that the ABI
//! library exports, so a name would lead back here.
//!
//! Never here: knowledge of our own library; names of MPI functions.

mod constants;
mod cxx;
mod entry;
mod predefined;
mod program;
mod symbols;
#[cfg(test)]
mod tests;
