//! Units of measurements.

/// The unit of a measured value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds, a time.
    Microseconds,
    /// Milliseconds, a time.
    Milliseconds,
    /// Megabytes (10⁶ bytes) per second, a bandwidth.
    MegabytesPerSecond,
    /// Messages per second, a rate.
    MessagesPerSecond,
    /// Kibibytes, an amount of memory.
    Kibibytes,
    /// Percent, a share of a time.
    Percent,
}

impl Unit {
    /// The unit's name in JSON, in ASCII.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::MessagesPerSecond => "msg/s",
            Unit::Kibibytes => "KiB",
            Unit::Percent => "%",
        }
    }

    /// The unit's symbol in headings and on axes.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Microseconds => "µs",
            other => other.name(),
        }
    }

    /// The quantity that has this unit, for the label of an axis.
    pub fn quantity(self) -> &'static str {
        match self {
            Unit::Microseconds | Unit::Milliseconds => "time",
            Unit::MegabytesPerSecond => "bandwidth",
            Unit::MessagesPerSecond => "message rate",
            Unit::Kibibytes => "memory",
            Unit::Percent => "share of the time",
        }
    }

    /// True if a larger value is a better result.
    pub fn more_is_better(self) -> bool {
        matches!(self, Unit::MegabytesPerSecond | Unit::MessagesPerSecond)
    }

    /// The symbol of the unit in which [`table::number`](crate::table::number) shows a value.
    pub fn shown(self) -> &'static str {
        match self {
            Unit::MessagesPerSecond => "M msg/s",
            Unit::Kibibytes => "MiB",
            other => other.symbol(),
        }
    }

    /// `value` converted to the unit of [`shown`](Unit::shown).
    pub fn scaled(self, value: f64) -> f64 {
        match self {
            Unit::MessagesPerSecond => value / 1e6,
            Unit::Kibibytes => value / 1024.0,
            _ => value,
        }
    }
}
