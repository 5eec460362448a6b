//! The physics of a fabric: what hosts, buses, HCAs, links, cables and switches are made of, and what one transfer costs
//! on them.
//!
//! [`System`] is a machine: a tree of parts with values in units. [`Costs`] are the times of one rail of it, each charged
//! to a [`Resource`]; [`explain`](mod@explain) adds them up for one message that has the machine to itself, and
//! [`limits`] says what each resource can carry at most.
//!
//! What must always hold: nothing here passes time, draws lots or touches a file. Times are whole picoseconds and rates
//! whole bits a second, so the same system gives the same numbers on any machine, and sums are exact. With the feature
//! `toml` comes the [`catalogue`]: every value of it has its source. Without it a system arrives compiled
//! ([`System::decode`]).

#![forbid(unsafe_code)]

#[cfg(feature = "toml")]
pub mod catalogue;
pub mod components;
pub mod cost;
pub mod explain;
pub mod limits;
pub mod packet;
pub mod quantity;
pub mod system;
pub mod tree;
pub mod units;

pub use components::{Bus, Cable, Hca, Host, Link, Software, Switch};
pub use cost::{Costs, Resource};
pub use packet::{Operation, Transport};
pub use system::System;
pub use tree::Tree;
pub use units::{Bytes, GbPerSec, Metres, Nanos, PerSec, Ratio};
