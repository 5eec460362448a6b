//! MPI semantics in safe Rust: matching, requests, communicators, collectives.
//!
//! Everything hangs on one [`Rank`]; nothing here is global, so a test hosts many ranks in one process. What a rank
//! owns lies in its [`State`] behind one lock. Functions that can be answered at once are methods of `State`; functions
//! that wait are methods of `Rank`, which gives the lock up while it waits.
//!
//! What must always hold:
//! - there is one progress function ([`Rank::progress`]), and no lock is held while it runs a user's function or sleeps;
//! - a handler of packets never waits: what it cannot send now it queues;
//! - messages of one sender on one communicator match in the order in which they were sent.

#![forbid(unsafe_code)]

mod agreement;
pub mod attributes;
mod bootstrap;
pub mod buffered;
pub mod codes;
pub mod coll;
pub mod comm;
mod comm_create;
mod dims;
pub mod errhandler;
mod error;
pub mod group;
pub mod handle;
mod hints;
mod matching;
pub mod op;
mod p2p;
mod packet;
mod persistent;
mod progress;
mod rank;
mod report;
pub mod request;
mod status;
pub mod task;
pub mod topology;
pub mod types;
mod wait;

pub use bootstrap::Wiring;
pub use comm_create::split_type;
pub use dims::dims_create;
pub use error::{Class, Error, Result};
pub use p2p::protocol::Protocol;
pub use p2p::{Body, Claimed, Found, Mode};
pub use rank::{Rank, State};
pub use status::Status;
pub use wait::Waiting;

/// Source of a receive that takes any (MPI 5.0 §3.2.4); values are the ABI's.
pub const ANY_SOURCE: i32 = -1;
pub const ANY_TAG: i32 = -2;
pub const PROC_NULL: i32 = -3;
pub const ROOT: i32 = -4;
pub const UNDEFINED: i32 = -32766;
/// The largest tag of a user's message.
pub const TAG_UB: i32 = i32::MAX;
