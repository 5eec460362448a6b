//! Chapter 14: files.
//!
//! A collective procedure hands wrong arguments to `mpi` as an error, so that the other ranks of
//! the file get it too; those that the entry point finds come to them by `call_guard`.

mod access;
mod errhandlers;
mod manipulation;
mod pointers;
mod representations;
mod split;
mod views;

pub use access::*;
pub use errhandlers::*;
pub use manipulation::*;
pub use pointers::*;
pub use representations::*;
pub use split::*;
pub use views::*;
