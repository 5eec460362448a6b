//! Frames between launcher and agent, over the agent's standard streams.
//!
//! The agent's first line shows that both ends are the same version of the same command, so frames
//! carry no version.
//!
//! Invariant: neither end blocks on the other. Frames are queued at the sender, and for large data
//! (output and input) a window limits them, which the receiver's confirmations reopen.

use serde::{Deserialize, Serialize};

use super::order::StartOrder;
use crate::exchange::{Down, Up};
use crate::output::OutputTarget;
use crate::process_exit::ProcessExit;

/// The line with which an agent answers. Lines before it come from other programs, such as a login
/// shell.
pub(crate) const HELLO: &str = concat!("fishplate agent ", env!("CARGO_PKG_VERSION"));

/// The window: the most bytes of one output stream, or of input, without confirmation.
pub(crate) const WINDOW: usize = 256 << 10;

/// The most bytes of one output stream that all agents together may have sent without confirmation.
/// The window of each is at least one piece, which may exceed this.
const ALL_WINDOWS: usize = 8 << 20;

/// The window for an output stream of each of `agents` agents, in bytes.
pub(crate) fn output_window(agents: usize) -> usize {
    (ALL_WINDOWS / agents.max(1)).clamp(PIECE, WINDOW)
}

/// The most bytes in one frame of output or input.
pub(crate) const PIECE: usize = 16 << 10;

/// The length of the longest frame of an agent, in bytes.
pub(crate) const LONGEST: usize = 96 << 10;

/// The length of the longest frame of the launcher, in bytes: an order with arguments and
/// variables.
pub(crate) const LONGEST_ORDER: usize = 16 << 20;

/// A frame from the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    Start(Box<StartOrder>),
    /// A request for the status of the rank with this number.
    RequestStatus(usize),
    /// Values and ends of fences of the key-value store.
    Down(Down),
    /// Bytes for the standard input of the rank that reads it.
    Input(Vec<u8>),
    EndOfInput,
    /// The launcher confirms this many bytes of this output stream.
    Taken(OutputTarget, usize),
    /// The launcher's output stream of this kind is closed.
    Closed(OutputTarget),
    /// A signal to be forwarded to the ranks of the host.
    Signal(i32),
    /// A heartbeat.
    Beat,
    /// The user has stopped the launcher, for example by Ctrl-Z. It sends nothing until its next
    /// frame.
    Suspended,
    /// End all processes by these signals, one after the other; with `hurry`, without waiting until
    /// output has been read.
    End {
        signals: Vec<i32>,
        hurry: bool,
    },
}

/// A frame from the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromAgent {
    /// The ranks were started; their process IDs, in order.
    Started(Vec<i32>),
    /// The ranks could not be started.
    Refused {
        why: String,
        code: u8,
    },
    /// The agent ends all processes for this reason, of which the launcher is not informed yet.
    Leaving(String),
    /// A piece of the profile that the agent's ranks have recorded: its offset in the file in
    /// bytes, and the bytes.
    Counted(u64, Vec<u8>),
    /// The last frame of the agent.
    Done,
    /// A packet of the control socket from this rank.
    Packet(usize, String),
    /// The program of this rank that had completed MPI_Init has ended, while its wrapper is
    /// running.
    ProgramGone(usize),
    /// This rank has ended, after it had entered this many fences.
    Ended(usize, ProcessExit, u64),
    Output(usize, OutputTarget, Vec<u8>),
    EndOfOutput(usize, OutputTarget),
    /// The agent confirms that it has passed this many bytes of input to the rank that reads it.
    InputTaken(usize),
    /// The rank that reads input has closed it.
    InputClosed,
    /// A heartbeat.
    Beat,
    /// Values and entered fences of the key-value store.
    Up(Up),
    /// This rank has violated a rule of the key-value store, which the text describes.
    Misused(usize, String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_agents_share_the_windows() {
        assert_eq!(output_window(1), WINDOW);
        assert_eq!(output_window(64), 128 << 10);
        assert_eq!(output_window(10_000), PIECE);
    }
}
