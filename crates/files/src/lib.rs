//! Files of MPI: which bytes a view names, how they are moved, and the system calls behind it.
//!
//! - [`View`] says where the bytes of a process lie in the file (MPI 5.0 §14.3). It is pure.
//! - [`external`] gives datatypes their layout in files of the representation external32.
//! - [`Transfer`] moves bytes between a buffer and the file, in windows that leave out short gaps.
//! - [`Domains`] divide a file among processes that access it for others.
//! - [`Storage`] opens files, and [`Backing`] is an open one: the few system calls that all else
//!   needs. [`RealStorage`] makes them; `FaultyStorage` fails by a plan, for tests.
//! - [`Counter`] is a number that processes share: the shared file pointer.
//!
//! Nothing here knows ranks, messages or handles.
//!
//! Invariants:
//! - a call that is interrupted or moves fewer bytes than asked for goes on;
//! - bytes that nobody named are rewritten only under a lock on them;
//! - no lock is held when a function returns.

mod backing;
mod counter;
mod domains;
pub mod external;
#[cfg(any(test, feature = "faults"))]
mod faulty;
mod real;
mod transfer;
mod view;
mod windows;

pub use backing::{
    Access, Backing, Lock, OpenMode, Storage, Token, described, read_full, write_all,
};
pub use counter::Counter;
pub use domains::{Domains, joined};
#[cfg(any(test, feature = "faults"))]
pub use faulty::{Call, Fault, FaultyStorage, Injected};
pub use real::RealStorage;
pub use transfer::{Locking, Transfer};
pub use view::{View, ViewError};
pub use windows::{Window, Windows};
