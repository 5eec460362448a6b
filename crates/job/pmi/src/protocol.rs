//! The protocol of the control socket: the lines that a rank and its launcher send each other.

use std::fmt;
use std::str::FromStr;

use crate::unsupported::is_procedure;

/// The length of the longest line, in bytes. A longer one is cut off, which bounds the launcher's
/// memory for a rank.
pub const LINE_LIMIT: usize = 4096;

/// The length of the longest packet, in bytes: a few lines, far less than the buffer of a socket.
pub(crate) const PACKET_LIMIT: usize = 4 * LINE_LIMIT;

/// A line from a rank to its launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRank {
    /// `init PID`: the rank has completed MPI_Init.
    Init {
        /// The process ID of the program. It differs from that of the rank's process if a wrapper
        /// started the program.
        pid: u32,
    },
    /// `lock ADDRESS`: the rank's lock is at this address. The value there is odd while the rank is
    /// in MPI.
    Lock {
        /// The address of the lock in the memory of the program.
        address: u64,
    },
    /// `finalize`: the rank has completed MPI_Finalize.
    Finalize,
    /// `abort CODE MESSAGE`: the rank requests the end of the job.
    Abort {
        /// The exit code of the job.
        code: i32,
        /// The reason, as the program gave it.
        message: String,
    },
    /// `warning TOPIC TEXT`: a warning that is shown to the user once for each topic.
    Warning {
        /// The topic of the warning, without spaces.
        topic: String,
        /// The text of the warning.
        text: String,
    },
    /// `unsupported PROCEDURE`: the program has called a procedure that the library lacks.
    Unsupported {
        /// The name of the procedure, such as `MPI_File_open`.
        procedure: String,
    },
    /// `fault CODE TEXT`: a fatal error ends the rank, and so the job.
    Fault {
        /// The exit code of the job.
        code: i32,
        /// The text of the error.
        text: String,
    },
    /// `status TEXT`: one line of the rank's [`RankStatus`](crate::RankStatus).
    Status {
        /// The line of the status.
        text: String,
    },
    /// `status-end`: the status is complete.
    StatusEnd,
    /// `deadlock`: the ranks of the modelled machine are in a deadlock, and the status before this
    /// line is this rank's.
    Deadlock,
    /// `put KEY VALUE`: store this value in the job's key-value store.
    Put {
        /// The key to store under.
        key: String,
        /// The value, possibly empty.
        value: String,
    },
    /// `get KEY`: send the value of this key as soon as a rank has put it.
    Get {
        /// The requested key.
        key: String,
    },
    /// `fence`: the rank has entered a fence.
    Fence,
}

/// A line from a launcher to a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromLauncher {
    /// `report`: a request for the rank's status.
    Report,
    /// `value KEY VALUE`: the reply to a `get`.
    Value {
        /// The requested key.
        key: String,
        /// The value of the key.
        value: String,
    },
    /// `fence`: all ranks have entered the fence that this rank entered last.
    Fence,
}

impl fmt::Display for FromRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FromRank::Init { pid } => write!(f, "init {pid}"),
            FromRank::Lock { address } => write!(f, "lock {address}"),
            FromRank::Finalize => write!(f, "finalize"),
            FromRank::Abort { code, message } => write!(f, "abort {code} {}", one_line(message)),
            FromRank::Warning { topic, text } => write!(f, "warning {topic} {}", one_line(text)),
            FromRank::Unsupported { procedure } => write!(f, "unsupported {procedure}"),
            FromRank::Fault { code, text } => write!(f, "fault {code} {}", one_line(text)),
            FromRank::Status { text } => write!(f, "status {}", one_line(text)),
            FromRank::StatusEnd => write!(f, "status-end"),
            FromRank::Deadlock => write!(f, "deadlock"),
            FromRank::Put { key, value } => write!(f, "put {key} {value}"),
            FromRank::Get { key } => write!(f, "get {key}"),
            FromRank::Fence => write!(f, "fence"),
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
            "lock" => FromRank::Lock {
                address: rest.trim().parse().map_err(drop)?,
            },
            "finalize" => FromRank::Finalize,
            "abort" => {
                let (code, message) = code_and_text(rest)?;
                FromRank::Abort { code, message }
            }
            "warning" => {
                let (topic, text) = rest.split_once(' ').unwrap_or((rest, ""));
                FromRank::Warning {
                    topic: topic.to_string(),
                    text: one_line(text.trim()),
                }
            }
            "unsupported" if is_procedure(rest) => FromRank::Unsupported {
                procedure: rest.into(),
            },
            "fault" => {
                let (code, text) = code_and_text(rest)?;
                FromRank::Fault { code, text }
            }
            "status" => FromRank::Status { text: text() },
            "status-end" => FromRank::StatusEnd,
            "deadlock" => FromRank::Deadlock,
            "put" => {
                let (key, value) = key_and_value(rest);
                FromRank::Put { key, value }
            }
            "get" => FromRank::Get { key: rest.into() },
            "fence" => FromRank::Fence,
            _ => return Err(()),
        })
    }
}

impl fmt::Display for FromLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FromLauncher::Report => write!(f, "report"),
            FromLauncher::Value { key, value } => write!(f, "value {key} {value}"),
            FromLauncher::Fence => write!(f, "fence"),
        }
    }
}

impl FromStr for FromLauncher {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let line = line.trim_end();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("report", _) => Ok(FromLauncher::Report),
            ("fence", _) => Ok(FromLauncher::Fence),
            ("value", rest) => {
                let (key, value) = key_and_value(rest);
                Ok(FromLauncher::Value { key, value })
            }
            _ => Err(()),
        }
    }
}

/// Splits `CODE TEXT`; the text may be empty.
fn code_and_text(line: &str) -> Result<(i32, String), ()> {
    let (code, text) = line.split_once(' ').unwrap_or((line, ""));
    Ok((code.parse().map_err(drop)?, one_line(text.trim())))
}

/// Splits `KEY VALUE`; a value may be empty. The receiver checks both, so that its error message
/// can show them.
fn key_and_value(text: &str) -> (String, String) {
    let (key, value) = text.split_once(' ').unwrap_or((text, ""));
    (key.into(), value.into())
}

/// Joins lines into packets, each of complete lines.
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

/// Joins the lines of a text into one, and escapes its control characters.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    terminal_text::line(&lines.join(" "))
}
