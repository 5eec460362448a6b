//! What can be wrong with what a launcher said.

use std::fmt;
use std::os::fd::RawFd;

use knobs::{HOSTS, RANK, SIZE};

/// Why this process cannot tell which rank it is. The text says what was seen and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Another launcher started this process as one of several.
    Foreign {
        launcher: &'static str,
        size: Option<usize>,
        seen: Vec<(String, String)>,
    },
    /// A variable of the contract is not set.
    Missing { variable: &'static str },
    /// A variable holds no number.
    NotANumber {
        variable: &'static str,
        value: String,
    },
    /// The rank is not below the size.
    RankBeyondSize { rank: usize, size: usize },
    /// The list of hosts is none, or not of this job.
    Hosts { value: String, why: String },
    /// The segment and the socket cannot be one descriptor.
    SameDescriptor { number: String },
    /// A descriptor is not what its variable says.
    Descriptor {
        variable: &'static str,
        number: RawFd,
        why: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Foreign {
                launcher,
                size,
                seen,
            } => {
                let shown: Vec<String> = seen
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
                let count = size.map_or("N".to_string(), |size| size.to_string());
                return write!(
                    f,
                    "this process was started by {launcher} ({}), which cannot tell it of the other ranks: start the \
                     program with `fishplate run -n {count} PROGRAM`, or, to run it as the only rank, unset {}",
                    shown.join(" "),
                    names.join(" "),
                );
            }
            Error::Missing { variable } => write!(f, "{RANK} is set, but {variable} is not")?,
            Error::NotANumber { variable, value } => {
                write!(f, "{variable}={value} is not a number")?
            }
            Error::RankBeyondSize { rank, size } => {
                write!(f, "{RANK}={rank} is not below {SIZE}={size}")?;
            }
            Error::Hosts { value, why } => write!(f, "{HOSTS}={value}: {why}")?,
            Error::SameDescriptor { number } => {
                write!(
                    f,
                    "the segment and the control socket are both descriptor {number}"
                )?;
            }
            Error::Descriptor {
                variable,
                number,
                why,
            } => {
                write!(f, "{variable}={number}: no descriptor of this job: {why}")?;
            }
        }
        write!(
            f,
            ". `fishplate run` sets these variables for the ranks it starts, and leaves the descriptors open for them; \
             to run a program from within a rank as a job of its own, unset {RANK}"
        )
    }
}

impl std::error::Error for Error {}
