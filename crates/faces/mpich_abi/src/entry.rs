//! The entry points, generated from the table of procedures.
//!
//! Functions have the names and the number of parameters of the standard.
#![allow(
    non_snake_case,
    unused_unsafe,
    clippy::too_many_arguments,
    clippy::unnecessary_cast
)]

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
