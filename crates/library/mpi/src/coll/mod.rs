//! Collective operations: the memory that members share, and the calls.

pub(crate) mod calls;
pub(crate) mod machine;

pub use calls::*;
pub(crate) use machine::*;
