//! Topologies of communicators: grids and graphs, and the calls that make them.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::*;
