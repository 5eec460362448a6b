//! Integer constants of the standard ABI that conversions need, generated from the table.
#![allow(dead_code)]

use std::ffi::c_int;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
