//! Attributes of communicators, datatypes and windows: keys and values, and the calls on them.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::*;
