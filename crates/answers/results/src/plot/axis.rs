//! An axis of a plot: its quantity, its unit, and the texts of its values.

use crate::sizes::size_label;
use crate::stats::round_to;
use crate::ticks::plain;

/// An axis of a plot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axis {
    /// The quantity that the axis shows.
    pub label: String,
    /// The symbol of the unit. Values in `B` on a logarithmic axis are shown as sizes, such as 4
    /// KiB.
    pub unit: String,
    /// True if the axis is logarithmic. Values that are not above 0 cannot be drawn on such an axis
    /// and are omitted.
    pub log2: bool,
    /// The names of the values 0, 1, 2 and so on, if the axis has names instead of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// A logarithmic axis of sizes in bytes.
    pub fn sizes(label: impl Into<String>) -> Axis {
        Axis::logarithmic(label, "B")
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis {
            log2: true,
            ..Axis::linear(label, unit)
        }
    }

    /// A linear axis.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            unit: unit.into(),
            ..Axis::default()
        }
    }

    /// An axis with names instead of numbers, at the positions 0, 1, 2 and so on.
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Axis {
        Axis {
            names,
            ..Axis::linear(label, "")
        }
    }

    /// The label with the unit, unless the ticks have units themselves.
    pub fn title(&self) -> String {
        match self.unit.is_empty() || self.has_sizes() {
            true => self.label.clone(),
            false => format!("{}, {}", self.label, self.unit),
        }
    }

    /// True if the ticks are sizes with units, such as 4 KiB.
    pub fn has_sizes(&self) -> bool {
        self.unit == "B" && self.log2
    }

    /// True if the value has a position on the axis.
    pub fn has_place(&self, value: f64) -> bool {
        value.is_finite() && (value > 0.0 || !self.log2)
    }

    /// The text of an axis tick at this value.
    pub fn tick(&self, value: f64) -> String {
        let name = self.names.get(value as usize).filter(|_| value >= 0.0);
        match name {
            Some(name) => name.clone(),
            None if self.has_sizes() => size_label(value.round() as usize),
            None => plain(value),
        }
    }

    /// The text of a value: four significant digits with the unit.
    pub fn text(&self, value: f64) -> String {
        match self.has_sizes() || !self.names.is_empty() {
            true => self.tick(value),
            false if self.unit.is_empty() => round_to(value, 4).to_string(),
            false => format!("{} {}", round_to(value, 4), self.unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_their_units() {
        assert_eq!(Axis::sizes("size").text(3072.0), "3 KiB");
        assert_eq!(Axis::linear("bandwidth", "MB/s").text(5827.43), "5827 MB/s");
        let named = Axis::named("machine", vec!["qdr".into(), "fdr".into()]);
        assert_eq!(
            (named.tick(1.0), named.title()),
            ("fdr".into(), "machine".into())
        );
    }
}
