//! Figures of limits.

use results::Unit;

/// One figure: a limit at one size.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) size: usize,
    pub(super) unit: Unit,
    pub(super) value: f64,
}
