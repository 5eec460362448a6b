//! Communicators: their data, and the calls that make, change and free them.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::table::Comms;
pub(crate) use machine::table::unknown;
pub use machine::*;
