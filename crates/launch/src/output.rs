//! The output of ranks, with `[rank] ` before each line.
//!
//! Lines of different ranks are never mixed. The launcher must handle signals even while the reader
//! of its output does not read. So it writes only where a write does not block, and stops reading
//! from ranks while much is unwritten.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The longest line that is written whole; a longer one is written in pieces.
const LINE_LIMIT: usize = 64 << 10;

/// The number of unwritten bytes from which on nothing is read.
const PENDING_LIMIT: usize = 256 << 10;

/// The bytes that a pipe ready for writing takes without blocking (POSIX: PIPE_BUF).
const PIECE: usize = 4096;

/// One of the launcher's standard streams for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OutputTarget {
    Stdout,
    Stderr,
}

/// One rank's stdout or stderr.
pub(crate) struct OutputStream {
    /// The prefix of each line. None for output that is forwarded unchanged.
    tag: Option<Vec<u8>>,
    pub target: OutputTarget,
    /// The pipe. None once the rank has closed it, and for a rank on another host.
    reader: Option<File>,
    /// A line without its end.
    partial: Vec<u8>,
}

impl OutputStream {
    /// The standard output of a rank of this host.
    pub(crate) fn stdout(rank: usize, reader: File) -> Self {
        Self::new(rank, OutputTarget::Stdout, Some(reader), true)
    }

    /// The standard error of a rank of this host.
    pub(crate) fn stderr(rank: usize, reader: File) -> Self {
        Self::new(rank, OutputTarget::Stderr, Some(reader), true)
    }

    /// A stream of a rank on another host, whose agent reads it.
    pub(crate) fn remote(rank: usize, target: OutputTarget, tagged: bool) -> Self {
        Self::new(rank, target, None, tagged)
    }

    fn new(rank: usize, target: OutputTarget, reader: Option<File>, tagged: bool) -> Self {
        OutputStream {
            tag: tagged.then(|| format!("[{rank}] ").into_bytes()),
            target,
            reader,
            partial: Vec::new(),
        }
    }

    /// The descriptor to poll for more output. None at the end.
    pub(crate) fn reader(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    /// Moves output that has arrived to the sink.
    pub(crate) fn pull(&mut self, sink: &mut OutputSink) {
        match self.read(16 << 10) {
            ReadOutcome::Bytes(bytes) => self.feed(&bytes, sink),
            ReadOutcome::Nothing => {}
            ReadOutcome::End => self.close(sink),
        }
    }

    /// Reads output that has arrived, at most `most` bytes.
    pub(crate) fn read(&mut self, most: usize) -> ReadOutcome {
        let Some(reader) = &mut self.reader else {
            return ReadOutcome::Nothing;
        };
        let mut bytes = vec![0; most];
        match reader.read(&mut bytes) {
            Ok(0) => ReadOutcome::End,
            Ok(length) => {
                bytes.truncate(length);
                ReadOutcome::Bytes(bytes)
            }
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                ReadOutcome::Nothing
            }
            Err(_) => ReadOutcome::End,
        }
    }

    /// Adds output of the rank.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut OutputSink) {
        match self.tag {
            Some(_) => self.split(bytes, sink),
            None => sink.push(&[bytes]),
        }
    }

    /// Closes the pipe. A rank that continues to write gets SIGPIPE.
    pub(crate) fn stop_reading(&mut self) {
        self.reader = None;
    }

    /// Closes the pipe and ends the last line.
    pub(crate) fn close(&mut self, sink: &mut OutputSink) {
        self.stop_reading();
        if !self.partial.is_empty() {
            self.write_line(b"\n", sink);
        }
    }

    fn split(&mut self, bytes: &[u8], sink: &mut OutputSink) {
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

    fn write_line(&mut self, end: &[u8], sink: &mut OutputSink) {
        let tag = self.tag.as_deref().unwrap_or_default();
        sink.push(&[tag, &self.partial, end]);
        self.partial.clear();
    }
}

/// The result of a read.
pub(crate) enum ReadOutcome {
    Bytes(Vec<u8>),
    /// Nothing has arrived.
    Nothing,
    End,
}

/// One of the launcher's standard streams, with the bytes that wait for it.
pub(crate) struct OutputSink {
    target: OutputTarget,
    pending: Vec<u8>,
    closed: bool,
}

impl OutputSink {
    pub(crate) fn new(target: OutputTarget) -> Self {
        OutputSink {
            target,
            pending: Vec::new(),
            closed: false,
        }
    }

    /// Adds bytes to write.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) {
        if !self.closed {
            parts
                .iter()
                .for_each(|part| self.pending.extend_from_slice(part));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= PENDING_LIMIT
    }

    /// Whether the reader has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes the bytes that can be written without blocking.
    pub(crate) fn flush(&mut self) {
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

impl AsFd for OutputSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.target {
            OutputTarget::Stdout => rustix::stdio::stdout(),
            OutputTarget::Stderr => rustix::stdio::stderr(),
        }
    }
}
