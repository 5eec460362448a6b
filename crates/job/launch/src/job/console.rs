//! The launcher's own standard output and standard error, with the output of ranks and messages of
//! its own. Nothing here blocks.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::output::{OutputSink, OutputStream, OutputTarget};

/// The time for the launcher's last message to leave.
const LAST_LINE: Duration = Duration::from_secs(1);

/// Both streams.
pub(super) struct Console {
    sinks: [OutputSink; 2],
}

impl Console {
    pub(super) fn new() -> Console {
        Console {
            sinks: [OutputTarget::Stdout, OutputTarget::Stderr].map(OutputSink::new),
        }
    }

    pub(super) fn sink(&self, target: OutputTarget) -> &OutputSink {
        &self.sinks[target as usize]
    }

    pub(super) fn sink_mut(&mut self, target: OutputTarget) -> &mut OutputSink {
        &mut self.sinks[target as usize]
    }

    /// Prints a message of the launcher, in one write if the reader of standard error keeps up, so
    /// that no line of a rank comes between.
    pub(super) fn say(&mut self, text: &str) {
        let line = format!("fishplate: {}\n", terminal_text::lines(text));
        let stderr = self.sink_mut(OutputTarget::Stderr);
        stderr.push(&[line.as_bytes()]);
        stderr.flush();
    }

    /// Moves output of a rank, whose stream can be read.
    pub(super) fn pull(&mut self, rank: usize, stream: &mut OutputStream) {
        let sink = self.sink_mut(stream.target);
        if sink.is_closed() {
            stream.close(sink);
        } else if sink.takes(rank) {
            stream.pull(sink);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sinks.iter().all(OutputSink::is_empty)
    }

    /// Writes what the readers have room for.
    pub(super) fn flush(&mut self) {
        self.sinks.iter_mut().for_each(OutputSink::flush);
    }

    /// Waits for the reader of the launcher's last message.
    pub(super) fn flush_last(&mut self) {
        let until = Instant::now() + LAST_LINE;
        self.sink_mut(OutputTarget::Stderr).flush_until(until);
    }

    /// The descriptors to poll for room.
    pub(super) fn wanted(&self) -> impl Iterator<Item = PollFd<'_>> {
        let full = self.sinks.iter().filter(|sink| !sink.is_empty());
        full.map(|sink| PollFd::new(sink, PollFlags::OUT))
    }

    /// The next time at which something is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.sinks.iter().filter_map(OutputSink::next).min()
    }

    /// Does what is due.
    pub(super) fn look(&mut self, now: Instant) {
        self.sinks.iter_mut().for_each(|sink| sink.look(now));
    }
}
