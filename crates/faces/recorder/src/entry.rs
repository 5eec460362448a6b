//! The entry points of the recorded procedures without large counts, generated from
//! `procedures.txt`. An argument is a word, whatever its type: in the calling conventions of Linux,
//! integers and addresses of all widths travel alike.

// The names are those of C.
#![allow(non_snake_case)]

use std::ffi::c_int;

use crate::process::call;

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
