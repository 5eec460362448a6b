//! Frames between launcher and agent, over the agent's standard streams.
//!
//! A frame is a length of four bytes in little-endian order and a body in postcard's encoding. Both
//! ends are the same version of the same command, as the agent's first line shows, so frames carry
//! no version.
//!
//! Invariant: neither end blocks on the other. Frames wait at the sender for room, and
//! large data (output and input) is limited by a window that the receiver's confirmations reopen.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pmi::MOST_RANKS;
use rustix::event::PollFlags;
use rustix::io::Errno;
use secret::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Program;
use crate::binding::BindingRequest;
use crate::output::{OutputOptions, OutputTarget};

/// The line by which an agent answers. Lines before it come from other programs.
pub(crate) const HELLO: &str = concat!("fishplate agent ", env!("CARGO_PKG_VERSION"));

/// The window: the most bytes of one output stream, or of input, without confirmation.
pub(crate) const WINDOW: usize = 256 << 10;

/// The most bytes in one frame of output or input.
pub(crate) const PIECE: usize = 16 << 10;

/// The longest frame.
const FRAME_LIMIT: usize = 16 << 20;

/// Reads from one stream before the next stream's turn.
const AT_ONCE: usize = 16;

/// The order to start the ranks of one host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub programs: Vec<Program>,
    pub output: OutputOptions,
    /// The rank that reads the launcher's standard input.
    pub input: Option<usize>,
    /// Whether more ranks than cores are an error.
    pub one_core_each: bool,
    /// The number of the first rank.
    pub first: usize,
    /// The number of ranks to start.
    pub count: usize,
    /// The host of each rank of the job, as ranks read it; and the number of ranks of the job.
    pub hosts: String,
    pub ranks: usize,
    /// Whether rank 0 is to explain its choices.
    pub explain: bool,
    /// The user's wishes for the binding of ranks.
    pub binding: BindingRequest,
    /// Whether the ranks count for the job's profile.
    pub counts: bool,
    /// The secret of the job.
    #[serde(with = "secret_bytes")]
    pub secret: Secret,
}

/// The form of a secret in a frame: its bytes.
mod secret_bytes {
    use secret::Secret;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
        secret.as_bytes().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        Deserialize::deserialize(from).map(Secret::from_bytes)
    }
}

impl StartOrder {
    /// Checks the numbers, which come from another process. The error is the reason.
    pub(crate) fn check(&self) -> Result<(), String> {
        let last = self.first.checked_add(self.count);
        let programs = self.programs.iter().map(|program| program.ranks);
        let places = programs.fold(0, usize::saturating_add);
        let fits = self.count > 0 && last.is_some_and(|last| last <= self.ranks.min(places));
        match fits && self.ranks <= MOST_RANKS {
            true => Ok(()),
            false => Err(format!(
                "it orders {} ranks from {} of a job of {}, and a job has from 1 to {MOST_RANKS}",
                self.count, self.first, self.ranks
            )),
        }
    }
}

/// A frame from the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToAgent {
    Start(Box<StartOrder>),
    /// Request the status of this rank.
    RequestStatus(usize),
    /// A packet for this rank.
    Send(usize, String),
    /// Bytes for rank 0's standard input.
    Input(Vec<u8>),
    EndOfInput,
    /// This many bytes of output were taken.
    Taken(OutputTarget, usize),
    /// The launcher's stream is closed.
    Closed(OutputTarget),
    /// Forward this signal to the ranks.
    Signal(i32),
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
    Ended(usize, ProcessExit),
    Output(usize, OutputTarget, Vec<u8>),
    EndOfOutput(usize, OutputTarget),
    /// This many bytes of input were taken.
    InputTaken(usize),
    /// Rank 0 has closed its input.
    InputClosed,
}

/// The end of a process: its exit code, or the signal that killed it.
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

/// A connection between launcher and agent: two pipes, and the bytes on their way.
pub(crate) struct FrameLink {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
    arrived: Vec<u8>,
    leaving: Vec<u8>,
}

impl FrameLink {
    pub(crate) fn new(reader: OwnedFd, writer: OwnedFd) -> io::Result<Self> {
        for end in [&reader, &writer] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(FrameLink {
            reader: Some(reader),
            writer: Some(writer),
            arrived: Vec::new(),
            leaving: Vec::new(),
        })
    }

    /// Whether everything has been read, up to the end.
    pub(crate) fn is_at_end(&self) -> bool {
        self.reader.is_none()
    }

