//! The constants that differ from the standard's, generated from the table.

use crate::program::Program;
use abi_convert::{Constants, Pairs};

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
