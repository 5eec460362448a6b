//! The output of ranks, with `[rank] ` or the time as a prefix of each line, or without.
//!
//! A line gets one prefix, however long it is, and lines of different ranks are not mixed: see
//! [`sink`]. Without a prefix, the pieces of a line are joined if they follow each other closely:
//! see [`joiner`].

pub(crate) mod arrivals;
mod joiner;
pub(crate) mod pipes;
mod sink;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::OutputFile;
use joiner::LINE_LIMIT;
pub(crate) use pipes::OutputPipes;
pub(crate) use sink::OutputSink;

/// Follows the prefix on the rest of a line that the sink had to interrupt.
const CONTINUED: &[u8] = b"(continued) ";
/// The most bytes that are read from a pipe at once: one packet, even where pages are large.
const READ: usize = 64 << 10;
/// The length of the packets into which a pipe divides a longer write (POSIX: PIPE_BUF).
const PACKET: usize = 4096;
/// The most packets of one write that are moved at once: those that a pipe holds.
const MOST_PACKETS: usize = pipes::SLOTS;

/// The launcher's standard streams for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OutputTarget {
    Stdout,
    Stderr,
}

/// The format and the destination of the ranks' output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputOptions {
    /// True if each line begins with `[rank] `.
    pub tag: bool,
    /// True if each line begins with the time.
    pub time: bool,
    /// True if the ranks' standard error goes to standard output.
    pub merge: bool,
    /// The files for the standard output of the ranks, one for each. `None`: the launcher's
    /// standard output.
    pub stdout: Option<OutputFile>,
    /// The files for the standard error of the ranks, one for each. `None`: the launcher's standard
    /// error.
    pub stderr: Option<OutputFile>,
}

impl OutputOptions {
    /// True if lines get a prefix, so that the launcher has to read the output.
    pub(crate) fn has_prefix(&self) -> bool {
        self.tag || self.time
    }
}

/// The prefix of each line of a rank's output.
#[derive(Debug, Clone, Copy)]
struct LinePrefix {
    /// The number of the rank, if the prefix shows it.
    rank: Option<usize>,
    /// True if the prefix shows the time.
    time: bool,
}

impl LinePrefix {
    /// The prefix of a rank's lines, if `options` ask for one.
    fn of(rank: usize, options: &OutputOptions) -> Option<LinePrefix> {
        options.has_prefix().then_some(LinePrefix {
            rank: options.tag.then_some(rank),
            time: options.time,
        })
    }

    /// The text of the prefix for a line that is written at `now`: `[rank] ` and the time of day in
    /// UTC.
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

/// The standard output or standard error of one rank.
pub(crate) struct OutputStream {
    /// The prefix of each line. `None`: the bytes are forwarded unchanged.
    prefix: Option<LinePrefix>,
    pub target: OutputTarget,
    /// The pipe from the rank. `None` once the rank has closed it, and for a rank on another host.
    reader: Option<File>,
    /// The rank that writes to this stream.
    rank: usize,
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
    /// True if the sink has the beginning of a long line whose end has not arrived.
    in_line: bool,
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
            rank,
            partial: Vec::new(),
            in_line: false,
        }
    }

    /// The descriptor to poll for more output. `None` after the end of the stream.
    pub(crate) fn reader(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    /// Moves one write of the rank from the pipe to the sink, if one has arrived. Returns true if
    /// it has moved bytes.
    pub(crate) fn pull(&mut self, sink: &mut OutputSink) -> bool {
        for packets in 0..MOST_PACKETS {
            match self.read(READ) {
                ReadOutcome::Bytes(bytes) => {
                    self.feed(&bytes, sink);
                    if bytes.len() < PACKET {
                        return true;
                    }
                }
                ReadOutcome::Nothing => return packets > 0,
                ReadOutcome::End => {
                    self.close(sink);
                    return packets > 0;
                }
            }
        }
        true
    }

    /// Reads output that has arrived, at most `most` bytes.
    pub(crate) fn read(&mut self, most: usize) -> ReadOutcome {
        let Some(reader) = &mut self.reader else {
            return ReadOutcome::Nothing;
        };
        let mut bytes = Vec::with_capacity(most);
        match rustix::io::read(reader, spare_capacity(&mut bytes)) {
            Ok(0) => ReadOutcome::End,
            Ok(_) => ReadOutcome::Bytes(bytes),
            Err(Errno::AGAIN | Errno::INTR) => ReadOutcome::Nothing,
            Err(_) => ReadOutcome::End,
        }
    }

    /// Passes bytes that the rank has written to the sink, in lines if possible.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut OutputSink) {
        match self.prefix {
            Some(_) => self.split(bytes, sink),
            None => sink.join(self.rank, bytes),
        }
    }

    /// Closes the pipe. A rank that continues to write gets SIGPIPE.
    pub(crate) fn stop_reading(&mut self) {
        self.reader = None;
    }

    /// Closes the pipe, and completes the last line if it has a prefix.
    pub(crate) fn close(&mut self, sink: &mut OutputSink) {
        self.stop_reading();
        sink.end(self.rank);
        // If the line was interrupted, the sink has ended it already.
        let is_ended = self.in_line && sink.has_interrupted(self.rank);
        if !is_ended && (self.in_line || !self.partial.is_empty()) {
            self.write(b"\n", sink);
        }
    }

    /// Passes whole lines to the sink. Of a line longer than [`LINE_LIMIT`], the sink gets the
    /// beginning, and then the rest as it arrives.
    fn split(&mut self, bytes: &[u8], sink: &mut OutputSink) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let is_long = self.partial.len() + piece.len() > LINE_LIMIT;
            if self.in_line || is_long || piece.ends_with(b"\n") {
                self.write(piece, sink);
            } else {
                self.partial.extend_from_slice(piece);
            }
        }
    }

    /// Writes the kept beginning of a line and the following piece to the sink.
    fn write(&mut self, piece: &[u8], sink: &mut OutputSink) {
        let is_interrupted = self.in_line && sink.has_interrupted(self.rank);
        let prefix = match self.in_line && !is_interrupted {
            true => String::new(),
            false => {
                let prefix = self.prefix.map(|prefix| prefix.text(SystemTime::now()));
                prefix.unwrap_or_default()
            }
        };
        let mark: &[u8] = if is_interrupted { CONTINUED } else { b"" };
        sink.write(self.rank, &[prefix.as_bytes(), mark, &self.partial, piece]);
        self.partial.clear();
        self.in_line = !piece.ends_with(b"\n");
    }
}

