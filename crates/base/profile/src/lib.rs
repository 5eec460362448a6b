//! The profile of a job: for each rank its time in each MPI procedure, its messages by size, and
//! its messages by peer.
//!
//! The launcher makes one file of memory for the job ([`create`]). Each rank writes to its own part
//! while it runs ([`RankProfile`]), so a rank that is killed leaves what it has counted. After the
//! job the launcher reads the file ([`read`]) and sums it up ([`Summary`]).
//!
//! Invariants:
//! - a rank without a profile pays nothing;
//! - a rank's part is bounded, whatever the number of its peers and calls;
//! - any program may have written to the file, so its reader trusts nothing in it.
//!
//! Never here: printing.

mod layout;
mod left_out;
mod rank;
mod read;
mod summary;
mod transfer;

pub use layout::{MOST_PEERS, MOST_PROCEDURES, MOST_RAILS, create};
pub use left_out::LeftOut;
pub use rank::RankProfile;
pub use read::{Counted, PeerTraffic, Procedure, RankRecord, SizeClass, State, read};
pub use summary::{
    JobFacts, Messages, Pair, ProcedureUse, RankComputing, RankTimes, ResourceUse, Shares,
    Strangers, Summary,
};
pub use transfer::{pieces, put_piece};
