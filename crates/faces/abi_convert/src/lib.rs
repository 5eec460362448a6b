//! The conversion of an older ABI of MPI to the standard ABI and back, for libraries whose entry
//! points have the older ABI and call the standard one by pointers. "The program" is the caller of
//! such a library, and "the library" is the library of the standard ABI, which it calls. Everything
//! is generic over [`Abi`], which has the differences among the older ABIs. [`array`] and [`pool`]
//! also serve other bindings.
//!
//! Never here: exported symbols, which belong to a library of entry points; properties of a single
//! ABI.

mod abi;
pub mod array;
pub mod attributes;
pub mod buffers;
pub mod callbacks;
pub mod classes;
pub mod contents;
pub mod convert;
pub mod datarep;
pub mod fortran;
pub mod handle;
mod kept_arrays;
pub mod late_arrays;
pub mod library;
pub mod markers;
mod objects;
pub mod peers;
pub mod pool;
pub mod program_status;
pub mod removed;
mod requests;
pub mod status;
#[cfg(feature = "suite")]
pub mod suite;
pub mod types;

pub use abi::{Abi, Predefined, Word};
pub use classes::Classes;
pub use constants::{Constants, Pairs};
pub use handle::{Class, Handles};

/// The constants of the standard ABI, and those of an older one, generated from the tables.
pub mod constants {
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}

/// The calls of the standard ABI by pointers, generated from the table of procedures.
///
/// Functions have the names and the number of parameters of the standard.
#[allow(clippy::too_many_arguments)]
pub mod standard {
    use crate::library;
    use crate::types::callback;
    use crate::types::standard::*;
    use std::ffi::{CStr, c_char, c_int, c_void};
    use std::mem::transmute;

    include!(concat!(env!("OUT_DIR"), "/standard.rs"));
}
