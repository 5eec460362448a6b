//! The limit on the work of one turn of the loop, so that no flood keeps the launcher from signals
//! and deadlines.

/// The bytes of one turn.
const TURN: usize = 64 << 10;

/// The bytes that handling one frame or packet costs in addition to its own.
const EACH: usize = 64;

/// The work that is left.
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

    /// Records a frame or packet of this length.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes + EACH);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}
