//! A network as a graph from a file: switches, their cables, the hosts at their ports, and a table
//! of routes.
//!
//! A system names a graph by the digests of its files, so it stays a few words and has no pointer.
//! The graphs of a process are in a table, which a process fills from files, or from the compiled
//! form that a launcher passes on.

mod cabling;
pub mod compiled;
#[cfg(feature = "toml")]
mod discover;
pub mod files;
mod known;
#[cfg(feature = "toml")]
mod read;
mod routed;
#[cfg(feature = "toml")]
mod routing;
#[cfg(feature = "toml")]
mod tables;
#[cfg(all(test, feature = "toml"))]
mod tests;
mod walk;

pub use cabling::{GraphLink, MOST_HOSTS, MOST_STEPS, MOST_SWITCHES};
pub use known::GraphKey;
pub use routed::{Graph, Names, Rule};
