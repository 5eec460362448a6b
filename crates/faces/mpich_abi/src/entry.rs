//! The entry points, generated from the table of procedures.
//!
//! Functions keep the names and the numbers of parameters that the standard gives them.
#![allow(
    non_snake_case,
    unused_unsafe,
    clippy::too_many_arguments,
    clippy::unnecessary_cast
)]

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
