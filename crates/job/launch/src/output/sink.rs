//! A sink for one of the launcher's standard streams, with the bytes that are not written yet.
//!
//! The launcher must handle signals even while the reader of its output does not read. So it writes
//! only if a write does not block, and stops reading from ranks while much is unwritten.
//!
//! While a rank is in the middle of a long line, lines of other ranks are held back until its end.
//! Memory and time for that are bounded: then the line is interrupted, and its rest begins with a
//! mark. A message of the launcher itself interrupts a line at once.
//!
//! The beginnings of lines without a prefix wait in a [`LineJoiner`].

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::OutputTarget;
use super::joiner::LineJoiner;
use crate::timespec;

/// The number of unwritten bytes from which on ranks are not read.
const PENDING_LIMIT: usize = 256 << 10;
/// The number of bytes that a pipe reported as writable takes without blocking (POSIX: PIPE_BUF).
const PIECE: usize = 4096;
/// The most bytes of other ranks' output that wait for the end of a line.
pub(super) const HELD_LIMIT: usize = 4 << 20;
/// The time for which other ranks' output waits while no more of the line arrives.
const PATIENCE: Duration = Duration::from_secs(2);

/// One of the launcher's standard streams, with the bytes to be written to it.
pub(crate) struct OutputSink {
    target: OutputTarget,
    pending: Vec<u8>,
    /// True if the last byte that left `pending` was not the end of a line.
    is_within_line: bool,
    closed: bool,
    /// The rank whose long line is incomplete in the stream, and the time of its last bytes.
    open: Option<(usize, Instant)>,
    /// The bytes of other ranks' output that wait for the end of that line.
    held: BTreeMap<usize, Vec<u8>>,
    held_bytes: usize,
    /// Ranks whose lines were interrupted, and that have written nothing since.
    interrupted: BTreeSet<usize>,
    /// The beginnings of lines without a prefix. `None` with one rank, whose lines nobody
    /// interrupts.
    joiner: Option<LineJoiner>,
}

impl OutputSink {
    /// The stream for the output of a job with this number of ranks.
    pub(crate) fn new(target: OutputTarget, ranks: usize) -> Self {
        OutputSink {
            target,
            pending: Vec::new(),
            is_within_line: false,
            closed: false,
            open: None,
            held: BTreeMap::new(),
            held_bytes: 0,
            interrupted: BTreeSet::new(),
            joiner: (ranks > 1).then(LineJoiner::default),
        }
    }

    /// Adds lines of the launcher. They begin a new line.
    pub(crate) fn push(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        self.interrupt_all();
        if let Some(joiner) = &mut self.joiner {
            joiner.end_all(&mut self.pending);
        }
        let last = self.pending.last();
        if last.map_or(self.is_within_line, |&last| last != b'\n') {
            self.append(&[b"\n"]);
        }
        self.append(&[lines]);
    }

    /// Adds output of a rank without a prefix.
    pub(super) fn join(&mut self, rank: usize, bytes: &[u8]) {
        match &mut self.joiner {
            _ if self.closed => {}
            Some(joiner) => joiner.add(rank, bytes, Instant::now(), &mut self.pending),
            None => self.append(&[bytes]),
        }
    }

    /// Passes on the beginning of a line without a prefix: the rank writes no more.
    pub(super) fn end(&mut self, rank: usize) {
        if let Some(joiner) = &mut self.joiner {
            joiner.end(rank, &mut self.pending);
        }
    }

    /// Adds a line of a rank, or the next part of a long one.
    pub(super) fn write(&mut self, rank: usize, parts: &[&[u8]]) {
        if self.closed {
            return;
        }
        if self.open.is_some_and(|(other, _)| other != rank) {
            let held = self.held.entry(rank).or_default();
            let before = held.len();
            parts.iter().for_each(|part| held.extend_from_slice(part));
            self.held_bytes += held.len() - before;
            if self.held_bytes > HELD_LIMIT {
                self.interrupt();
            }
            return;
        }
        self.append(parts);
        let is_whole = parts.last().is_some_and(|part| part.ends_with(b"\n"));
        self.open = (!is_whole).then(|| (rank, Instant::now()));
        self.release();
    }

