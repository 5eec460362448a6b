//! The count of the completions that the send queues of a rail will still report: a rail without
//! any need not be polled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of completions that the send queues of one rail will report. A rail that will report
/// nothing need not be polled.
///
/// All queue pairs of the rail share this count. The rank that owns them runs in one thread at a
/// time: no access is a read-modify-write.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<AtomicU32>);

impl Reports {
    /// Records that one more completion of a device is expected.
    #[inline(always)]
    pub(super) fn expect(&self) {
        self.0.store(self.due() + 1, Ordering::Relaxed);
    }

    /// Records that `count` expected completions have arrived, or will not arrive any more.
    #[inline(always)]
    pub(super) fn come(&self, count: u32) {
        self.0.store(self.due() - count, Ordering::Relaxed);
    }

    /// The number of completions that have been requested and have not been polled.
    #[inline(always)]
    pub(super) fn due(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
