//! The physics of a fabric: hosts, buses, HCAs, links, cables and switches, and the cost of one
//! transfer on them.
//!
//! A [`System`] is a machine: a tree of components whose values have units. [`Costs`] holds the
//! times of one rail of a system; each time occupies a [`Resource`]. [`explain`](mod@explain) adds
//! up the costs of one message on an idle machine, and [`limits`] computes the highest throughput
//! of each resource.
//!
//! ```
//! # #[cfg(feature = "toml")] {
//! use fabric::{Bytes, Costs, Operation, catalogue::Catalogue, explain};
//!
//! let system = Catalogue::builtin().system("qdr").unwrap();
//! let costs = Costs::of(&system, 0);
//! let steps = explain::explain(&costs, Bytes(8), Operation::Write, system.most_hops());
//! assert_eq!(explain::total(&steps).picos(), 963_715);
//! # }
//! ```
//!
//! Invariants:
//!
//! - Nothing here passes time, uses randomness or touches a file.
//! - Times are whole picoseconds and rates whole bits per second. A system gives the same numbers
//!   on every machine, and sums are exact.
//! - The feature `toml` adds the [`catalogue`], in which every value has its source, and the errors
//!   of predictions ([`accuracy`]). Without it a system arrives compiled ([`System::decode`]).
//!
//! Never here: a clock, I/O.

#![forbid(unsafe_code)]

#[cfg(feature = "toml")]
pub mod accuracy;
pub mod calibrate;
#[cfg(feature = "toml")]
pub mod catalogue;
#[cfg(feature = "toml")]
pub mod collectives;
pub mod components;
pub mod cost;
pub mod curve;
pub mod explain;
pub mod family;
pub mod figures;
pub mod kernel;
pub mod limits;
mod link_name;
pub mod network;
pub mod outputs;
pub mod packet;
pub mod price;
pub mod quantity;
pub mod rails;
pub mod release;
pub mod software;
pub mod storage;
pub mod system;
pub mod units;

pub use components::{Bus, Cable, Hca, Host, Link, Switch};
pub use cost::{Costs, Resource};
pub use curve::Curve;
pub use family::Family;
pub use kernel::Kernel;
pub use link_name::link_name;
pub use network::tree::Tree;
pub use network::{Network, Oversubscription, Routing, Topology};
pub use packet::{Operation, Transport};
pub use price::{Price, PriceGap};
pub use rails::{Rail, Rails};
pub use release::Release;
pub use software::{Software, ZeroCopy};
pub use storage::Storage;
pub use system::System;
pub use units::{Bytes, GbPerSec, Metres, Nanos, PerSec, Ratio};
