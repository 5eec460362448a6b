//! Files: what MPI says of them, and the calls.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::*;
