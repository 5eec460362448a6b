//! Virtual time: events in order, and ranks that take turns.
//!
//! A [`World`] holds the pending events, each rank's clock, and a [`Model`] of everything that the
//! ranks share, which handles the events. Exactly one rank runs at any moment: the holder of the
//! baton. Before it accesses shared state it lets every earlier event and rank go first
//! ([`Turn::settle`]). All shared state is therefore seen in the order of time, and a program gives
//! the same result on any machine, under any load.
//!
//! Ranks are coroutines of one process ([`coroutines`]), or processes ([`process`]). A world has a
//! [`memory`] that processes map at one address. Invariants:
//! - only the holder of the baton accesses the world;
//! - nothing in a world points out of it: no reference, no function, no trait object;
//! - events of one time happen in the order in which they were scheduled, and before the ranks of
//!   that time, which run in order of number.
//!
//! Never here: the cost of anything.

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
