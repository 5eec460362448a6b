//! Tests of the command as a user runs it.
//!
//! Those of `bench` also need the tree that `make stage` makes.

mod arguments;
mod bench;
mod common;
mod ends;
mod explain;
mod fabric;
mod habits;
mod kept_costs;
mod perf;
mod placements;
mod predicted;
mod progress;
mod secret;
mod signals;
mod space;
mod streams;
mod summary;
mod terminal;
mod traces;
mod width;
mod wrappers;
