//! Handles of datatypes, and the calls that need more than the table of them.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::*;
