//! The calls of the standard ABI by pointers, generated from the table of procedures.
//!
//! Functions keep the names and the numbers of parameters that the standard gives them.
#![allow(dead_code, clippy::too_many_arguments, clippy::missing_safety_doc)]

use crate::common::library;
use crate::common::types::callback;
use crate::common::types::standard::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

include!(concat!(env!("OUT_DIR"), "/standard.rs"));
