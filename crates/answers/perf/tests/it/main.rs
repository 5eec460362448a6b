//! Tests of the benchmarks of devices: between two processes, on modelled machines, of several
//! pairs, and of the figures that they show.

mod figures;
mod meeting;
mod modelled;
mod pairs;
mod remote;
mod sockets;
