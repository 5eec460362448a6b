//! Tests of the benchmarks of devices: between two processes, on modelled machines, and of the
//! figures that they show.

mod figures;
mod modelled;
mod remote;
mod sockets;
