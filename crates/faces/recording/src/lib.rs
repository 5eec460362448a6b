//! The recording of a rank's calls as its part of a trace (crate `trace`), for our own library and
//! for those of others.
//!
//! The recorder of a rank ([`Recorder`]) gets the arguments of each call as words of memory, before
//! the call and after it. The [table](RECORDED) of recorded procedures, generated from
//! `procedures.txt`, gives the kind of each argument, by which it becomes a value of the trace. So
//! a procedure needs no code of its own here. The library answers questions about its objects, such
//! as the size of a communicator ([`Library`]).
//!
//! Invariants:
//! - no call is left out: what cannot be recorded makes the part unusable, with the reason;
//! - memory of the program is read only where the standard says that the call reads it, or has
//!   written it.
//!
//! Never here: calls of MPI procedures, files.

mod addresses;
mod capture;
mod facts;
mod handles;
mod lengths;
mod library;
mod plan;
mod recorder;
mod repeats;
pub mod standard;
mod sums;
mod table;
mod wildcards;

pub use capture::View;
pub use facts::without_prefix;
pub use library::{Library, Members, Pair, Topology};
pub use recorder::{Recorder, Sink, StatusMemory};
pub use table::{RECORDED, Recorded};
