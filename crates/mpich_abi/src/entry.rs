//! The entry points, generated from the table of procedures.
//!
//! Functions keep the names and the numbers of parameters that the standard gives them.
#![allow(non_snake_case, clippy::too_many_arguments, clippy::unnecessary_cast)]

use crate::array::Array;
use crate::classes::{
    self, COMM, DATATYPE, ERRHANDLER, GROUP, INFO, MESSAGE, OP, REQUEST, SESSION, WIN,
};
use crate::late_arrays::LateArrays;
use crate::types::StandardStatus;
use crate::types::callback;
use crate::types::mpich::*;
use crate::{
    attributes, buffers, callbacks, constants, contents, convert, fortran, peers, standard, status,
};
use std::ffi::{c_char, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
