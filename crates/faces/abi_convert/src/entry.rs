//! The entry points, generated from the table of procedures.
//!
//! Functions keep the names and the numbers of parameters that the standard gives them.
#![allow(non_snake_case, clippy::too_many_arguments, clippy::unnecessary_cast)]

use crate::common::array::Array;
use crate::common::classes::{
    self, COMM, DATATYPE, ERRHANDLER, GROUP, INFO, MESSAGE, OP, REQUEST, SESSION, WIN,
};
use crate::common::handle::Handles;
use crate::common::late_arrays::LateArrays;
use crate::common::types::StandardStatus;
use crate::common::types::callback;
use crate::common::types::program::*;
use crate::common::{
    attributes, buffers, callbacks, constants, contents, convert, datarep, fortran, markers, peers,
    standard, status,
};
use std::ffi::{c_char, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
