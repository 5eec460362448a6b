//! A machine on which the start of a program's work is free: connections, registrations, and the
//! making and freeing of communicators, windows and files. The time that disappears on it is what
//! the start costs.
//!
//! Out-of-band messages and registrations take no time. A rank in a call that makes or frees an
//! object works for no longer than a short call at a time, so that its polls make progress, and its
//! messages occupy nothing. Ranks run in lockstep, because messages without latency leave no time
//! to run ahead.

use super::message::{Messages, NONE};

/// The state of a machine whose start may be free.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreeStart {
    /// The start is free.
    pub is_wanted: bool,
    /// The present event is of a free message: it occupies nothing.
    pub is_free: bool,
}

impl FreeStart {
    /// The next event is of this message. The timings of adapters follow.
    #[inline]
    pub(crate) fn heed(&mut self, messages: &Messages, message: u32) {
        if self.is_wanted {
            self.is_free = message != NONE && messages[message].is_free;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_free_message_occupies_nothing_where_the_start_is_free() {
        let memory = sim::memory::Memory::private().unwrap();
        let mut messages = Messages::new(memory.shared());
        let (free, usual) = (messages.take(), messages.take());
        messages[free].is_free = true;
        let mut start = FreeStart::default();
        start.heed(&messages, free);
        assert!(!start.is_free, "the start takes its time");
        start.is_wanted = true;
        for (message, is_free) in [(free, true), (usual, false), (free, true), (NONE, false)] {
            start.heed(&messages, message);
            assert_eq!(start.is_free, is_free);
        }
    }
}
