//! Tests of the modelled HCA: the suite of all devices, and the times that physics and the
//! specification give.

mod common;
mod hca;
mod layers;
mod suite;
