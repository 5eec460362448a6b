//! The reasons why a job could not be started.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use pmi::MOST_RANKS;
use terminal_text::line;

/// The reason why a job could not be started. When it is returned, no process of the job is left.
#[derive(Debug)]
pub enum Error {
    /// The program does not exist.
    NoProgram {
        /// The name of the program, as the user gave it.
        program: String,
        /// The reason, or the program that the user may have meant.
        hint: String,
    },
    /// The program exists, but cannot be executed.
    NotExecutable {
        /// The name of the program.
        program: String,
        /// The reason why the program cannot be executed.
        why: String,
    },
    /// The directory of `--wdir` cannot be entered.
    Directory {
        /// The path of the directory.
        directory: PathBuf,
        /// The reason why the directory cannot be entered.
        why: io::Error,
    },
    /// A file for the output of a rank cannot be created.
    OutputFile {
        /// The name of the output file.
        name: String,
        /// The reason why the file cannot be created.
        why: io::Error,
    },
    /// A program is linked with the MPI library of another ABI, so its processes would not be ranks
    /// of one job.
    OtherMpi {
        /// The text for the user: the program, its library, and the remedy.
        why: String,
    },
    /// A host has fewer cores than ranks, and the user requires a core for each rank.
    TooFewCores {
        /// The number of ranks on the host.
        ranks: usize,
        /// The number of cores that the ranks may use.
        cores: usize,
    },
    /// The library that makes the system's clocks show virtual time cannot be preloaded.
    Clocks {
        /// The file of the clock library.
        library: PathBuf,
        /// True if the file of the clock library exists.
        is_there: bool,
    },
    /// The dynamic linker cannot search the folder of our library, because of characters in its
    /// name.
    Folder {
        /// The path of the folder that lacks our library.
        library: PathBuf,
    },
    /// The number of ranks is zero, or above the limit for a job.
    Ranks {
        /// The number of ranks that the user requested.
        ranks: usize,
    },
    /// The hard limit on open descriptors is too low: each rank needs a socket and perhaps two
    /// pipes.
    Descriptors {
        /// The number of descriptors that the launcher needs.
        needed: u64,
        /// The hard limit on open descriptors.
        hard: u64,
    },
    /// The system refused to start a rank.
    Start {
        /// The world rank of the rank.
        rank: usize,
        /// The number of ranks of the job.
        ranks: usize,
        /// The reason why the system refused to start the rank.
        why: io::Error,
    },
    /// The command that reaches a host cannot be started.
    Host {
        /// The name of the host.
        host: String,
        /// The program of the command that reaches the host.
        program: String,
        /// The reason why the command cannot be started.
        why: io::Error,
    },
    /// The ranks cannot be bound as the user requests.
    Binding {
        /// The reason why the ranks cannot be bound, and the remedy.
        why: String,
    },
    /// A user started an agent by hand.
    AgentByHand,
    /// An agent cannot decode a frame of its launcher.
    BadFrame {
        /// The reason why the frame cannot be decoded.
        why: String,
    },
    /// A system call failed.
    System {
        /// The action that the system call was to perform.
        what: &'static str,
        /// The reason why the system call failed.
        why: io::Error,
    },
}

impl Error {
    /// The exit code of the launcher: the one that a shell uses for the same failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::NoProgram { .. } | Error::Directory { .. } | Error::Host { .. } => 127,
            Error::AgentByHand | Error::Ranks { .. } => 2,
            Error::NotExecutable { .. } | Error::OtherMpi { .. } => 126,
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
            Error::NoProgram { program, hint } => {
                write!(f, "cannot start {}: {}", line(program), line(hint))
            }
            Error::NotExecutable { program, why } => {
                write!(f, "cannot start {}: {why}", line(program))
            }
            Error::Directory { directory, why } => {
                write!(
                    f,
                    "cannot start ranks in {}: {}; --wdir takes a directory that you may enter",
                    line(&directory.to_string_lossy()),
                    why_text(why)
                )
            }
            Error::OutputFile { name, why } => {
                write!(
                    f,
                    "cannot write a rank's output to {}: {}",
                    line(name),
                    why_text(why)
                )
            }
            Error::TooFewCores { ranks, cores } => write!(
                f,
                "{ranks} ranks on a host on which they may use {cores} cores: start fewer, or leave out --nooversubscribe"
            ),
            Error::Clocks { library, is_there } => f.write_str(&clocks(library, *is_there)),
            Error::Folder { library } => write!(
                f,
                "programs cannot find the library in {}: the dynamic linker ends the name of a folder at `:` and `;`, and \
                 replaces `$LIB`, `$ORIGIN` and `$PLATFORM` in it; install Fishplate in a folder without them",
                line(&library.to_string_lossy())
            ),
            Error::Ranks { ranks } => {
                write!(
                    f,
                    "cannot start {ranks} ranks: a job has from 1 to {MOST_RANKS}"
                )
            }
            Error::Descriptors { needed, hard } => write!(
                f,
                "this job needs {needed} open descriptors in its launcher, and the hard limit is {hard}: raise it \
                 (`ulimit -Hn`), start fewer ranks, or leave out --tag-output"
            ),
            Error::Start { rank, ranks, why } => {
                write!(f, "cannot start rank {rank} of {ranks}: {}", why_text(why))?;
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
                "host {}: cannot start {}: {}; --launch-with names the command that starts a program there",
                line(host),
                line(program),
                why_text(why)
            ),
            Error::Binding { why } => f.write_str(why),
            Error::OtherMpi { why } => {
                write!(f, "{why}; --allow-other-mpi runs it all the same")
            }
            Error::AgentByHand => write!(
                f,
                "`fishplate run --hosts` starts `fishplate agent` on each host; it is not for use by hand"
            ),
            Error::BadFrame { why } => {
                write!(f, "a frame of the launcher cannot be read: {why}")
            }
            Error::System { what, why } => write!(f, "cannot {what}: {}", why_text(why)),
        }
    }
}

impl std::error::Error for Error {}

/// The message about a clock library that cannot be used.
fn clocks(library: &Path, is_there: bool) -> String {
    let why = match is_there {
        true => {
            "cannot be preloaded from a folder whose name has blanks, colons or words that the linker replaces: install \
             Fishplate elsewhere"
        }
        false => "is missing: install Fishplate again",
    };
    format!(
        "{}, which shows virtual time on the system's clocks, {why}; or leave the clocks real with --real-clocks",
        line(&library.to_string_lossy())
    )
}

/// The system's description of an error, without the error number.
pub(crate) fn why_text(why: &io::Error) -> String {
    let text = why.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.to_lowercase()
}
