//! What a number is of.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    MegabytesPerSecond,
    MessagesPerSecond,
    Kibibytes,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::MessagesPerSecond => "msg/s",
            Unit::Kibibytes => "KiB",
        }
    }

    /// For headings and axes.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Microseconds => "µs",
            other => other.name(),
        }
    }

    pub fn quantity(self) -> &'static str {
        match self {
            Unit::Microseconds | Unit::Milliseconds => "time",
            Unit::MegabytesPerSecond => "bandwidth",
            Unit::MessagesPerSecond => "message rate",
            Unit::Kibibytes => "memory",
        }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, Unit::MegabytesPerSecond | Unit::MessagesPerSecond)
    }

    /// The unit in which [`table::number`](crate::table::number) shows a value.
    pub fn shown(self) -> &'static str {
        match self {
            Unit::MessagesPerSecond => "M msg/s",
            Unit::Kibibytes => "MiB",
            other => other.symbol(),
        }
    }

    /// A value in the unit of [`shown`](Unit::shown).
    pub fn scaled(self, value: f64) -> f64 {
        match self {
            Unit::MessagesPerSecond => value / 1e6,
            Unit::Kibibytes => value / 1024.0,
            _ => value,
        }
    }
}
