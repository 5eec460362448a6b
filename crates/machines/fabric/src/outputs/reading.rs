//! A figure of a line, and the fault of a line that has none.

/// A figure of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The tool that measured it, by the name of its command, such as `osu_bw`.
    pub test: &'static str,
    /// The size of a message, in bytes.
    pub size: u64,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: ReadingUnit,
    /// Pairs of processes between two hosts.
    pub pairs: usize,
    /// The line of the output, counted from 1.
    pub line: usize,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingUnit {
    /// Microseconds.
    Microseconds,
    /// Millions of bytes in a second.
    MegabytesPerSecond,
    /// Millions of messages in a second.
    MillionsPerSecond,
}

impl ReadingUnit {
    /// The name in tables of figures.
    pub fn name(self) -> &'static str {
        match self {
            ReadingUnit::Microseconds => "us",
            ReadingUnit::MegabytesPerSecond => "MB/s",
            ReadingUnit::MillionsPerSecond => "M msg/s",
        }
    }
}

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongLine {
    /// The line, counted from 1; 0: the whole text.
    pub line: usize,
    /// The fault, and what is valid.
    pub why: String,
}

impl WrongLine {
    pub(super) fn at(line: usize, why: impl Into<String>) -> WrongLine {
        let why = why.into();
        WrongLine { line, why }
    }
}

/// A value that a machine may have: above nothing, and below a million gigabytes or seconds.
pub(super) fn bounded(value: f64) -> Result<f64, String> {
    match (1e-9..=1e12).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value:e} is no figure of a machine")),
    }
}

/// A figure: a number above 0.
pub(super) fn figure(word: &str) -> Result<f64, String> {
    let value = word.parse::<f64>().ok();
    let value = value.filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| format!("{word:?} is no figure; valid is a number above 0"))
}
