//! Datatypes: the table of their handles, and the calls that also need other state of the rank.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::*;
