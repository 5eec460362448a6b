//! Errors in the variables by which a launcher identifies a rank.

use std::fmt;
use std::os::fd::RawFd;

use knobs::{HOSTS, MOST_RANKS, RANK, SIZE};

/// Reason why this process cannot tell which rank it is. The text names the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Another launcher started this process as one of several.
    Foreign {
        /// The name of that launcher.
        launcher: &'static str,
        /// The remedy under that launcher, a clause that ends with ", or "; empty if there is none.
        advice: &'static str,
        /// The number of ranks, if the launcher's variables hold it.
        size: Option<usize>,
        /// The variables that show it, with their values.
        seen: Vec<(String, String)>,
    },
    /// Another launcher started this process, and the connection to it or to the other ranks cannot
    /// be made.
    Unreachable {
        /// The name of that launcher.
        launcher: &'static str,
        /// The protocol.
        protocol: &'static str,
        /// The variable that shows it, with its value.
        seen: String,
        /// The reason.
        why: String,
    },
    /// A variable of our launcher is not set, although others are.
    Missing {
        /// The variable.
        variable: &'static str,
    },
    /// A variable is not a number.
    NotANumber {
        /// The variable.
        variable: &'static str,
        /// The value of the variable.
        value: String,
    },
    /// The size is above that of any job.
    TooManyRanks {
        /// The number of ranks.
        size: usize,
    },
    /// The rank is not below the size.
    RankBeyondSize {
        /// The rank.
        rank: usize,
        /// The number of ranks.
        size: usize,
    },
    /// The list of hosts cannot be read, or describes another job.
    Hosts {
        /// The list, or its beginning.
        value: String,
        /// The reason.
        why: String,
    },
    /// The segment and the control socket have the same descriptor.
    SameDescriptor {
        /// The descriptor.
        number: String,
    },
    /// A descriptor is not what its variable claims.
    Descriptor {
        /// The variable.
        variable: &'static str,
        /// The descriptor.
        number: RawFd,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Foreign {
                launcher,
                advice,
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
                    "{launcher} started this process ({}), and Fishplate cannot reach the other ranks through it: \
                     {advice}start the program with `fishplate run -n {count} PROGRAM`, or, to run it as the only rank, unset {}",
                    shown.join(" "),
                    names.join(" "),
                );
            }
            Error::Unreachable {
                launcher,
                protocol,
                seen,
                why,
            } => {
                return write!(
                    f,
                    "{launcher} started this process ({seen}), and over {protocol} this rank cannot join the others: \
                     {why}. `fishplate run` starts the program without {launcher}"
                );
            }
            Error::Missing { variable } => write!(f, "{RANK} is set, but {variable} is not")?,
            Error::NotANumber { variable, value } => {
                write!(f, "{variable}={value} is not a number")?
            }
            Error::TooManyRanks { size } => {
                write!(
                    f,
                    "{SIZE}={size} is more than the {MOST_RANKS} ranks of the largest job"
                )?;
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
                write!(
                    f,
                    "{variable}={number}: not a descriptor of this job: {why}"
                )?;
            }
        }
        write!(
            f,
            ". `fishplate run` sets these variables and passes these descriptors to the ranks that it starts; to start a \
             program from within a rank as a separate job, unset {RANK}"
        )
    }
}

impl std::error::Error for Error {}
