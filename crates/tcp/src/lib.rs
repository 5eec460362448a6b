//! IP networks as rails.

pub mod interfaces;
