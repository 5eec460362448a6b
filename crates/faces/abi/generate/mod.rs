//! The generators of everything that lists procedures or constants, from `procedures.txt`,
//! `removed.txt` and `constants.txt`. The build script and the tests share this folder; the library
//! contains none of it.
//!
//! Invariant: no other list of procedures is written by hand, and each output is a pure
//! function of the tables, so that a test can detect a stale checked-in file.

pub(crate) mod constants;
#[allow(dead_code)] // the build script writes no documents
pub(crate) mod coverage;
pub(crate) mod entry;
#[allow(dead_code)] // nor the header
pub(crate) mod fortran_names;
#[allow(dead_code)] // nor the header
pub(crate) mod header;
pub(crate) mod kinds;
#[allow(dead_code)] // nor the names of what works
pub(crate) mod supported;
pub(crate) mod table;