    /// Whether everything has been written, or nothing more can be.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.leaving.is_empty() || self.writer.is_none()
    }

    /// Closes the writing direction: the other end reads the end.
    pub(crate) fn close(&mut self) {
        self.writer = None;
    }

    /// The descriptors to poll, and the events.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let reader = self.reader.iter().map(|fd| (fd.as_fd(), PollFlags::IN));
        let writer = self.writer.iter().filter(|_| !self.leaving.is_empty());
        reader.chain(writer.map(|fd| (fd.as_fd(), PollFlags::OUT)))
    }

    /// Queues a frame.
    pub(crate) fn post(&mut self, frame: &impl Serialize) {
        let Ok(bytes) = postcard::to_stdvec(frame) else {
            return;
        };
        self.leaving
            .extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.leaving.extend_from_slice(&bytes);
        self.flush();
    }

    /// Queues a line; before frames begin.
    pub(crate) fn post_line(&mut self, line: &str) {
        self.leaving
            .extend_from_slice(format!("{line}\n").as_bytes());
        self.flush();
    }

    /// Writes the bytes that can be written without blocking.
    pub(crate) fn flush(&mut self) {
        let mut written = 0;
        while let Some(writer) = self
            .writer
            .as_ref()
            .filter(|_| written < self.leaving.len())
        {
            match rustix::io::write(writer, &self.leaving[written..]) {
                Ok(length) => written += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The other end is gone, as the reader will find.
                Err(_) => self.writer = None,
            }
        }
        self.leaving.drain(..written);
    }

    /// Reads the bytes that have arrived.
    pub(crate) fn pull(&mut self) {
        let mut bytes = [0; 64 << 10];
        for _ in 0..AT_ONCE {
            let Some(reader) = &self.reader else { return };
            match rustix::io::read(reader, &mut bytes) {
                Ok(0) => self.reader = None,
                Ok(length) => self.arrived.extend_from_slice(&bytes[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.reader = None,
            }
        }
    }

    /// The next frame, if it has arrived completely. An error is the reason why the bytes are no
    /// frame.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let Some((head, rest)) = self.arrived.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > FRAME_LIMIT {
            return Err(format!("a frame of {length} bytes"));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = postcard::from_bytes(body).map_err(|why| why.to_string())?;
        self.arrived.drain(..4 + length);
        Ok(Some(frame))
    }

    /// The next line, without its newline; before frames begin.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let end = self.arrived.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.arrived.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> (FrameLink, FrameLink) {
        let (here, there) = (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        (
            FrameLink::new(here.0, there.1).unwrap(),
            FrameLink::new(there.0, here.1).unwrap(),
        )
    }

    #[test]
    fn frames_arrive_whole_and_in_order_whatever_the_pipe_holds() {
        let (mut here, mut there) = link();
        here.post_line("noise");
        for rank in 0..500 {
            here.post(&FromAgent::Output(
                rank,
                OutputTarget::Stderr,
                vec![7; 1000],
            ));
        }
        assert!(!here.has_sent_all());
        let mut count = 0;
        there.pull();
        assert_eq!(there.next_line().as_deref(), Some("noise"));
        while count < 500 {
            here.flush();
            there.pull();
            while let Some(frame) = there.next::<FromAgent>().unwrap() {
                let FromAgent::Output(rank, OutputTarget::Stderr, bytes) = frame else {
                    panic!("{frame:?}")
                };
                assert_eq!((rank, bytes.len()), (count, 1000));
                count += 1;
            }
        }
        assert!(here.has_sent_all());
        here.close();
        there.pull();
        assert!(there.is_at_end());
    }

    fn order(first: usize, count: usize, ranks: usize) -> StartOrder {
        StartOrder {
            programs: vec![Program {
                ranks,
                ..Program::default()
            }],
            output: OutputOptions::default(),
            input: None,
            one_core_each: false,
            first,
            count,
            hosts: String::new(),
            ranks,
            explain: false,
            binding: BindingRequest::default(),
            counts: false,
            secret: Secret::from_bytes([0xa5; Secret::LENGTH]),
        }
    }

    #[test]
    fn an_order_carries_the_secret_and_does_not_show_it() {
        let (mut here, mut there) = link();
        here.post(&ToAgent::Start(Box::new(order(0, 1, 1))));
        there.pull();
        let Ok(Some(ToAgent::Start(order))) = there.next() else {
            panic!("no order")
        };
        assert_eq!(order.secret.as_bytes(), &[0xa5; Secret::LENGTH]);
        let shown = format!("{order:?}");
        assert!(!shown.contains("165") && !shown.contains("a5"), "{shown}");
    }

    #[test]
    fn impossible_orders_are_refused() {
        let most = usize::MAX;
        for (first, count, ranks, is_valid) in [
            (0, 2, 2, true),
            (1, 4095, 4096, true),
            (0, 0, 2, false),
            (1, 2, 2, false),
            (most, 1, 4, false),
            (0, 1 << 62, 1 << 62, false),
            (most, most, most, false),
        ] {
            let order = order(first, count, ranks);
            assert_eq!(order.check().is_ok(), is_valid, "{first} {count} {ranks}");
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let (mut here, mut there) = link();
        here.post_line("this is text");
        there.pull();
        assert!(there.next::<FromAgent>().is_err());
        let (mut here, mut there) = link();
        here.leaving = vec![1, 0, 0, 0, 250];
        here.flush();
        there.pull();
        assert!(there.next::<FromAgent>().is_err());
    }
}
