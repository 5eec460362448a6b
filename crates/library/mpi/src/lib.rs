//! MPI semantics in safe Rust: matching, requests, communicators, collectives.
//!
//! A [`Rank`] owns everything of a rank; nothing here is global, so a test hosts many ranks in one
//! process. The rank's [`State`] is behind one lock. Operations whose result is known at once are
//! methods of a machine, of [`Objects`] or of `State`; operations that wait are methods of `Rank`,
//! which releases the lock while it waits.
//!
//! Each subject has a folder, its *room*, with two parts: its *machine* (data and what changes
//! them) and its *calls*. Units stand in layers, from the ground up; `tests/it/layers.rs` checks
//! the imports:
//!
//! 1. values: `error`, `status`, `handle`, `matching`, `packet`, `group`, `op`, and the machines of
//!    the rooms, with `algorithms`, which chooses for `coll`;
//! 2. [`state`](State), which owns the machines: those that move messages, and the program's
//!    objects;
//! 3. `rank`, which owns the state, waits and drives operations of several steps;
//! 4. the calls of the rooms, and `program` and `explain`, which have calls only. A call is an
//!    `impl Rank` block or a function.
//!
//! Invariants:
//! - there is one progress function ([`Rank::progress`]), and no lock is held while it runs a
//!   user's function or sleeps;
//! - a handler of packets never waits: what it cannot send now it queues;
//! - messages of one sender on one communicator match in the order in which they were sent.
//!
//! Never here: `unsafe`; devices, keys, wire formats of transports, waiting mechanics; globals.

#![forbid(unsafe_code)]

pub mod algorithms;
pub mod attributes;
pub mod codes;
pub mod coll;
pub mod comm;
mod dims;
pub mod errhandler;
mod error;
mod explain;
pub mod file;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod group;
pub mod handle;
mod hints;
mod matching;
mod message_buffer;
pub mod op;
mod p2p;
mod packet;
mod program;
mod rank;
pub mod request;
pub mod shape;
mod state;
mod status;
pub mod topology;
pub mod types;
pub mod window;

pub use channel::lock::Misuse;
pub use channel::{ProgramCall, VirtualTime};
pub use comm::calls::{Making, RemoteLeader, split_type};
pub use dims::dims_create;
pub use error::{Class, Error, Result};
pub use file::calls::{ViewArguments, ViewFacts};
pub use message_buffer::MessageBuffer;
pub use p2p::buffered;
pub use p2p::calls::Claimed;
pub use p2p::protocol::Protocol;
pub use rank::bootstrap::{NewPeer, Wiring, WorkTimes};
pub use rank::drive::Completion;
pub use rank::{LockedObjects, Rank};
pub use request::generalized::{Answer, Functions};
pub use request::{Mode, Waiting};
pub use state::notes::Notes;
pub use state::{Objects, State};
pub use status::Status;
pub use window::calls::WindowSpec;

/// `MPI_ANY_SOURCE` (MPI 5.0 §3.2.4), with the ABI's value.
pub const ANY_SOURCE: i32 = -1;
/// `MPI_ANY_TAG`, with the ABI's value.
pub const ANY_TAG: i32 = -2;
/// `MPI_PROC_NULL`, with the ABI's value.
pub const PROC_NULL: i32 = -3;
/// `MPI_ROOT`, with the ABI's value.
pub const ROOT: i32 = -4;
/// `MPI_UNDEFINED`, with the ABI's value.
pub const UNDEFINED: i32 = -32766;
/// The largest tag of a user's message, the value of `MPI_TAG_UB`.
pub const TAG_UB: i32 = i32::MAX;
