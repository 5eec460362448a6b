//! The constants of both ABIs, generated from the tables.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
