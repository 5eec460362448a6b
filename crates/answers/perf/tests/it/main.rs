//! Tests of the benchmarks of devices and sockets: between two processes, on modelled machines,
//! with several pairs, and of the figures that they show.

mod figures;
mod meeting;
mod modelled;
mod pairs;
mod remote;
mod sockets;
