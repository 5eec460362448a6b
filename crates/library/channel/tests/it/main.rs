//! Tests of the crate's sources.

mod layers;
