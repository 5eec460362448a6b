//! The output of ranks, with `[rank] ` or the time before each line.
//!
//! Lines of different ranks are never mixed. The launcher must handle signals even while the reader
//! of its output does not read. So it writes only where a write does not block, and stops reading
//! from ranks while much is unwritten.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{OutputFile, timespec};

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

/// The form and the place of the ranks' output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputOptions {
    /// Whether each line begins with `[rank] `.
    pub tag: bool,
    /// Whether each line begins with the time.
    pub time: bool,
    /// Whether the ranks' standard error goes to standard output.
    pub merge: bool,
    /// The file of each rank for its standard output. None: the launcher's.
    pub stdout: Option<OutputFile>,
    /// The file of each rank for its standard error. None: the launcher's.
    pub stderr: Option<OutputFile>,
}

impl OutputOptions {
    /// Whether lines get a prefix, so that the launcher has to read them.
    pub(crate) fn has_prefix(&self) -> bool {
        self.tag || self.time
    }
}

/// The prefix of each line of a rank's output.
#[derive(Debug, Clone, Copy)]
struct LinePrefix {
    /// The rank, if it is shown.
    rank: Option<usize>,
    /// Whether the time is shown.
    time: bool,
}

impl LinePrefix {
    /// The prefix, if there is one.
    fn of(rank: usize, options: &OutputOptions) -> Option<LinePrefix> {
        options.has_prefix().then_some(LinePrefix {
            rank: options.tag.then_some(rank),
            time: options.time,
        })
    }

    /// Its text for a line that is written at `now`: `[rank] ` and the time of day in UTC.
    fn text(self, now: SystemTime) -> String {
        let rank = self.rank.map_or(String::new(), |rank| format!("[{rank}] "));
        if !self.time {
            return rank;
        }
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, millis) = (since.as_secs(), since.subsec_millis());
        let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
        format!(
            "{rank}{hours:02}:{minutes:02}:{:02}.{millis:03}Z ",
            seconds % 60
        )
    }
}

/// One rank's stdout or stderr.
pub(crate) struct OutputStream {
    /// The prefix of each line. None for output that is forwarded unchanged.
    prefix: Option<LinePrefix>,
    pub target: OutputTarget,
    /// The pipe. None once the rank has closed it, and for a rank on another host.
    reader: Option<File>,
    /// A line without its end.
    partial: Vec<u8>,
}

impl OutputStream {
    /// The standard output of a rank of this host.
    pub(crate) fn stdout(rank: usize, reader: File, options: &OutputOptions) -> Self {
        Self::new(rank, OutputTarget::Stdout, Some(reader), options)
    }

    /// The standard error of a rank of this host.
    pub(crate) fn stderr(rank: usize, reader: File, options: &OutputOptions) -> Self {
        Self::new(rank, OutputTarget::Stderr, Some(reader), options)
    }

    /// A stream of a rank on another host, whose agent reads it.
    pub(crate) fn remote(rank: usize, target: OutputTarget, options: &OutputOptions) -> Self {
        Self::new(rank, target, None, options)
    }

    fn new(
        rank: usize,
        target: OutputTarget,
        reader: Option<File>,
        options: &OutputOptions,
    ) -> Self {
        OutputStream {
            prefix: LinePrefix::of(rank, options),
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
        match self.prefix {
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
        let prefix = self.prefix.map(|prefix| prefix.text(SystemTime::now()));
        let prefix = prefix.unwrap_or_default();
        sink.push(&[prefix.as_bytes(), &self.partial, end]);
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

    /// Writes the bytes that its reader takes until then.
    pub(crate) fn flush_until(&mut self, until: Instant) {
        self.flush();
        while !self.is_empty() && Instant::now() < until {
            // An interrupted wait is tried again.
            let _ = poll(
                &mut [PollFd::new(self, PollFlags::OUT)],
                Some(&timespec(until)),
            );
            self.flush();
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_prefix_names_rank_and_time() {
        let now = UNIX_EPOCH + Duration::from_millis(86_400_000 * 3 + 3_723_045);
        let text = |tag, time| {
            let options = OutputOptions {
                tag,
                time,
                ..OutputOptions::default()
            };
            LinePrefix::of(7, &options).map(|prefix| prefix.text(now))
        };
        assert_eq!(text(false, false), None);
        assert_eq!(text(true, false).as_deref(), Some("[7] "));
        assert_eq!(text(false, true).as_deref(), Some("01:02:03.045Z "));
        assert_eq!(text(true, true).as_deref(), Some("[7] 01:02:03.045Z "));
    }
}