    /// True if the long line of a rank was interrupted, so that its next part is a line of its own.
    /// Forgets the interruption.
    pub(super) fn has_interrupted(&mut self, rank: usize) -> bool {
        self.interrupted.remove(&rank)
    }

    /// The time at which [`OutputSink::check`] has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        let joined = self.joiner.as_ref().and_then(LineJoiner::next);
        self.interruption().into_iter().chain(joined).min()
    }

    /// The time at which the incomplete line will be interrupted, unless more of it arrives.
    fn interruption(&self) -> Option<Instant> {
        let open = self.open.filter(|_| !self.held.is_empty());
        open.map(|(_, last)| last + PATIENCE)
    }

    /// Passes on beginnings of lines that have waited long enough, and interrupts the incomplete
    /// line if no more of it has arrived in time.
    pub(crate) fn check(&mut self, now: Instant) {
        if let Some(joiner) = &mut self.joiner {
            joiner.check(now, &mut self.pending);
        }
        if self.interruption().is_some_and(|time| now >= time) {
            self.interrupt();
        }
    }

    fn interrupt(&mut self) {
        if let Some((rank, _)) = self.open.take() {
            self.append(&[b"\n"]);
            self.interrupted.insert(rank);
            self.release();
        }
    }

    /// Interrupts the incomplete line, and long lines that are held back.
    fn interrupt_all(&mut self) {
        while self.open.is_some() {
            self.interrupt();
        }
    }

    /// Adds the output that had to wait: complete lines first, then the beginning of one long line,
    /// for whose end other ranks must wait again.
    fn release(&mut self) {
        if self.open.is_some() {
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        held.retain(|_, bytes| {
            let is_whole = bytes.ends_with(b"\n");
            if is_whole {
                self.append(&[&*bytes]);
                self.held_bytes -= bytes.len();
            }
            !is_whole
        });
        if let Some((rank, bytes)) = held.pop_first() {
            self.append(&[&bytes]);
            self.held_bytes -= bytes.len();
            self.open = Some((rank, Instant::now()));
        }
        self.held = held;
    }

    fn append(&mut self, parts: &[&[u8]]) {
        if !self.closed {
            let parts = parts.iter();
            parts.for_each(|part| self.pending.extend_from_slice(part));
        }
    }

    /// The bytes that have not been written to the stream.
    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }

    /// True if bytes have to be written now.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// True if all bytes have been written.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_pending() && self.joiner.as_ref().is_none_or(LineJoiner::is_empty)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= PENDING_LIMIT
    }

    /// True if the output of a rank may be read. A rank whose output waits is not read while many
    /// bytes wait, so that the other rank's line need not be interrupted. (A rank on another host
    /// shares a connection, and is read in any case.)
    pub(crate) fn takes(&self, rank: usize) -> bool {
        let waits = self.open.is_some_and(|(other, _)| other != rank);
        let is_held_up = waits && self.held_bytes >= HELD_LIMIT / 2;
        !self.is_full() && !is_held_up
    }

    /// True if the reader has closed the stream.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes pending bytes, as many as the stream takes without blocking.
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
                    (self.open, self.held_bytes) = (None, 0);
                    self.held.clear();
                    self.joiner = None;
                }
            }
        }
        if let Some(&last) = self.pending[..written].last() {
            self.is_within_line = last != b'\n';
        }
        self.pending.drain(..written);
    }

    /// Writes the bytes that the stream's reader accepts until the time `until`.
    pub(crate) fn flush_until(&mut self, until: Instant) {
        if !self.held.is_empty() {
            self.interrupt_all();
        }
        if let Some(joiner) = &mut self.joiner {
            joiner.end_all(&mut self.pending);
        }
        self.flush();
        while self.has_pending() && Instant::now() < until {
            // An interrupted poll is repeated.
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
