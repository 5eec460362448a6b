//! Files of MPI: the bytes that a view names, their transfer, and the system calls for it.
//!
//! - [`View`] says where the bytes of a process lie in the file (MPI 5.0 §14.3). It is pure.
//! - [`external`] gives datatypes their layout in files of the representation external32.
//! - [`Transfer`] moves bytes between a buffer and the file, in windows that leave out short gaps.
//! - [`Strided`] copies records to and from their offsets among those of others.
//! - [`Domains`] divide a file among processes that access it for others.
//! - [`Storage`] opens files, and [`Backing`] is an open one: the few system calls that all else
//!   needs. [`RealStorage`] makes them; `FaultyStorage` fails by a plan, for tests.
//! - [`CountedStorage`] counts its requests, for virtual time.
//! - [`Counter`] is a number that processes share: the shared file pointer.
//! - [`Worker`] is a thread that accesses files while a rank does something else.
//!
//! Nothing here knows ranks, messages or handles.
//!
//! Invariants:
//! - a system call that is interrupted, or moves fewer bytes than requested, is continued;
//! - bytes in gaps between the data of an access are rewritten only under a lock on them;
//! - no lock is held when a function returns;
//! - the only thread is that of a [`Worker`], and ends with it.
//!
//! Never here: ranks, messages, handles.

mod backing;
mod counted;
mod counter;
mod domains;
pub mod external;
#[cfg(any(test, feature = "faults"))]
mod faulty;
mod real;
mod strided;
mod sync;
mod transfer;
mod view;
mod windows;
mod worker;

pub use backing::{
    Access, Backing, Lock, OpenMode, Storage, Token, described, read_full, write_all,
};
pub use counted::{CountedStorage, Moved, Requests};
pub use counter::Counter;
pub use domains::{Domains, joined};
#[cfg(any(test, feature = "faults"))]
pub use faulty::{Call, Fault, FaultyStorage, Injected};
pub use real::RealStorage;
pub use strided::Strided;
pub use transfer::{Locking, Transfer};
pub use view::{View, ViewError};
pub use windows::{Window, Windows};
pub use worker::{Ticket, Worker};
