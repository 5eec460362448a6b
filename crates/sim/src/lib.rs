//! Virtual time: events in order, and ranks that take turns.
//!
//! A [`World`] holds what happens in it: the events to come, each rank's clock, and a [`Model`] of whatever the ranks share,
//! which handles the events. Exactly one rank runs at any moment: the one that holds the baton. Before it touches what is
//! shared it lets everybody who is earlier go first ([`Turn::settle`]), so all that is shared is seen in the order of time,
//! and the same program gives the same result on any machine, at any load.
//!
//! Ranks are coroutines of one process ([`coroutines`]), or processes ([`process`]); a world lives in [`memory`] of its own,
//! which processes map at one address. What must always hold:
//! - only who holds the baton touches the world;
//! - nothing in a world points out of it: no reference, no function, no trait object;
//! - events of one time happen in the order in which they were asked for, and before the ranks of that time, which go by
//!   number.

#[cfg(feature = "coroutines")]
pub mod coroutines;
mod heap;
pub mod log;
pub mod memory;
pub mod process;
mod random;
mod turn;
mod world;

#[cfg(test)]
mod tests;

pub use random::Random;
pub use turn::{Baton, Deadlock, Turn};
pub use world::{Clock, Model, Time, World};
