//! Devices for tests, and the tests that every device passes. For development only.
//!
//! Never here: anything that a user runs.

pub mod abilities;
pub mod counted;
pub mod ends;
pub mod layers;
pub mod strict;
pub mod suite;
