//! Requests: their table, operations of several steps, and the user's own operations.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::table::Requests;
pub use machine::*;
