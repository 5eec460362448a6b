//! The functions of the procedures, called by the entry points: one for each procedure, under the
//! standard's name in lower case without `MPI_`. Every module is a subject of the standard.
//!
//! A function gets `&Running` (or `&Call`, if MPI need not run), and its arguments after checks and
//! conversions by the rules of `tables::kinds`:
//!
//! | in C | here |
//! | --- | --- |
//! | a handle | its newtype of `handle` |
//! | int or MPI_Count (MPI_Aint, in displacements) | `i64` |
//! | the length of an array | `usize` |
//! | a logical | `bool` |
//! | `const char *` | `&CStr` |
//! | an array that is read, written, both | `&[T]`, `&mut [MaybeUninit<T>]`, `&mut [T]` |
//! | an array of counts or displacements | `Counts` |
//! | either, of a length that the communicator determines | `CommArray`, `CommCounts`: `with_len` |
//! | a result | `Out<T>`, `OutCount` |
//! | a string that is a result | `OutText` |
//! | a value that is read and written | `&mut T`, `OutCount` |
//! | `MPI_Status *` for a result | `Option<Out<Status>>`, `None` if ignored |
//! | an array of these | `Statuses` |
//! | a message buffer | a raw pointer (MPI_BOTTOM, MPI_IN_PLACE), then a `UserBuffer` |
//! | a user's function with two forms | an enum of `callback` |
//! | a parameter of the `_c` form alone | an `Option` |
//!
//! A function that accesses memory by a raw pointer is an `unsafe fn`.

mod abi;
mod address;
mod attributes;
mod buffered;
mod collectives;
mod comms;
mod completion;
mod counts;
mod environment;
mod errhandlers;
mod errors;
mod failures;
mod files;
mod generalized;
mod graphs;
mod groups;
mod info;
mod init;
mod memory;
mod operations;
mod pack;
mod persistent;
mod probe;
mod receive;
mod removed;
mod request_status;
mod send;
mod sendrecv;
mod status;
mod topology;
mod type_facts;
mod types;
mod windows;

pub use abi::*;
pub use address::*;
pub use attributes::*;
pub use buffered::*;
pub use collectives::*;
pub use comms::*;
pub use completion::*;
pub use counts::*;
pub use environment::*;
pub use errhandlers::*;
pub use errors::*;
pub use files::*;
pub use generalized::*;
pub use graphs::*;
pub use groups::*;
pub use info::*;
pub use init::*;
pub use memory::*;
pub use operations::*;
pub use pack::*;
pub use persistent::*;
pub use probe::*;
pub use receive::*;
pub use removed::*;
pub use request_status::*;
pub use send::*;
pub use sendrecv::*;
pub use status::*;
pub use topology::*;
pub use type_facts::*;
pub use types::*;
pub use windows::*;
