//! A machine on which the start of a program's work is free: connections, registrations, and the
//! making and freeing of communicators, windows and files. The time that disappears on it is what
//! the start costs.
//!
//! Out-of-band messages and registrations take no time. A rank in a call that makes or frees an
//! object works for no longer than a short call at a time, so that its polls make progress, and its
//! messages occupy nothing. Ranks run in lockstep, because messages without latency leave no time
//! to run ahead.

use sim::Time;

use super::node::{CALL, OOB_LATENCY};
use super::timing::Timing;
use super::{MachineModel, NONE};

/// The state of a machine whose start may be free.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FreeStart {
    /// The start is free.
    pub(super) is_wanted: bool,
    /// What happens now is for a free message.
    is_free: bool,
}

impl MachineModel {
    /// Makes the start free.
    pub fn with_free_start(mut self) -> MachineModel {
        self.free_start.is_wanted = true;
        self.lookahead = None;
        self
    }

    /// The latency of an out-of-band message.
    pub(super) fn oob_latency(&self) -> Time {
        match self.free_start.is_wanted {
            true => 0,
            false => OOB_LATENCY,
        }
    }

    /// A rank enters a call of its program, or leaves it.
    pub(super) fn constructs(&mut self, rank: u32, constructs: bool) {
        self.ranks[rank as usize].is_free = self.free_start.is_wanted && constructs;
    }

    /// The time of a rank's processor for work that takes `time` at its usual speed.
    #[inline]
    pub(super) fn unless_free(&self, rank: u32, time: Time) -> Time {
        match self.ranks[rank as usize].is_free {
            true => time.min(CALL),
            false => time,
        }
    }

    /// What happens next is for this message. The timings of adapters follow.
    #[inline]
    pub(super) fn heed(&mut self, message: u32) {
        if self.free_start.is_wanted {
            self.free_start.is_free = message != NONE && self.messages[message].is_free;
        }
    }

    /// The timing of what happens now on an adapter.
    #[inline]
    pub(super) fn timing(&mut self, adapter: u32) -> &mut Timing {
        let number = match self.free_start.is_free {
            true => self.timings.len() - 1,
            false => self.adapters[adapter as usize].timing as usize,
        };
        &mut self.timings[number]
    }

    /// Whether what happens now occupies nothing.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.free_start.is_free
    }
}
