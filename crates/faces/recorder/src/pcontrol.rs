//! MPI_Pcontrol, whose level marks the phases of the program. It has any number of arguments, so it
//! is none of the recorded procedures.

// The names are those of C.
#![allow(non_snake_case)]

use std::ffi::{CStr, c_int};

use crate::original::{invoke, named};
use crate::process::control;

/// Calls the function with this name, if the library or a tool has it, and records the level, which
/// is the first word.
fn at_level(name: &CStr, words: [u64; 6]) -> c_int {
    control(words[0] as c_int, || match named(name) {
        // SAFETY: a function with this name reads an integer, and further arguments only if the
        // level, which is a tool's own, says that they exist.
        Some(function) => unsafe { invoke(function, &words) },
        None => 0,
    })
}

macro_rules! entries {
    ($($name:ident $text:literal $about:literal;)*) => {$(
        #[doc = $about]
        /// A caller passes the first arguments of a function with any number of them as those of
        /// other functions, in the calling conventions of Linux: so five more reach a tool, if
        /// they are integers or addresses.
        #[unsafe(no_mangle)]
        extern "C" fn $name(level: u64, a: u64, b: u64, c: u64, d: u64, e: u64) -> c_int {
            at_level($text, [level, a, b, c, d, e])
        }
    )*};
}

entries! {
    MPI_Pcontrol c"MPI_Pcontrol" "`MPI_Pcontrol` (MPI 5.0, chapter 15).";
    PMPI_Pcontrol c"PMPI_Pcontrol" "`PMPI_Pcontrol` (MPI 5.0, chapter 15), which Fortran libraries call.";
}
