//! The count of the completions that a rail will report.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of completions that the send queues of one rail will report. A rail that will report
/// nothing need not be polled.
///
/// Every queue pair of the rail counts here. The rank that owns them runs in one thread at a time:
/// no access is a read-modify-write.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<AtomicU32>);

impl Reports {
    /// One more completion is expected.
    #[inline(always)]
    pub(super) fn expect(&self) {
        self.0.store(self.due() + 1, Ordering::Relaxed);
    }

    /// `count` expected completions have come, or will not come any more.
    #[inline(always)]
    pub(super) fn come(&self, count: u32) {
        self.0.store(self.due() - count, Ordering::Relaxed);
    }

    /// The number of completions that are expected.
    #[inline(always)]
    pub(super) fn due(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
