//! Requests: their table, tasks (operations with several steps), and generalised requests.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::table::Requests;
pub use machine::*;