/// The result of [`OutputStream::read`].
pub(crate) enum ReadOutcome {
    Bytes(Vec<u8>),
    /// No output has arrived.
    Nothing,
    End,
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

    /// Streams of two ranks with `[rank] ` prefixes, and their sink.
    fn two() -> ([OutputStream; 2], OutputSink) {
        let options = OutputOptions {
            tag: true,
            ..OutputOptions::default()
        };
        let stream = |rank| OutputStream::remote(rank, OutputTarget::Stdout, &options);
        (
            [stream(0), stream(1)],
            OutputSink::new(OutputTarget::Stdout, 2),
        )
    }

    fn long(letter: char) -> String {
        letter.to_string().repeat(2 * LINE_LIMIT)
    }

    #[test]
    fn a_long_line_stays_one_line_and_others_wait_for_its_end() {
        let ([mut a, mut b], mut sink) = two();
        a.feed(long('a').as_bytes(), &mut sink);
        b.feed(b"short\npart", &mut sink);
        b.feed(long('b').as_bytes(), &mut sink);
        a.feed(long('a').as_bytes(), &mut sink);
        a.feed(b"end\nnext\n", &mut sink);
        // The long line of the other rank is now the one that others wait for.
        a.feed(b"last\n", &mut sink);
        b.close(&mut sink);
        a.close(&mut sink);
        let (a, b) = (long('a'), long('b'));
        let wanted = format!("[0] {a}{a}end\n[1] short\n[1] part{b}\n[0] next\n[0] last\n");
        assert!(sink.text() == wanted, "{}", shape(sink.text()));
    }

    #[test]
    fn a_line_is_interrupted_where_too_much_waits_and_after_a_while() {
        let ([mut a, mut b], mut sink) = two();
        a.feed(long('a').as_bytes(), &mut sink);
        let lines = "line\n".repeat(sink::HELD_LIMIT / 4);
        b.feed(lines.as_bytes(), &mut sink);
        a.feed(b"end\n", &mut sink);
        let text = sink.text().replace("[1] line\n", "");
        assert!(text == format!("[0] {}\n[0] (continued) end\n", long('a')));

        let ([mut a, mut b], mut sink) = two();
        a.feed(long('a').as_bytes(), &mut sink);
        assert_eq!(sink.next(), None);
        b.feed(b"short\n", &mut sink);
        let next = sink.next().unwrap();
        sink.check(next - Duration::from_millis(1));
        assert_eq!(sink.text().len(), 2 * LINE_LIMIT + 4);
        sink.check(next);
        a.close(&mut sink);
        let wanted = format!("[0] {}\n[1] short\n", long('a'));
        assert!(sink.text() == wanted, "{}", shape(sink.text()));
    }

    #[test]
    fn only_ranks_that_wait_are_not_read_while_much_is_held() {
        let ([mut a, mut b], mut sink) = two();
        a.feed(long('a').as_bytes(), &mut sink);
        b.feed("line\n".repeat(sink::HELD_LIMIT / 16).as_bytes(), &mut sink);
        assert!(sink.takes(0) && !sink.takes(1) && !sink.takes(2));
        a.close(&mut sink);
        // Much output is unwritten now.
        assert!(!sink.takes(0) && !sink.takes(1));
    }

    /// A message of the launcher is a line of its own, and does not wait.
    #[test]
    fn the_launcher_interrupts_a_line() {
        let ([mut a, mut b], mut sink) = two();
        a.feed(long('a').as_bytes(), &mut sink);
        b.feed(b"short\n", &mut sink);
        sink.push(b"fishplate: rank 1 has died\n");
        let said = "\n[1] short\nfishplate: rank 1 has died\n";
        assert!(sink.text().ends_with(said), "{}", shape(sink.text()));
    }

    /// The text, with each long run of one letter replaced by one capital letter.
    fn shape(text: String) -> String {
        text.replace(&long('a'), "A").replace(&long('b'), "B")
    }
}
