//! Calls that make communicators with a topology and look at them (MPI 5.0 §8).

mod cartesian;
mod graphs;
mod make;
