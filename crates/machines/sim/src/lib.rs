//! Virtual time: events in order, and ranks that take turns.
//!
//! A [`World`] holds the pending events, each rank's clock, and a [`Model`] of everything that the
//! ranks share, which handles the events. Exactly one rank runs at any moment: the rank whose turn
//! it is (the holder of the [`Baton`]). Before it accesses shared state it lets every earlier event
//! and rank go first ([`Turn::settle`]). All shared state is therefore seen in the order of time,
//! and a program gives the same result on any computer, under any load.
//!
//! Ranks are coroutines of one process ([`coroutines`]), or processes ([`process`]). A world has a
//! [`memory`] that processes map at one address. Invariants:
//! - only the rank whose turn it is accesses the world;
//! - nothing in a world points out of it: no reference, no function, no trait object;
//! - events of one time are handled in the order in which they were scheduled, and before the ranks
//!   of that time, which run in order of rank.
//!
//! Never here: the durations of operations and transfers (crate `fabric`).

#[cfg(feature = "coroutines")]
pub mod coroutines;
mod heap;
pub mod log;
pub mod memory;
pub mod process;
mod random;
#[cfg(feature = "coroutines")]
mod stacks;
mod turn;
mod world;

#[cfg(test)]
mod tests;

pub use random::Random;
pub use turn::{Baton, Deadlock, Turn};
pub use world::{Clock, Model, Time, World};
