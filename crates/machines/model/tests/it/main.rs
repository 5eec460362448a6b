//! Tests of the modelled HCA: the suite of all devices, and the times that the cost formulas and
//! the specification give.

mod common;
mod hca;
mod layers;
mod suite;
