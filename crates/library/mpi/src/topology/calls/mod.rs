//! Calls that make communicators with a topology and read their topologies (MPI 5.0 §8).

mod cartesian;
mod graphs;
mod make;
