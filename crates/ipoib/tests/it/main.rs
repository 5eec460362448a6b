//! The promises of the kernel's network path on modelled machines.

mod machine;
