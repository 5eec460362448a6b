//! Errors of calls: the types of `mpi`, under the names that this crate uses.

pub use mpi::{Class as ErrorClass, Error};

/// The result of a procedure: nothing, or an error.
pub type Done = Result<(), Error>;
