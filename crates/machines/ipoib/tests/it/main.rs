//! Tests of the kernel's network path: of TCP and UDP alone, and on modelled machines.

mod machine;
mod tcp;
mod udp;
