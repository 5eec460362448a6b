//! Why a job could not be started.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::limits::MOST_RANKS;

/// Nothing of the job is left when one of these is returned.
#[derive(Debug)]
pub enum Error {
    /// There is no such program. `hint` says what may have been meant.
    NoProgram { program: String, hint: String },
    /// It is there and cannot be executed.
    NotExecutable { program: String, why: String },
    /// The directory of `--wdir` cannot be entered.
    Directory { directory: PathBuf, why: io::Error },
    /// Less than one rank, or more than a launcher can hold.
    Ranks { ranks: usize },
    /// Each rank needs a socket and perhaps two pipes, and the hard limit is below that.
    Descriptors { needed: u64, hard: u64 },
    /// The system refused to start a rank.
    Start {
        rank: usize,
        ranks: usize,
        why: io::Error,
    },
    /// The command that reaches a host cannot be started.
    Host {
        host: String,
        program: String,
        why: io::Error,
    },
    /// An agent that nobody needs.
    AgentByHand,
    /// What an agent is told makes no sense to it.
    BadFrame { why: String },
    /// The system refused something else.
    System { what: &'static str, why: io::Error },
}

impl Error {
    /// The exit code of the launcher: what a shell gives for the same failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::NoProgram { .. } | Error::Directory { .. } | Error::Host { .. } => 127,
            Error::AgentByHand => 2,
            Error::NotExecutable { .. } => 126,
            _ => 1,
        }
    }

    pub(crate) fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> Error {
        move |errno| Error::System {
            what,
            why: errno.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoProgram { program, hint } => write!(f, "cannot start {program}: {hint}"),
            Error::NotExecutable { program, why } => write!(f, "cannot start {program}: {why}"),
            Error::Directory { directory, why } => {
                write!(
                    f,
                    "cannot start ranks in {}: {why}; --wdir wants a directory",
                    directory.display()
                )
            }
            Error::Ranks { ranks } => write!(
                f,
                "cannot start {ranks} ranks: from 1 to {MOST_RANKS} are possible"
            ),
            Error::Descriptors { needed, hard } => write!(
                f,
                "this job needs {needed} open descriptors in its launcher, and the hard limit is {hard}: raise it \
                 (`ulimit -Hn`), start fewer ranks, or leave out --tag-output"
            ),
            Error::Start { rank, ranks, why } => {
                write!(f, "cannot start rank {rank} of {ranks}: {why}")?;
                if why.raw_os_error() == Some(rustix::io::Errno::AGAIN.raw_os_error()) {
                    write!(
                        f,
                        "; the limit on processes is reached (`ulimit -u`, or the container's)"
                    )?;
                }
                Ok(())
            }
            Error::Host { host, program, why } => write!(
                f,
                "host {host}: cannot start {program}: {why}; --launch-with names the command that starts a program there"
            ),
            Error::AgentByHand => write!(
                f,
                "`fishplate agent` is what `fishplate run --hosts` starts on each host; there is nothing to type to it"
            ),
            Error::BadFrame { why } => {
                write!(f, "what comes from the launcher cannot be read: {why}")
            }
            Error::System { what, why } => write!(f, "cannot {what}: {why}"),
        }
    }
}

impl std::error::Error for Error {}
