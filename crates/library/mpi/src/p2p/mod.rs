//! Messages between two ranks: the machine that moves them, and the calls.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::buffered;
pub(crate) use machine::*;
