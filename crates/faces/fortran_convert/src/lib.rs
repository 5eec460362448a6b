//! The Fortran bindings over a C ABI: the conversions of all kinds of arguments. Each library of
//! Fortran bindings has generated entry points, and implements the trait [`Abi`] for its ABI.
//!
//! Invariant: no entry point is treated differently because of its name; conversions depend on the
//! kind of a parameter (`parameter` of `fortran_tables`).
//!
//! Never here: exported symbols, except for the macros by which a library defines them.

mod abi;
pub mod attributes;
pub mod buffer;
pub mod callbacks;
pub mod commons;
pub mod entry;
pub mod handle;
pub mod index;
pub mod integers;
pub mod late_types;
pub mod library;
pub mod loaded;
pub mod logical;
mod modules;
pub mod peers;
pub mod predefined;
pub mod removed;
pub mod requests;
pub mod sections;
pub mod spawn;
pub mod start;
pub mod symbols;
#[cfg(test)]
mod tests;
pub mod text;

pub use abi::{Abi, Commons};
pub use constants::Constants;

/// Integer constants of an ABI that conversions need, generated from the table.
mod constants {
    use std::ffi::c_int;

    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}

/// The calls of the C library by pointers, generated from the table of procedures.
///
/// Functions have the names and the number of parameters of the standard.
#[allow(clippy::too_many_arguments)]
pub mod standard {
    use crate::abi::Abi;
    use crate::library;
    use abi_convert::types::callback;
    use std::ffi::{CStr, c_char, c_int, c_void};
    use std::mem::transmute;

    include!(concat!(env!("OUT_DIR"), "/standard.rs"));
}
