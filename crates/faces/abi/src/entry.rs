//! The exported procedures, generated from `procedures.txt` of `tables` by its module `entry`.

// `unused_unsafe`: all entry points have `unsafe` blocks, and some of them need none.
#![allow(non_snake_case, unused_unsafe, clippy::all)]

use crate::args::{self, Flag};
use crate::buffer::UserBuffer;
use crate::call_guard;
use crate::callback;
use crate::constants::*;
use crate::handle::*;
use crate::object::Object;
use crate::procedures;
use crate::status::Status;
use std::ffi::{c_char, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
