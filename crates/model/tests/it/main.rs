//! The modelled HCA: what every device promises, and the times that physics and the specification give.

mod common;
mod hca;
mod suite;
