//! Files: the data and state machines of MPI files (`machine`), and the calls.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::*;
