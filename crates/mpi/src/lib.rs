//! MPI semantics in safe Rust: matching, requests, communicators, collectives. No device, no global.
