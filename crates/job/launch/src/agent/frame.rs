//! Frames between launcher and agent, over the agent's standard streams.
//!
//! Both ends are the same version of the same command, as the agent's first line shows, so frames
//! carry no version.
//!
//! Invariant: neither end blocks on the other. Frames wait at the sender for room, and
//! large data (output and input) is limited by a window that the receiver's confirmations reopen.

use serde::{Deserialize, Serialize};

use super::order::StartOrder;
use crate::exchange::{Down, Up};
use crate::output::OutputTarget;
use crate::process_exit::ProcessExit;

/// The line by which an agent answers. Lines before it come from other programs.
pub(crate) const HELLO: &str = concat!("fishplate agent ", env!("CARGO_PKG_VERSION"));

/// The window: the most bytes of one output stream, or of input, without confirmation.
pub(crate) const WINDOW: usize = 256 << 10;

/// The most bytes of one output stream that all agents together may have sent without
/// confirmation, as far as each still has a piece.
const ALL_WINDOWS: usize = 8 << 20;

/// The window of an output stream of each of this many agents.
pub(crate) fn output_window(agents: usize) -> usize {
    (ALL_WINDOWS / agents.max(1)).clamp(PIECE, WINDOW)
}

/// The most bytes in one frame of output or input.
pub(crate) const PIECE: usize = 16 << 10;

/// The longest frame of an agent.
pub(crate) const LONGEST: usize = 96 << 10;

/// The longest frame of the launcher: an order with arguments and variables.
pub(crate) const LONGEST_ORDER: usize = 16 << 20;

/// A frame from the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    Start(Box<StartOrder>),
    /// Request the status of this rank.
    RequestStatus(usize),
    /// The launcher's part of the exchange.
    Down(Down),
    /// Bytes for rank 0's standard input.
    Input(Vec<u8>),
    EndOfInput,
    /// This many bytes of output were taken.
    Taken(OutputTarget, usize),
    /// The launcher's stream is closed.
    Closed(OutputTarget),
    /// Forward this signal to the ranks.
    Signal(i32),
    /// A sign of life.
    Beat,
    /// The user has stopped the launcher: it is silent until its next frame.
    Suspended,
    /// End all processes by these signals, one after the other; in a hurry, without waiting for
    /// output to be taken.
    End {
        signals: Vec<i32>,
        hurry: bool,
    },
}

/// A frame from the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromAgent {
    /// The ranks were started, as these processes.
    Started(Vec<i32>),
    /// The ranks could not be started.
    Refused {
        why: String,
        code: u8,
    },
    /// The agent ends all processes for this reason, which the launcher does not know.
    Leaving(String),
    /// A piece of the job's profile, and its place.
    Counted(u64, Vec<u8>),
    /// The last frame.
    Done,
    /// A packet from this rank.
    Packet(usize, String),
    /// The program of this rank that completed MPI_Init has ended, and its wrapper runs.
    ProgramGone(usize),
    /// The rank has ended, after it has entered this many fences.
    Ended(usize, ProcessExit, u64),
    Output(usize, OutputTarget, Vec<u8>),
    EndOfOutput(usize, OutputTarget),
    /// This many bytes of input were taken.
    InputTaken(usize),
    /// Rank 0 has closed its input.
    InputClosed,
    /// A sign of life.
    Beat,
    /// The agent's part of the exchange.
    Up(Up),
    /// This rank broke a rule of the key-value store.
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
