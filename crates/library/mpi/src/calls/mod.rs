//! MPI procedures that need the whole rank, beside point-to-point and collective communication.
//!
//! The modules below the rank hold data: communicators, datatypes, keys, handlers. Here are the
//! operations that combine them, as methods of `State` where the answer is known at once, and of
//! `Rank` where they wait or run a user's function.

mod agreement;
mod attributes;
mod awaited;
mod buffered;
mod cartesian;
mod comm_create;
mod comm_split;
mod datatypes;
mod errhandler;
mod file_access;
mod file_collective;
mod file_errhandler;
mod file_open;
mod file_pointer;
mod file_round;
mod file_stage;
mod file_state;
mod file_time;
mod file_two_phase;
mod file_view;
mod file_worker;
mod generalized;
mod graphs;
mod intercomm;
mod making;
mod persistent;
mod probe;
mod recv_fast_path;
mod topology_comm;
mod window_create;
mod window_notes;
mod window_progress;
mod window_sync;
mod window_wait;

pub use comm_split::split_type;
pub use file_view::{ViewArguments, ViewFacts};
pub use intercomm::RemoteLeader;
pub use making::Making;
pub use probe::Claimed;
pub use window_create::WindowSpec;
pub use window_notes::Notes;
