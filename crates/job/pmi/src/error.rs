//! Errors in the variables by which a launcher identifies a rank.

use std::fmt;
use std::os::fd::RawFd;

use knobs::{HOSTS, MOST_RANKS, RANK, SIZE};

/// The reason why this process cannot tell which rank it is. Its text names the cause and the
/// remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A launcher of another MPI library started this process as one of several.
    Foreign {
        /// The name of the launcher that belongs to another MPI library.
        launcher: &'static str,
        /// The remedy under that launcher: a clause of the error message that ends with ", or ".
        /// Empty if there is none.
        advice: &'static str,
        /// The number of ranks, if the launcher's variables hold it.
        size: Option<usize>,
        /// The environment variables by which the launcher was recognized, with their values.
        seen: Vec<(String, String)>,
    },
    /// A launcher of another MPI library started this process, and the connection to it or to the
    /// other ranks failed.
    Unreachable {
        /// The name of the launcher that belongs to another MPI library.
        launcher: &'static str,
        /// The name of the protocol of the connection, such as PMI-1.
        protocol: &'static str,
        /// The environment variable by which the launcher was recognized, with its value.
        seen: String,
        /// The reason why the connection failed.
        why: String,
    },
    /// A variable of our launcher is missing, although other ones of it are set.
    Missing {
        /// The name of the missing variable.
        variable: &'static str,
    },
    /// The value of a variable is not a number.
    NotANumber {
        /// The name of the variable.
        variable: &'static str,
        /// The value that is not a number.
        value: String,
    },
    /// The number of ranks is above the limit for any job.
    TooManyRanks {
        /// The number of ranks that the environment gives.
        size: usize,
    },
    /// The rank number is not less than the number of ranks.
    RankBeyondSize {
        /// The number of this rank that the environment gives.
        rank: usize,
        /// The number of ranks that the environment gives.
        size: usize,
    },
    /// The list of hosts is invalid, or describes another job.
    Hosts {
        /// The list of hosts from the environment, or its beginning.
        value: String,
        /// The reason why the list of hosts is invalid.
        why: String,
    },
    /// The segment and the control socket have the same descriptor.
    SameDescriptor {
        /// The number of the descriptor that both variables name.
        number: String,
    },
    /// A descriptor is not of the kind that its variable claims.
    Descriptor {
        /// The name of the variable that holds the descriptor's number.
        variable: &'static str,
        /// The number of the inherited descriptor.
        number: RawFd,
        /// The reason why the descriptor cannot be used.
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
