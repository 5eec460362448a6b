//! Tests on the RDMA devices of this host. They are ignored by default: `cargo test -- --ignored`
//! runs them, and they fail without a device.

mod devices;
mod iwarp;
mod makers;
mod rails;
mod suite;
