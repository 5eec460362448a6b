//! The limit on the work of one pass of the event loop, so that no flood of messages delays signals
//! and deadlines.

/// The number of bytes that one pass of the event loop may handle.
const TURN: usize = 64 << 10;

/// The cost of one frame or packet, in bytes, in addition to its length.
const EACH: usize = 64;

/// The work that is left for this pass of the event loop, in bytes.
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Budget::of(TURN)
    }
}

impl Budget {
    pub(crate) fn of(bytes: usize) -> Self {
        Budget(bytes)
    }

    /// Subtracts the cost of a frame or packet of `bytes` bytes.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes + EACH);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}
