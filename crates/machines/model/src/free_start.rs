//! A machine on which the start of a program costs nothing: connections, registrations, and the
//! making and freeing of communicators, windows and files. The time that a program saves on it is
//! the cost of its start.
//!
//! Out-of-band messages and registrations take no time. In a call that makes or frees an object, a
//! rank works at most as long as a short call at a time, so that its polls make progress, and its
//! messages occupy no resource. Ranks run in lockstep, because messages without latency leave no
//! time to run ahead.

use super::message::{Messages, NONE};

/// The state of a machine whose start may be free.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreeStart {
    /// True if the machine omits the cost of making and freeing objects such as connections.
    pub is_wanted: bool,
    /// True if the present event belongs to a message without a cost: it occupies no resource.
    pub is_free: bool,
}

impl FreeStart {
    /// Records to which message the present work belongs; `NONE`: to none. The timings of adapters
    /// depend on it.
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
