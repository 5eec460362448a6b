//! Shared parts of the tests: ranks that run programs, buffers, operations.

mod buffers;
mod matrices;
pub(crate) mod modelled;
pub(crate) mod random_between;
pub(crate) mod random_collectives;
pub(crate) mod random_program;
pub(crate) mod random_reductions;
pub(crate) mod random_windows;
mod threads;

pub(crate) use buffers::{elements, gapped, out, pattern, room, typed};
pub(crate) use matrices::{matrix_product, multiply};
pub(crate) use threads::{run, run_growing, run_nodes, run_remote, run_shared, run_with};
