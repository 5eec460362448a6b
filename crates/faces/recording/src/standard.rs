//! The constants of the standard ABI, generated from `constants.txt` of `tables`.

#![allow(missing_docs, non_upper_case_globals)]

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
