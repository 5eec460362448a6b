//! The launcher's verdict on how a job ended: the cause, its text, and the exit code.

use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::process::Pid;

use crate::process_exit::ProcessExit;

/// The failure that ended the job, or that will determine its exit code.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// The rank that failed. `None` if the cause came from outside the ranks.
    pub rank: Option<usize>,
    pub cause: Cause,
}

/// The cause of a job's failure.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The rank exited with this code, which is not 0.
    Exit { code: i32 },
    /// A signal killed the rank.
    Signal { signal: i32 },
    /// The rank exited with code 0 between MPI_Init and MPI_Finalize.
    NoFinalize,
    /// The rank exited with code 0 without MPI_Init, while other ranks are in MPI.
    NoInit,
    /// The program below a wrapper ended between MPI_Init and MPI_Finalize.
    ProgramGone { pid: Pid },
    /// A second program completed MPI_Init within one rank.
    SecondProgram { pid: Pid },
    /// The rank violated a rule of the job's key-value store.
    Kvs { why: String },
    /// The rank ended without entering a fence in which other ranks wait.
    LeftFence,
    /// A host cannot be reached, its agent was lost, or it cannot start ranks.
    Host { host: String, why: String, code: u8 },
    /// All ranks of a modelled machine wait, and no event is due. `code` is the exit code of the
    /// first rank that ended.
    Deadlock { code: u8 },
    /// A fatal MPI error in the rank. Its process ends by itself, if nothing prevents that.
    Fault { code: i32, text: String },
    /// The rank called MPI_Abort.
    Abort { code: i32, message: String },
    /// The job took longer than `--timeout`.
    Timeout(Duration),
    /// A signal to the launcher ended the job.
    Interrupt(Signal),
}

impl Cause {
    /// The exit code of the job for this cause.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Cause::Exit { code } | Cause::Abort { code, .. } | Cause::Fault { code, .. } => {
                low_byte(*code)
            }
            Cause::Signal { signal } => low_byte(128 + signal),
            Cause::Interrupt(signal) => low_byte(128 + *signal as i32),
            Cause::Timeout(_) => 124,
            Cause::Host { code, .. } | Cause::Deadlock { code } => *code,
            Cause::NoFinalize
            | Cause::NoInit
            | Cause::Kvs { .. }
            | Cause::LeftFence
            | Cause::ProgramGone { .. }
            | Cause::SecondProgram { .. } => 1,
        }
    }

    /// True if the cause is that the rank's process ended; false if the rank requested the end of
    /// the job, or another event ended it.
    pub(crate) fn is_end_of_a_process(&self) -> bool {
        matches!(self, Cause::Exit { .. } | Cause::Signal { .. })
    }

    /// The text of the cause, which follows the name of the rank in a message.
    pub(crate) fn text(&self) -> String {
        match self {
            Cause::Exit { code } => format!("exited with code {code}"),
            Cause::Signal { signal } => format!("was killed by {}", signal_text(*signal)),
            Cause::NoFinalize => "left without MPI_Finalize".into(),
            Cause::NoInit => "left without MPI_Init, which other ranks have called".into(),
            Cause::ProgramGone { pid } => format!(
                "lost its program (pid {}), which left without MPI_Finalize",
                pid.as_raw_nonzero()
            ),
            Cause::SecondProgram { pid } => {
                let pid = pid.as_raw_nonzero();
                format!(
                    "started a second MPI program (pid {pid}); each program needs a job of its own"
                )
            }
            Cause::Host { host, why, .. } => format!("host {}: {why}", terminal_text::line(host)),
            Cause::Kvs { why } => format!("misused the job's key-value store: {why}"),
            Cause::LeftFence => {
                "left without entering the fence in which the other ranks wait for it".into()
            }
            Cause::Deadlock { .. } => {
                "deadlock: all ranks wait and nothing is on its way".to_string()
            }
            Cause::Fault { code, text } => format!("failed: {text} (exit code {code})"),
            Cause::Abort { code, message } if message.is_empty() => {
                format!("called MPI_Abort with code {code}")
            }
            Cause::Abort { code, message } => {
                format!("called MPI_Abort with code {code}: {message}")
            }
            Cause::Timeout(time) => format!(
                "the job took longer than {} s (--timeout)",
                time.as_secs_f64()
            ),
            Cause::Interrupt(signal) => format!("ended by {signal}"),
        }
    }
}

/// Reduces an exit code to eight bits. A failure stays a failure if the lower bits are zero.
fn low_byte(code: i32) -> u8 {
    let byte = code as u8;
    if byte == 0 && code != 0 { 1 } else { byte }
}

/// A description of the end of a process, which follows its name in a message.
pub(crate) fn exit_text(exit: ProcessExit) -> String {
    match exit {
        ProcessExit::Code(code) => format!("exited with code {code}"),
        ProcessExit::Signal(signal) => format!("was killed by {}", signal_text(signal)),
    }
}

fn signal_text(number: i32) -> String {
    let Ok(signal) = Signal::try_from(number) else {
        return format!("signal {number}");
    };
    let meaning = match signal {
        Signal::SIGSEGV => "access to memory that is unmapped or protected",
        Signal::SIGBUS => {
            "bus error: the system could not provide memory, or an access was misaligned"
        }
        Signal::SIGFPE => "arithmetic error, such as an integer division by zero",
        Signal::SIGILL => "an instruction that this processor does not have",
        Signal::SIGABRT => "abort(), a failed assertion, or a damaged heap",
        Signal::SIGKILL => "sent from outside; the system sends it when memory runs out",
        Signal::SIGPIPE => "a write to a pipe without a reader",
        Signal::SIGXCPU => "the limit on CPU time was reached",
        _ => return signal.to_string(),
    };
    format!("{signal} ({meaning})")
}
