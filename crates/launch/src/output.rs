//! Output of ranks with `[rank] ` before each line.
//!
//! Lines of different ranks are never mixed. The launcher must stay able to take a signal while whoever reads its output
//! does not, so it writes only where a write does not block, and stops reading from ranks while much is unwritten.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A line that grows beyond this is written in pieces.
const LINE_LIMIT: usize = 64 << 10;

/// While this much is unwritten, nothing is read.
const PENDING_LIMIT: usize = 256 << 10;

/// What a pipe that is ready for writing takes without blocking (POSIX: PIPE_BUF).
const PIECE: usize = 4096;

/// Which of the launcher's own streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

/// One rank's stdout or stderr.
pub(crate) struct Stream {
    /// What each line begins with; none for output that is passed on as it comes.
    tag: Option<Vec<u8>>,
    pub target: Target,
    /// None once the rank has closed it, and for a rank on another host.
    reader: Option<File>,
    /// The beginning of a line.
    partial: Vec<u8>,
}

impl Stream {
    pub fn stdout(rank: usize, reader: File) -> Self {
        Self::new(rank, Target::Stdout, Some(reader), true)
    }

    pub fn stderr(rank: usize, reader: File) -> Self {
        Self::new(rank, Target::Stderr, Some(reader), true)
    }

    /// Of a rank on another host, whose agent reads it.
    pub fn remote(rank: usize, target: Target, tagged: bool) -> Self {
        Self::new(rank, target, None, tagged)
    }

    fn new(rank: usize, target: Target, reader: Option<File>, tagged: bool) -> Self {
        Stream {
            tag: tagged.then(|| format!("[{rank}] ").into_bytes()),
            target,
            reader,
            partial: Vec::new(),
        }
    }

    /// What to poll for more, if there can be more.
    pub fn reader(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    /// Moves what has arrived.
    pub fn pull(&mut self, sink: &mut Sink) {
        match self.read(16 << 10) {
            Piece::Bytes(bytes) => self.feed(&bytes, sink),
            Piece::Nothing => {}
            Piece::End => self.close(sink),
        }
    }

    /// Reads what has arrived, as it is.
    pub fn read(&mut self, most: usize) -> Piece {
        let Some(reader) = &mut self.reader else {
            return Piece::Nothing;
        };
        let mut bytes = vec![0; most];
        match reader.read(&mut bytes) {
            Ok(0) => Piece::End,
            Ok(length) => {
                bytes.truncate(length);
                Piece::Bytes(bytes)
            }
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Piece::Nothing
            }
            Err(_) => Piece::End,
        }
    }

    /// Takes what the rank wrote.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut Sink) {
        match self.tag {
            Some(_) => self.split(bytes, sink),
            None => sink.push(&[bytes]),
        }
    }

    /// A rank that goes on writing gets SIGPIPE.
    pub fn stop_reading(&mut self) {
        self.reader = None;
    }

    /// Reads no more, and ends the last line.
    pub fn close(&mut self, sink: &mut Sink) {
        self.stop_reading();
        if !self.partial.is_empty() {
            self.write_line(b"\n", sink);
        }
    }

    fn split(&mut self, bytes: &[u8], sink: &mut Sink) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if piece.ends_with(b"\n") {
                self.write_line(piece, sink);
            } else {
                self.partial.extend_from_slice(piece);
                if self.partial.len() > LINE_LIMIT {
                    self.write_line(b"\n", sink);
                }
            }
        }
    }

    fn write_line(&mut self, end: &[u8], sink: &mut Sink) {
        let tag = self.tag.as_deref().unwrap_or_default();
        sink.push(&[tag, &self.partial, end]);
        self.partial.clear();
    }
}

/// What a read gave.
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// For now.
    Nothing,
    End,
}

/// One of the launcher's own streams.
pub(crate) struct Sink {
    target: Target,
    pending: Vec<u8>,
    closed: bool,
}

impl Sink {
    pub fn new(target: Target) -> Self {
        Sink {
            target,
            pending: Vec::new(),
            closed: false,
        }
    }

    pub fn push(&mut self, parts: &[&[u8]]) {
        if !self.closed {
            parts
                .iter()
                .for_each(|part| self.pending.extend_from_slice(part));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.pending.len() >= PENDING_LIMIT
    }

    /// Nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes what can be written without blocking.
    pub fn flush(&mut self) {
        let mut written = 0;
        while written < self.pending.len() && self.is_ready() {
            let piece = &self.pending[written..];
            match rustix::io::write(self.as_fd(), &piece[..piece.len().min(PIECE)]) {
                Ok(length) => written += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.closed = true;
                    written = self.pending.len();
                }
            }
        }
        self.pending.drain(..written);
    }

    fn is_ready(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(self, PollFlags::OUT)], Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Sink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.target {
            Target::Stdout => rustix::stdio::stdout(),
            Target::Stderr => rustix::stdio::stderr(),
        }
    }
}
