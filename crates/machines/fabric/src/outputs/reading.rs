//! A figure that the output of a benchmark states, and the error of an output that cannot be read.

/// A figure that a benchmark has measured, from its output.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The benchmark that measured the figure, by the name of its command, such as `osu_bw`.
    pub test: &'static str,
    /// The size of the messages, in bytes.
    pub size: u64,
    /// The measured figure, in the unit `unit`.
    pub value: f64,
    /// The unit of the figure.
    pub unit: ReadingUnit,
    /// The number of pairs of processes, one of each pair on either host.
    pub pairs: usize,
    /// The number of the figure's line in the text, counted from 1.
    pub line: usize,
}

/// The unit of a measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingUnit {
    /// A time in microseconds.
    Microseconds,
    /// A rate in millions of bytes per second.
    MegabytesPerSecond,
    /// A rate in millions of messages per second.
    MillionsPerSecond,
}

impl ReadingUnit {
    /// The name of the unit in tables of figures.
    pub fn name(self) -> &'static str {
        match self {
            ReadingUnit::Microseconds => "us",
            ReadingUnit::MegabytesPerSecond => "MB/s",
            ReadingUnit::MillionsPerSecond => "M msg/s",
        }
    }
}

/// The error of a line that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongLine {
    /// The number of the line, counted from 1; 0 means the whole text.
    pub line: usize,
    /// The error of the line, and a description of valid lines.
    pub why: String,
}

impl WrongLine {
    pub(super) fn at(line: usize, why: impl Into<String>) -> WrongLine {
        let why = why.into();
        WrongLine { line, why }
    }
}

/// Checks that a machine may have the value: from 1e-9 to 1e12 in its unit.
pub(super) fn bounded(value: f64) -> Result<f64, String> {
    match (1e-9..=1e12).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value:e} is no figure of a machine")),
    }
}

/// Parses a figure: a number above 0.
pub(super) fn figure(word: &str) -> Result<f64, String> {
    let value = word.parse::<f64>().ok();
    let value = value.filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| format!("{word:?} is no figure; valid is a number above 0"))
}
