//! The names of the recorded procedures, generated from `procedures.txt`.

use std::ffi::CStr;

include!(concat!(env!("OUT_DIR"), "/names.rs"));
