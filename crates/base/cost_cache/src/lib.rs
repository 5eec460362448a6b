//! Costs that MPI programs of a user have measured on a host, kept from one job to the next in a
//! file of the user's cache.
//!
//! A cost is a name and the time of a byte by one path. This crate knows neither the paths nor the
//! meaning of the names. A file that is damaged, too long, another user's or of another kind of
//! host counts as absent: costs are measured again, so nothing is lost.

mod file;
mod host;
mod lines;

pub use file::Cache;
pub use host::host_name;
pub use lines::CostLines;
