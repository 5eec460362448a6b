//! The launcher's own standard output and standard error, which carry the output of ranks and
//! messages of the launcher. Only [`Console::flush_last`] blocks, for at most a second.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::output::{OutputSink, OutputStream, OutputTarget};

/// The longest time to write the launcher's last message.
const LAST_LINE: Duration = Duration::from_secs(1);

/// The output streams of the launcher, each with its queue.
pub(super) struct Console {
    sinks: [OutputSink; 2],
}

impl Console {
    /// The streams of a job with this number of ranks.
    pub(super) fn new(ranks: usize) -> Console {
        let targets = [OutputTarget::Stdout, OutputTarget::Stderr];
        Console {
            sinks: targets.map(|target| OutputSink::new(target, ranks)),
        }
    }

    pub(super) fn sink(&self, target: OutputTarget) -> &OutputSink {
        &self.sinks[target as usize]
    }

    pub(super) fn sink_mut(&mut self, target: OutputTarget) -> &mut OutputSink {
        &mut self.sinks[target as usize]
    }

    /// Prints a message of the launcher. It is one write if the reader of standard error keeps up,
    /// so that no line of a rank comes between.
    pub(super) fn say(&mut self, text: &str) {
        let line = format!("fishplate: {}\n", terminal_text::lines(text));
        let stderr = self.sink_mut(OutputTarget::Stderr);
        stderr.push(line.as_bytes());
        stderr.flush();
    }

    /// True if output of a rank for this stream may be moved now.
    pub(super) fn takes(&self, rank: usize, target: OutputTarget) -> bool {
        let sink = self.sink(target);
        sink.is_closed() || sink.takes(rank)
    }

    /// Moves a write from a rank's stream to the launcher's, if one has arrived and the launcher's
    /// has room. Returns true if it has moved bytes.
    pub(super) fn pull(&mut self, rank: usize, stream: &mut OutputStream) -> bool {
        let sink = self.sink_mut(stream.target);
        if sink.is_closed() {
            stream.close(sink);
            return false;
        }
        sink.takes(rank) && stream.pull(sink)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sinks.iter().all(OutputSink::is_empty)
    }

    /// Writes as much as the readers of the streams accept without blocking.
    pub(super) fn flush(&mut self) {
        self.sinks.iter_mut().for_each(OutputSink::flush);
    }

    /// Waits until the launcher's last message has been written to standard error, for at most a
    /// second.
    pub(super) fn flush_last(&mut self) {
        let until = Instant::now() + LAST_LINE;
        self.sink_mut(OutputTarget::Stderr).flush_until(until);
    }

    /// The descriptors of output streams to poll for writing.
    pub(super) fn wanted(&self) -> impl Iterator<Item = PollFd<'_>> {
        let full = self.sinks.iter().filter(|sink| sink.has_pending());
        full.map(|sink| PollFd::new(sink, PollFlags::OUT))
    }

    /// The next time at which [`Console::check`] has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        self.sinks.iter().filter_map(OutputSink::next).min()
    }

    /// Performs the actions of the output streams that are due at `now`.
    pub(super) fn check(&mut self, now: Instant) {
        self.sinks.iter_mut().for_each(|sink| sink.check(now));
    }
}
