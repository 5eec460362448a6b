//! What launcher and agent say to each other over the agent's standard streams.
//!
//! A frame is its length in four bytes, lowest first, and the frame itself in postcard's form. Both ends are the same
//! version of the same command (the agent's first line says which), so frames need no version of their own.
//!
//! What must always hold: neither end ever blocks on the other. What one has no room for waits at the other, and what may
//! grow large (output, input) is only sent as far as the other has said that it took what came before.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::output::Target;

/// The line by which an agent says that it is there. Whatever comes before it, others wrote.
pub(crate) const HELLO: &str = concat!("fishplate agent ", env!("CARGO_PKG_VERSION"));

/// Bytes of output, and of input, that may be under way.
pub(crate) const WINDOW: usize = 256 << 10;

/// The most bytes in one frame of output or input.
pub(crate) const PIECE: usize = 16 << 10;

/// A longer frame is none.
const FRAME_LIMIT: usize = 16 << 20;

/// What is read at once before others get their turn.
const AT_ONCE: usize = 16;

/// The ranks of one host, and how to start them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
    pub directory: Option<OsString>,
    pub first: usize,
    pub count: usize,
    /// The host of each rank, as ranks read it; and how many ranks that is.
    pub hosts: String,
    pub ranks: usize,
}

/// From the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Down {
    Start(Order),
    /// Ask this rank what it waits for.
    Ask(usize),
    /// A packet for this rank.
    Tell(usize, String),
    /// Bytes for rank 0's standard input.
    Input(Vec<u8>),
    EndOfInput,
    /// So many bytes of output were taken.
    Taken(Target, usize),
    /// Nobody reads this any more.
    Deaf(Target),
    /// Pass this on to the ranks.
    Signal(i32),
    /// End all that there is by these signals, one after the other. In a hurry nobody waits for output to be taken.
    End {
        signals: Vec<i32>,
        hurry: bool,
    },
}

/// From the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Up {
    /// The ranks were started; their processes.
    Started(Vec<i32>),
    /// They could not be.
    Refused {
        why: String,
        code: u8,
    },
    /// It ends all that there is, for this reason, which the launcher does not know.
    Leaving(String),
    /// That was all.
    Done,
    /// A packet from this rank.
    Said(usize, String),
    /// The program that came through MPI_Init in this rank is gone, and a wrapper is left.
    ProgramGone(usize),
    Ended(usize, Exit),
    Output(usize, Target, Vec<u8>),
    EndOfOutput(usize, Target),
    /// So many bytes of input were taken.
    InputTaken(usize),
    /// Rank 0 reads no more.
    InputClosed,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

impl From<rustix::process::WaitStatus> for Exit {
    fn from(status: rustix::process::WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Exit::Signal(signal),
            None => Exit::Code(status.exit_status().unwrap_or(0)),
        }
    }
}

/// Two pipes, or what stands in for them, and what is on its way through them.
pub(crate) struct Link {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
    arrived: Vec<u8>,
    leaving: Vec<u8>,
}

impl Link {
    pub fn new(reader: OwnedFd, writer: OwnedFd) -> io::Result<Self> {
        for end in [&reader, &writer] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(Link {
            reader: Some(reader),
            writer: Some(writer),
            arrived: Vec::new(),
            leaving: Vec::new(),
        })
    }

    /// Nothing more will be read, as all that came has been.
    pub fn is_at_end(&self) -> bool {
        self.reader.is_none()
    }

    pub fn has_sent_all(&self) -> bool {
        self.leaving.is_empty() || self.writer.is_none()
    }

    /// Lets the other end see the end.
    pub fn close(&mut self) {
        self.writer = None;
    }

    /// What to poll, and for what.
    pub fn wanted(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let reader = self.reader.iter().map(|fd| (fd.as_fd(), PollFlags::IN));
        let writer = self.writer.iter().filter(|_| !self.leaving.is_empty());
        reader.chain(writer.map(|fd| (fd.as_fd(), PollFlags::OUT)))
    }

    pub fn post(&mut self, frame: &impl Serialize) {
        let Ok(bytes) = postcard::to_stdvec(frame) else {
            return;
        };
        self.leaving
            .extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.leaving.extend_from_slice(&bytes);
        self.flush();
    }

    pub fn post_line(&mut self, line: &str) {
        self.leaving
            .extend_from_slice(format!("{line}\n").as_bytes());
        self.flush();
    }

    /// Writes what can be written without blocking.
    pub fn flush(&mut self) {
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
                // The other end is gone, which reading will show.
                Err(_) => self.writer = None,
            }
        }
        self.leaving.drain(..written);
    }

    /// Reads what has come.
    pub fn pull(&mut self) {
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

    /// The next frame, if all of it has come. An error says why it can be none.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
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

    /// The next line, without its end; before frames begin.
    pub fn next_line(&mut self) -> Option<String> {
        let end = self.arrived.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.arrived.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> (Link, Link) {
        let (here, there) = (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        (
            Link::new(here.0, there.1).unwrap(),
            Link::new(there.0, here.1).unwrap(),
        )
    }

    #[test]
    fn frames_arrive_whole_and_in_order_whatever_the_pipe_holds() {
        let (mut here, mut there) = link();
        here.post_line("noise");
        for rank in 0..500 {
            here.post(&Up::Output(rank, Target::Stderr, vec![7; 1000]));
        }
        assert!(!here.has_sent_all());
        let mut count = 0;
        there.pull();
        assert_eq!(there.next_line().as_deref(), Some("noise"));
        while count < 500 {
            here.flush();
            there.pull();
            while let Some(frame) = there.next::<Up>().unwrap() {
                let Up::Output(rank, Target::Stderr, bytes) = frame else {
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

    #[test]
    fn what_is_no_frame_is_an_error() {
        let (mut here, mut there) = link();
        here.post_line("this is text");
        there.pull();
        assert!(there.next::<Up>().is_err());
        let (mut here, mut there) = link();
        here.leaving = vec![1, 0, 0, 0, 250];
        here.flush();
        there.pull();
        assert!(there.next::<Up>().is_err());
    }
}
