//! `libmpifort_abi.so.1`: the Fortran bindings over the standard ABI.
//!
//! Every entry point takes its arguments by address, converts them, calls the function of the
//! standard ABI by a pointer that was found in `libmpi_abi.so.1`, and converts the results. It
//! knows nothing of the library behind that ABI. The modules `mpi` and `mpi_f08`, which each
//! compiler builds for itself, are interfaces to these entry points.
//!
//! Invariant: no entry point differs from the others by its name; conversions belong to kinds of
//! parameters (`generate/conversion.rs`).

#[path = "../../old_abi/src/common/array.rs"]
mod array;
mod attributes;
mod buffer;
mod callbacks;
mod commons;
mod constants;
mod entry;
mod handle;
mod index;
mod integers;
mod late_types;
mod library;
mod logical;
mod peers;
#[path = "../../old_abi/src/common/pool.rs"]
mod pool;
mod predefined;
mod removed;
mod requests;
mod sections;
mod spawn;
mod standard;
mod start;
#[cfg(test)]
mod tests;
mod text;
mod types;
