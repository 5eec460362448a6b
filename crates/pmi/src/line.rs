//! The lines on the socket between a rank and its launcher, for both ends.

use std::fmt;
use std::str::FromStr;

/// The longest line. What is longer is cut, so that a rank cannot make its launcher hold more.
pub const LINE_LIMIT: usize = 4096;

/// The longest packet: a few lines, far below what a socket's buffer holds.
pub(crate) const PACKET_LIMIT: usize = 4 * LINE_LIMIT;

/// What a rank says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRank {
    /// `init PID`: it is through MPI_Init.
    Init { pid: u32 },
    /// `finalize`: it is through MPI_Finalize.
    Finalize,
    /// `abort CODE MESSAGE`: it wants the job to end.
    Abort { code: i32, message: String },
    /// `fault TEXT`: a fatal error is about to end it.
    Fault { text: String },
    /// `status TEXT`: a line of its [`Status`](crate::Status).
    Status { text: String },
    /// `status-end`: that was all of the status.
    StatusEnd,
    /// `put KEY VALUE`: into the job's key-value space.
    Put { key: String, value: String },
    /// `get KEY`: it wants that value, now or when there is one.
    Get { key: String },
}

/// What a launcher says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromLauncher {
    /// `report`: say what you wait for.
    Report,
    /// `value KEY VALUE`: the answer to a `get`.
    Value { key: String, value: String },
}

impl fmt::Display for FromRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FromRank::Init { pid } => write!(f, "init {pid}"),
            FromRank::Finalize => write!(f, "finalize"),
            FromRank::Abort { code, message } => write!(f, "abort {code} {}", one_line(message)),
            FromRank::Fault { text } => write!(f, "fault {}", one_line(text)),
            FromRank::Status { text } => write!(f, "status {}", one_line(text)),
            FromRank::StatusEnd => write!(f, "status-end"),
            FromRank::Put { key, value } => write!(f, "put {key} {value}"),
            FromRank::Get { key } => write!(f, "get {key}"),
        }
    }
}

impl FromStr for FromRank {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, rest) = line
            .trim_end()
            .split_once(' ')
            .unwrap_or((line.trim_end(), ""));
        let text = || one_line(rest.trim());
        Ok(match word {
            "init" => FromRank::Init {
                pid: rest.trim().parse().map_err(drop)?,
            },
            "finalize" => FromRank::Finalize,
            "abort" => {
                let (code, message) = rest.split_once(' ').unwrap_or((rest, ""));
                FromRank::Abort {
                    code: code.parse().map_err(drop)?,
                    message: one_line(message.trim()),
                }
            }
            "fault" => FromRank::Fault { text: text() },
            "status" => FromRank::Status { text: text() },
            "status-end" => FromRank::StatusEnd,
            "put" => {
                let (key, value) = key_and_value(rest);
                FromRank::Put { key, value }
            }
            "get" => FromRank::Get { key: rest.into() },
            _ => return Err(()),
        })
    }
}

impl fmt::Display for FromLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FromLauncher::Report => write!(f, "report"),
            FromLauncher::Value { key, value } => write!(f, "value {key} {value}"),
        }
    }
}

impl FromStr for FromLauncher {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let line = line.trim_end();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("report", _) => Ok(FromLauncher::Report),
            ("value", rest) => {
                let (key, value) = key_and_value(rest);
                Ok(FromLauncher::Value { key, value })
            }
            _ => Err(()),
        }
    }
}

/// A value may be empty. What is wrong with either is found where they are used, so that it can be told.
fn key_and_value(text: &str) -> (String, String) {
    let (key, value) = text.split_once(' ').unwrap_or((text, ""));
    (key.into(), value.into())
}

/// Lines, gathered into packets of whole lines.
pub(crate) fn packets(lines: &[FromRank]) -> Vec<String> {
    let mut packets = vec![String::new()];
    for line in lines {
        let mut line = line.to_string();
        while line.len() >= LINE_LIMIT {
            line.pop();
        }
        line.push('\n');
        match packets.last_mut() {
            Some(last) if last.len() + line.len() <= PACKET_LIMIT => last.push_str(&line),
            _ => packets.push(line),
        }
    }
    packets
}

/// Text that stays on one line, and does nothing to a terminal.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    lines
        .join(" ")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
