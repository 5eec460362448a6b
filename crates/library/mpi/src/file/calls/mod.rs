//! Calls on files (MPI 5.0 §14).

mod access;
mod collective;
mod errhandler;
mod open;
mod plan;
mod pointer;
mod round;
mod stage;
mod state;
mod time;
mod two_phase;
mod view;
mod window_access;
mod worker;

pub use view::{ViewArguments, ViewFacts};
