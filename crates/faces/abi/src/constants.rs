//! The constants of the ABI under the standard's names, generated from `constants.txt`.

use crate::handle::*;
use std::ffi::{c_int, c_void};
use std::ptr::without_provenance_mut;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
