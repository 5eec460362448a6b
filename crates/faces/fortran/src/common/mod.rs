//! Everything but what one ABI has alone: entry points, and the conversions of their arguments.
//! Each library of entry points compiles it for itself, with its own module `program`.
//!
//! Invariant: no entry point differs from the others by its name; conversions belong to kinds of
//! parameters (`generate/conversion.rs`).
#![allow(dead_code)] // not every library has descriptors

#[path = "../../../abi_convert/src/array.rs"]
mod array;
mod attributes;
mod buffer;
mod callbacks;
pub(crate) mod commons;
pub(crate) mod constants;
mod entry;
pub(crate) mod handle;
mod index;
mod integers;
mod late_types;
pub(crate) mod library;
mod loaded;
mod logical;
mod modules;
mod peers;
#[path = "../../../abi_convert/src/pool.rs"]
mod pool;
pub(crate) mod predefined;
mod removed;
mod requests;
mod sections;
mod spawn;
pub(crate) mod standard;
mod start;
#[cfg(test)]
mod tests;
mod text;
mod types;
