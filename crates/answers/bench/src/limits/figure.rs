//! The result of a measurement of the machine's limits: the value of one limit at one size.

use results::Unit;

/// The measured value of one limit of the machine at one size.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) size: usize,
    pub(super) unit: Unit,
    pub(super) value: f64,
}
