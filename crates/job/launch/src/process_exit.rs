//! The exit of a process: its exit code, or the signal that killed it.

use serde::{Deserialize, Serialize};

/// The exit of a process: its exit code, or the signal that killed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProcessExit {
    Code(i32),
    Signal(i32),
}

impl From<rustix::process::WaitStatus> for ProcessExit {
    fn from(status: rustix::process::WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => ProcessExit::Signal(signal),
            None => ProcessExit::Code(status.exit_status().unwrap_or(0)),
        }
    }
}
