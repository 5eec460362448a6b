//! Tests on the RDMA devices of this host. They are ignored where none are asked for: `cargo test -- --ignored` runs them,
//! and they fail where there is no device.

mod devices;
mod iwarp;
mod makers;
mod suite;
