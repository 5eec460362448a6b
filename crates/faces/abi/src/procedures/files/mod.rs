//! Chapter 14: files.
//!
//! A collective procedure passes an error of its arguments to `mpi`, so that the other ranks of the
//! file get it too. Errors that the entry point finds are passed on by `call_guard`.

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
